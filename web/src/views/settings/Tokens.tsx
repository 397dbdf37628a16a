import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { BASE } from "../../api/base";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { NewTokenShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { CopyButton } from "../../components/text/CodeBlock";
import { Time } from "../../components/text/times";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { SettingsSection } from "../../components/ui/SettingsSection";

const SCOPES: [NewTokenShape["scope"], string][] = [
  ["read", "Read — view only"],
  ["chat", "Chat — read and send messages"],
  ["schedule", "Schedule — chat and schedule runs"],
  ["admin", "Admin — everything"],
];

export function Tokens() {
  const tokens = useQuery(queries.tokens).data ?? [];
  const me = useQuery(queries.me).data;
  const [name, setName] = useState("");
  const [scope, setScope] = useState<NewTokenShape["scope"]>("chat");
  const make = queries.useAct(
    () => call("POST /tokens", { body: { name, scope } }),
    [["tokens"]],
    () => setName(""),
  );
  const revoke = queries.useAct(
    (id: string) => call("DELETE /tokens/{token_id}", { path: { token_id: id } }),
    [["tokens"]],
  );
  const problem = make.error ?? revoke.error;
  return (
    <SettingsSection title="Tokens" text="For programs and logged-in browsers. Revoking one closes its connections.">
      <ul className="rows" aria-label="Tokens">
        {tokens.map((token) => (
          <li key={token.id}>
            <span className="grow">
              <strong>{token.name}</strong>
              <span className="muted small">
                {token.kind === "browser" ? "browser" : "program"} · {token.scope} · since{" "}
                <Time at={token.created_at} />
                {token.id === me?.token_id && " · this one"}
              </span>
            </span>
            {token.id !== me?.token_id && (
              <button type="button" className="small" onClick={() => revoke.mutate(token.id)}>
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      {make.data && (
        <div className="secret" role="status">
          <p>
            The token <strong>{make.data.token.name}</strong>, shown only once:
          </p>
          <p className="row">
            <code>{make.data.secret}</code> <CopyButton text={make.data.secret} />
          </p>
          {make.data.token.scope !== "read" && (
            <p className="small">
              OpenAI clients such as Open WebUI take it as their API key, with the base URL{" "}
              <code>{`${location.origin}${BASE}/v1`}</code> and the name of an agent as the model.
            </p>
          )}
        </div>
      )}
      <Form className="row wrap" act={make} onSubmit={() => make.mutate(undefined)}>
        <input
          value={name}
          required
          maxLength={MAX_LENGTH.NewTokenShape.name}
          placeholder="Name of the program"
          aria-label="Name of the program"
          onChange={(event) => setName(event.target.value)}
        />
        <select
          value={scope}
          aria-label="Scope"
          onChange={(event) => setScope(event.target.value as NewTokenShape["scope"])}
        >
          {SCOPES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button type="submit">Create token</button>
      </Form>
      <ErrorText error={problem} />
    </SettingsSection>
  );
}
