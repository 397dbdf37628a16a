/** Create or edit a view; its result can be previewed before it is saved. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../../../api/client";
import { type Render, useWrite } from "../../../../api/database";
import type { AgentShape, NewParameter, ViewShape } from "../../../../api/rest.generated";
import { MAX_LENGTH } from "../../../../api/server.generated";
import { Dialog } from "../../../../components/ui/Dialog";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";
import { toValue } from "../data/values";
import { ViewResult } from "./ViewResult";

export const RENDERS: Render[] = ["table", "bar", "line", "pie", "number"];

interface Props {
  agent: AgentShape;
  view: ViewShape | null; // null: a new one
  onClose: () => void;
  onSaved: (name: string) => void;
}

/** Return the names of the parameters (`:name`) of a statement, outside of strings and comments. */
function parametersOf(sql: string): string[] {
  const bare = sql.replaceAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  return [...new Set([...bare.matchAll(/:([A-Za-z_]\w*)/g)].map((each) => each[1] ?? ""))];
}

export function ViewDialog({ agent, view, onClose, onSaved }: Props) {
  const [name, setName] = useState(view?.name ?? "");
  const [sql, setSql] = useState(view?.sql ?? "SELECT ");
  const [description, setDescription] = useState(view?.description ?? "");
  const [render, setRender] = useState<Render>(view?.render ?? "table");
  const [defaults, setDefaults] = useState<Record<string, string>>(() =>
    Object.fromEntries(
      (view?.parameters ?? []).map((each) => [
        each.name,
        each.default === null || each.default === undefined ? "" : String(each.default),
      ]),
    ),
  );
  const names = parametersOf(sql);
  const isNullable = (each: string) =>
    view?.parameters.some(({ name }) => name === each) === true && !view.required_parameters.includes(each);
  const parameters: NewParameter[] = names.map((each) => {
    const old = view?.parameters.find((parameter) => parameter.name === each);
    const text = defaults[each] ?? "";
    const described = { name: each, description: old?.description ?? "" };
    // An empty default makes the parameter required, unless it had a default before.
    if (text === "") return isNullable(each) ? { ...described, default: null } : described;
    return { ...described, default: toValue(text) };
  });
  const values = Object.fromEntries(parameters.map((each) => [each.name, each.default ?? null]));
  const attempt = useMutation({
    mutationFn: () =>
      call("POST /agents/{agent_id}/db/query", {
        path: { agent_id: agent.id },
        body: { sql, params: names.length ? values : null, limit: 200 },
      }),
  });
  const save = useWrite(
    () =>
      call("PUT /agents/{agent_id}/db/views/{view}", {
        path: { agent_id: agent.id, view: name },
        body: { sql, description, parameters, render },
      }),
    () => onSaved(name),
  );
  const problem = save.error ?? attempt.error;
  return (
    <Dialog title={view ? `Edit ${view.name}` : "New view"} onClose={onClose}>
      <Form act={save} onSubmit={() => save.mutate(undefined)}>
        {!view && (
          <label className="field">
            Name
            <input
              value={name}
              required
              pattern="[A-Za-z][A-Za-z0-9_]{0,62}"
              title="Letters, digits and _, a letter first"
              onChange={(event) => setName(event.target.value)}
            />
          </label>
        )}
        <label className="field">
          SQL, one SELECT; a parameter is written :name
          <textarea
            className="mono"
            rows={6}
            required
            spellCheck={false}
            value={sql}
            onChange={(event) => setSql(event.target.value)}
          />
        </label>
        {names.map((each) => (
          <label key={each} className="field">
            Default for {each}
            <input
              value={defaults[each] ?? ""}
              placeholder={isNullable(each) ? "null" : "none: asked for each time"}
              onChange={(event) => setDefaults({ ...defaults, [each]: event.target.value })}
            />
          </label>
        ))}
        <label className="field">
          Description
          <input
            value={description}
            maxLength={MAX_LENGTH.NewView.description}
            onChange={(event) => setDescription(event.target.value)}
          />
        </label>
        <label className="field">
          Chart type
          <select value={render} onChange={(event) => setRender(event.target.value as Render)}>
            {RENDERS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <ErrorText error={problem} />
        {attempt.data && (
          <ViewResult name="Preview" render={render} columns={attempt.data.columns} rows={attempt.data.rows} />
        )}
        <div className="row end">
          <button type="button" className="quiet" onClick={() => attempt.mutate()}>
            Preview
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={save.isPending}>
            Save
          </button>
        </div>
      </Form>
    </Dialog>
  );
}
