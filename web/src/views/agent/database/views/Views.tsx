/** Saved views: a list, and the selected one with its result. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../../../../api/client";
import { exportOfView, type Render, useWrite, viewRun } from "../../../../api/database";
import type { AgentShape, SchemaShape, ViewShape } from "../../../../api/rest.generated";
import { download } from "../../../../api/tickets";
import { Empty, Loading } from "../../../../components/frame/Page";
import { CodeBlock } from "../../../../components/text/CodeBlock";
import { count } from "../../../../components/text/labels";
import { Time } from "../../../../components/text/times";
import { Confirm } from "../../../../components/ui/Dialog";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";
import { Icon } from "../../../../components/ui/Icon";
import { definition, toValue } from "../data/values";
import { OpenDatabase } from "../OpenDatabase";
import { RENDERS, ViewDialog } from "./ViewDialog";
import { ViewResult } from "./ViewResult";
import "../../Activity.css"; // for `.run-list`
import "./Views.css";

export default function Views({ agent }: { agent: AgentShape }) {
  return <OpenDatabase agent={agent}>{(schema) => <List agent={agent} schema={schema} />}</OpenDatabase>;
}

function List({ agent, schema: { views, tables } }: { agent: AgentShape; schema: SchemaShape }) {
  const [params, setParams] = useSearchParams();
  const [isCreating, setCreating] = useState(false);
  const wanted = params.get("view");
  const chosen = wanted === null ? views[0] : views.find((view) => view.name === wanted);
  const dialog = isCreating && (
    <ViewDialog
      agent={agent}
      view={null}
      onClose={() => setCreating(false)}
      onSaved={(name) => {
        setCreating(false);
        setParams({ view: name });
      }}
    />
  );
  const make = (
    <button type="button" onClick={() => setCreating(true)}>
      <Icon name="plus" size={15} />
      New view
    </button>
  );
  if (views.length === 0) {
    return (
      <>
        <Empty icon="search" title="No views yet">
          <p>
            A view is a saved query. Ask {agent.name} in a session: “draw a chart of {tables[0]?.name ?? "memories"}”.
            Or write one yourself.
          </p>
          {make}
        </Empty>
        {dialog}
      </>
    );
  }
  return (
    <div className="view-split">
      <div className="view-side">
        <ul className="run-list" aria-label="Views">
          {views.map((view) => (
            <li key={view.name}>
              <button
                type="button"
                className="run-row"
                aria-pressed={view === chosen}
                onClick={() => setParams({ view: view.name }, { replace: true })}
              >
                <span className="run-row-top">
                  <strong>{view.name}</strong>
                  {view.pinned && (
                    <span className="muted" title="Shown on Home">
                      <Icon name="pin" size={14} />
                      <span className="hidden">pinned</span>
                    </span>
                  )}
                </span>
                <span className="muted small">{view.render}</span>
              </button>
            </li>
          ))}
        </ul>
        {make}
      </div>
      {chosen ? (
        <ViewDetail key={chosen.name} agent={agent} view={chosen} onGone={() => setParams({}, { replace: true })} />
      ) : (
        <p>There is no view “{wanted}”. Choose another.</p>
      )}
      {dialog}
    </div>
  );
}

function ViewDetail({ agent, view, onGone }: { agent: AgentShape; view: ViewShape; onGone: () => void }) {
  const [given, setGiven] = useState<Record<string, unknown>>({});
  const [asking, setAsking] = useState<"edit" | "delete" | null>(null);
  const path = { agent_id: agent.id, view: view.name };
  const missing = view.required_parameters.filter((name) => !(name in given));
  const found = useQuery({ ...viewRun(agent.id, view.name, given), enabled: missing.length === 0 });
  const pin = useWrite((pinned: boolean) =>
    call("PUT /agents/{agent_id}/db/views/{view}/pin", { path, body: { pinned } }),
  );
  const draw = useWrite((render: Render) =>
    call("PUT /agents/{agent_id}/db/views/{view}", { path, body: { ...definition(view), render } }),
  );
  const forget = useWrite(() => call("DELETE /agents/{agent_id}/db/views/{view}", { path }), onGone);
  const problem = pin.error ?? draw.error;
  return (
    <section className="stack view-shown" aria-labelledby="view-name">
      <header className="row">
        <h2 id="view-name" className="view-name">
          {view.name}
        </h2>
        <label className="row">
          <span className="muted small">Chart type</span>
          <select value={view.render} onChange={(event) => draw.mutate(event.target.value as Render)}>
            {RENDERS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => pin.mutate(!view.pinned)}>
          <Icon name="pin" size={15} />
          {view.pinned ? "Unpin" : "Pin to Home"}
        </button>
        <button type="button" onClick={() => setAsking("edit")}>
          Edit
        </button>
        <button type="button" className="danger" onClick={() => setAsking("delete")}>
          Delete
        </button>
      </header>
      <ErrorText error={problem} />
      {view.description && <p>{view.description}</p>}
      {view.parameters.length > 0 && <Parameters view={view} onRun={setGiven} />}
      <section className="preview" aria-label="Result">
        {missing.length > 0 ? (
          <p className="muted">Enter a value for {missing.join(", ")} to run it.</p>
        ) : found.isError ? (
          <ErrorText error={found.error} />
        ) : found.data ? (
          <>
            <ViewResult name={view.name} render={view.render} columns={found.data.columns} rows={found.data.rows} />
            <p className="row muted small">
              {found.data.truncated
                ? `The first ${count(found.data.row_count, "row")}; there are more.`
                : count(found.data.row_count, "row")}
              <button
                type="button"
                className="small"
                onClick={() => void download(exportOfView(agent.id, view.name, given))}
              >
                Export CSV
              </button>
            </p>
          </>
        ) : (
          <Loading what="the result" />
        )}
      </section>
      <CodeBlock code={view.sql} language="sql" />
      <p className="muted small">
        Created <Time at={view.created_at} zone={agent.zone} />, changed <Time at={view.updated_at} zone={agent.zone} />
      </p>
      {asking === "edit" && (
        <ViewDialog agent={agent} view={view} onClose={() => setAsking(null)} onSaved={() => setAsking(null)} />
      )}
      {asking === "delete" && (
        <Confirm
          title={`Delete ${view.name}?`}
          text="The rows stay as they are; only the saved query is deleted. The changelog keeps its text."
          action="Delete"
          error={forget.error}
          onConfirm={() => forget.mutate(undefined)}
          onClose={() => setAsking(null)}
        />
      )}
    </section>
  );
}

function Parameters({ view, onRun }: { view: ViewShape; onRun: (given: Record<string, unknown>) => void }) {
  const [texts, setTexts] = useState<Record<string, string>>({});
  return (
    <Form
      className="parameters"
      aria-label="Parameters"
      onSubmit={() => {
        const given = Object.entries(texts).filter(([, text]) => text !== "");
        onRun(Object.fromEntries(given.map(([name, text]) => [name, toValue(text)])));
      }}
    >
      {view.parameters.map(({ name, description, default: given }) => (
        <label key={name} className="field">
          {name}
          {description && <span className="muted small">{description}</span>}
          <input
            value={texts[name] ?? ""}
            required={view.required_parameters.includes(name)}
            placeholder={
              view.required_parameters.includes(name)
                ? "Required"
                : given === null || given === undefined
                  ? "null"
                  : String(given)
            }
            onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
          />
        </label>
      ))}
      <button type="submit">Run</button>
    </Form>
  );
}
