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
import { subtitleOf, titleOf, toRows } from "./grid";
import { useWidth } from "./useWidth";
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
  return <Grid agent={agent} views={pinned} />;
}

function Grid({ agent, views }: { agent: AgentShape; views: ViewShape[] }) {
  const { ref, width } = useWidth();
  return (
    <div ref={ref} className="home">
      {width > 0 &&
        toRows(views, width).map((row) => (
          <div
            key={row[0]?.item.name}
            className="home-row"
            style={{ gridTemplateColumns: row.map(({ units }) => `minmax(0, ${units}fr)`).join(" ") }}
          >
            {row.map(({ item }) => (
              <PinnedView key={item.name} agent={agent} view={item} />
            ))}
          </div>
        ))}
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
  const id = `pinned-${view.name}`;
  const [title, subtitle] = [titleOf(view), subtitleOf(view)];
  return (
    <section className={`card pinned is-${view.render}`} aria-labelledby={id}>
      <header className="pinned-head">
        <h2 id={id}>
          <Link href={place} title={view.name}>
            {title}
          </Link>
        </h2>
        <Menu label={`More about ${title}`} icon="more">
          <MenuItem onSelect={() => unpin.mutate(undefined)}>Unpin</MenuItem>
        </Menu>
      </header>
      {subtitle && <p className="muted small">{subtitle}</p>}
      {needs.length > 0 ? (
        <p className="muted">
          Needs a value for {needs.join(", ")}. <Link href={place}>Open it</Link> to enter one or to set a default.
        </p>
      ) : found.isError ? (
        <ErrorText error={found.error} />
      ) : found.data ? (
        <ViewResult name={title} render={view.render} columns={found.data.columns} rows={found.data.rows} />
      ) : (
        <Loading what={title} />
      )}
      <ErrorText error={unpin.error} />
    </section>
  );
}
