/** One agent: tabs with an address each. Those of its database come and go with the toolset. */

import { useQuery } from "@tanstack/react-query";
import { type ComponentType, useEffect, useRef } from "react";
import { Link, Redirect } from "wouter";
import { explain } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { Boundary } from "../../components/frame/Boundary";
import { lazyView } from "../../components/frame/lazyView";
import { Failure, Loading, PageHeader } from "../../components/frame/Page";
import { ZoneOffer } from "../../components/text/zone";
import { Icon } from "../../components/ui/Icon";
import { WakeBanner } from "../../components/wakes/WakeBanner";
import { Activity } from "./Activity";
import { Configure } from "./Configure";
import { QuotaBanner, WritingBadge } from "./database/DatabaseStatus";
import "./AgentView.css";

const Home = lazyView(() => import("./database/views/Home"), true);
const Schema = lazyView(() => import("./database/Schema"), true);
const Data = lazyView(() => import("./database/data/Data"), true);
const Views = lazyView(() => import("./database/views/Views"), true);

interface Tab {
  name: string;
  text: string;
  needsDatabase: boolean;
  View: ComponentType<{ agent: AgentShape }>;
}

const TABS: Tab[] = [
  { name: "configure", text: "Configure", needsDatabase: false, View: Configure },
  { name: "home", text: "Home", needsDatabase: true, View: Home },
  { name: "schema", text: "Schema", needsDatabase: true, View: Schema },
  { name: "data", text: "Data", needsDatabase: true, View: Data },
  { name: "views", text: "Views", needsDatabase: true, View: Views },
  { name: "activity", text: "Activity", needsDatabase: false, View: Activity },
];

export default function AgentView({ agentId, tab }: { agentId: string; tab: string }) {
  const agents = useQuery(queries.agents);
  const tabs = useRef<HTMLElement>(null);
  const isLoaded = agents.data !== undefined;
  // On a phone not all tabs fit, so the current one is scrolled into view.
  useEffect(() => {
    if (isLoaded)
      tabs.current
        ?.querySelector(`[href$="/${CSS.escape(tab)}"]`)
        ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab, isLoaded]);
  if (queries.problemOf(agents))
    return <Failure title="Agent" text={explain(agents.error)} retry={() => void agents.refetch()} />;
  if (!agents.data) return <Loading what="the agent" />;
  const agent = agents.data.find((each) => each.id === agentId);
  if (!agent) return <Failure title="Agent not found" text="It was deleted, or it belongs to someone else." />;
  const hasDatabase = agent.toolsets.includes("database");
  const shown = TABS.filter((each) => !each.needsDatabase || hasDatabase);
  const current = shown.find((each) => each.name === tab);
  if (!current) return <Redirect to={`/ui/agents/${agentId}/configure`} replace />;
  return (
    <div className="page">
      <PageHeader title={agent.name}>
        {!hasDatabase && (
          <Link className="button" href={`/ui/agenda?agent=${agent.id}`}>
            <Icon name="calendar" size={16} />
            Agenda
          </Link>
        )}
        <Link className="button" href={`/?agent=${agent.id}`}>
          <Icon name="plus" size={16} />
          New session
        </Link>
      </PageHeader>
      <ZoneOffer agent={agent} />
      <WakeBanner agent={agent} />
      {hasDatabase && <QuotaBanner agent={agent} />}
      <nav ref={tabs} className="tabs" aria-label="Parts of this agent">
        {shown.map((each) => (
          <Link
            key={each.name}
            href={`/ui/agents/${agent.id}/${each.name}`}
            aria-current={each === current ? "page" : undefined}
          >
            {each.text}
          </Link>
        ))}
        {hasDatabase && <WritingBadge agentId={agent.id} />}
      </nav>
      <div className="page-body">
        <Boundary place={`${agent.id}/${current.name}`} isPart>
          <current.View key={agent.id} agent={agent} />
        </Boundary>
      </div>
    </div>
  );
}
