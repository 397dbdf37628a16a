/** The pinned views. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../../../../api/client";
import { viewRun } from "../../../../api/database";
import { useQuickAct } from "../../../../api/queries";
import type { AgentShape, SchemaShape, ViewShape } from "../../../../api/rest.generated";
import { Empty, Loading } from "../../../../components/frame/Page";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Menu, MenuItem } from "../../../../components/ui/Menu";
import { OpenDatabase } from "../OpenDatabase";
import { ViewResult } from "./ViewResult";
import "./Home.css";

export default function Home({ agent }: { agent: AgentShape }) {
  return <OpenDatabase agent={agent}>{(schema) => <Pinned agent={agent} schema={schema} />}</OpenDatabase>;
}

function Pinned({ agent, schema }: { agent: AgentShape; schema: SchemaShape }) {
  const pinned = schema.views.filter((view) => view.pinned);
  if (pinned.length === 0) {
    return (
      <Empty icon="pin" title="Nothing pinned yet">
        <p>
          Pin a view in <Link href={`/ui/agents/${agent.id}/views`}>Views</Link> to show it here. Or ask {agent.name} in
          a session: “draw a chart of {schema.tables[0]?.name ?? "memories"}”.
        </p>
      </Empty>
    );
  }
  const numbers = pinned.filter((view) => view.render === "number"); // small, so they are in a grid of their own
  const others = pinned.filter((view) => view.render !== "number");
  return (
    <div className="stack">
      {[numbers, others].map(
        (views, place) =>
          views.length > 0 && (
            <div key={place} className={views === numbers ? "home-grid is-small" : "home-grid"}>
              {views.map((view) => (
                <PinnedView key={view.name} agent={agent} view={view} />
              ))}
            </div>
          ),
      )}
    </div>
  );
}

function PinnedView({ agent, view }: { agent: AgentShape; view: ViewShape }) {
  const needs = view.required_parameters;
  const found = useQuery({ ...viewRun(agent.id, view.name, {}), enabled: needs.length === 0 });
  const unpin = useQuickAct(
    () =>
      call("PUT /agents/{agent_id}/db/views/{view}/pin", {
        path: { agent_id: agent.id, view: view.name },
        body: { pinned: false },
      }),
    [["database"]],
  );
  const place = `/ui/agents/${agent.id}/views?view=${encodeURIComponent(view.name)}`;
  const title = `pinned-${view.name}`;
  return (
    <section className="card pinned" aria-labelledby={title}>
      <header className="pinned-head">
        <h2 id={title}>
          <Link href={place}>{view.name}</Link>
        </h2>
        <Menu label={`More about ${view.name}`} icon="more">
          <MenuItem onSelect={() => unpin.mutate(undefined)}>Unpin</MenuItem>
        </Menu>
      </header>
      {view.description && <p className="muted small">{view.description}</p>}
      {needs.length > 0 ? (
        <p className="muted">
          Needs a value for {needs.join(", ")}. <Link href={place}>Open it</Link> to enter one or to set a default.
        </p>
      ) : found.isError ? (
        <ErrorText error={found.error} />
      ) : found.data ? (
        <ViewResult name={view.name} render={view.render} columns={found.data.columns} rows={found.data.rows} />
      ) : (
        <Loading what={view.name} />
      )}
      <ErrorText error={unpin.error} />
    </section>
  );
}
