/** The models of this server: test, edit, remove them, and choose the default. For owners. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { DefaultShape } from "../../api/rest.generated";
import ConnectModel from "../../components/models/ConnectModel";
import { isGone } from "../../components/models/names";
import { MODEL_CHANGES } from "../../components/models/trial";
import { ErrorText } from "../../components/ui/ErrorText";
import { SettingsSection } from "../../components/ui/SettingsSection";
import { ModelRow } from "./ModelRow";

export function Models() {
  const models = useQuery(queries.models);
  const [isAdding, setAdding] = useState(false);
  const fallback = models.data?.default;
  const names = models.data?.models.map(({ name }) => name) ?? [];
  return (
    <SettingsSection id="models" title="Models" text="Agents use the default, or one of these by its name.">
      <ErrorText error={queries.problemOf(models)} />
      {fallback?.source === "settings" && (
        <p>
          The default is <code>{fallback.model}</code>. It is named in the server's settings (<code>WAKEFUL_MODEL</code>
          , or <code>model</code> in the file) and can only be changed there.
        </p>
      )}
      {fallback && isGone(fallback.model, names) && (
        <p className="bad-text">
          The default <code>{fallback.model}</code> was removed. Runs of agents without a model of their own fail until
          another model is the default.
        </p>
      )}
      {models.data && (
        <ul className="rows" aria-label="Models">
          {models.data.models.map((model) => (
            <ModelRow key={model.name} model={model} canBeDefault={fallback?.source !== "settings"} />
          ))}
          {fallback && <DemoRow fallback={fallback} />}
        </ul>
      )}
      {!models.isPending && ( // before, the list would push it away from under a click
        <div>
          <button type="button" onClick={() => setAdding(true)}>
            Connect a model
          </button>
        </div>
      )}
      {isAdding && <ConnectModel onClose={() => setAdding(false)} />}
    </SettingsSection>
  );
}

function DemoRow({ fallback }: { fallback: DefaultShape }) {
  const choose = queries.useAct(() => call("PUT /models/default", { body: { model: null } }), MODEL_CHANGES);
  return (
    <li>
      <span className="grow">
        <strong>
          demo {fallback.model === "demo" && <span className="badge good">default</span>}{" "}
          <span className="badge">built in</span>
        </strong>
        <span className="muted small">
          Not an LLM: it works offline, understands a few sentences, and calls the real tools for them.
        </span>
        <ErrorText error={choose.error} />
      </span>
      {fallback.source === "chosen" && (
        <button type="button" className="small" disabled={choose.isPending} onClick={() => choose.mutate(undefined)}>
          Make default
        </button>
      )}
    </li>
  );
}
