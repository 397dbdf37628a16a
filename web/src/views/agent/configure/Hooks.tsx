/** Incoming hooks of an agent: addresses at which other systems start its work. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { BASE } from "../../../api/base";
import { call, explain } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentShape, HookShape, RevealedHook } from "../../../api/rest.generated";
import { CopyButton } from "../../../components/text/CodeBlock";
import { count } from "../../../components/text/labels";
import { Time } from "../../../components/text/times";
import { Confirm } from "../../../components/ui/Dialog";
import { ErrorText } from "../../../components/ui/ErrorText";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { Deliveries, Rotate } from "./HookParts";
import { NewHookForm } from "./NewHook";
import { SENDERS } from "./senders";
import "./Hooks.css";

const CHANGES = [["hooks"]];

export function addressOf(hook: HookShape): string {
  return hook.url ?? `${location.origin}${BASE}/hooks/${hook.id}`;
}

export function Hooks({ agent }: { agent: AgentShape }) {
  const hooks = useQuery(queries.hooks);
  const mine = hooks.data?.filter((hook) => hook.agent_id === agent.id) ?? [];
  const [made, setMade] = useState<RevealedHook | null>(null);
  const [isAdding, setAdding] = useState(false);
  return (
    <SettingsSection
      id="hooks"
      title="Hooks"
      text="Addresses at which GitHub, Stripe, GitLab or a program of yours starts work of this agent. What they send is data to it, never an instruction."
    >
      <ErrorText error={hooks.error} />
      {hooks.data && mine.length === 0 && !isAdding && <p className="muted">None yet.</p>}
      <ul className="rows" aria-label="Hooks">
        {mine.map((hook) => (
          <Hook key={hook.id} hook={hook} onReveal={setMade} />
        ))}
      </ul>
      {made && <Secret hook={made} />}
      {isAdding ? (
        <NewHookForm
          agent={agent}
          onDone={(hook) => {
            setAdding(false);
            if (hook) setMade(hook);
          }}
        />
      ) : (
        <div>
          <button type="button" onClick={() => setAdding(true)}>
            Add a hook
          </button>
        </div>
      )}
    </SettingsSection>
  );
}

/** The address and, this once, the secret. */
function Secret({ hook }: { hook: RevealedHook }) {
  return (
    <div className="secret stack" role="status">
      <p>
        Set up <strong>{hook.name}</strong> at the sender. {SENDERS[hook.scheme].steps}
      </p>
      <p className="row wrap">
        Address <code>{addressOf(hook)}</code> <CopyButton text={addressOf(hook)} label="Copy address" />
      </p>
      {hook.secret && (
        <p className="row wrap">
          Secret, shown only once <code>{hook.secret}</code> <CopyButton text={hook.secret} label="Copy secret" />
        </p>
      )}
      {hook.url === null && (
        <p className="small">
          Other machines reach this server at another address: its owner can set it as <code>public_url</code>.
        </p>
      )}
    </div>
  );
}

const ANSWERS = {
  accepted: "Accepted: a run starts.",
  folded: "Accepted: it is part of the run that waits.",
  notified: "You were notified.",
  duplicate: "A duplicate of one before.",
  ping: "Accepted as a ping.",
  ignored: "Accepted, but not an event this hook is for.",
} as const;

function Hook({ hook, onReveal }: { hook: HookShape; onReveal: (hook: RevealedHook) => void }) {
  const path = { hook_id: hook.id };
  const [asks, setAsks] = useState<"delete" | "rotate" | null>(null);
  const [isOpen, setOpen] = useState(false);
  const turn = queries.useAct(
    (enabled: boolean) => call("PATCH /hooks/{hook_id}", { path, body: { enabled } }),
    CHANGES,
  );
  const test = queries.useAct(() => call("POST /hooks/{hook_id}/test", { path }), [...CHANGES, ["runs"]]);
  const remove = queries.useAct(() => call("DELETE /hooks/{hook_id}", { path }), CHANGES);
  const problem = turn.error ?? test.error;
  return (
    <li>
      <span className="grow">
        <strong>
          {hook.name} {!hook.enabled && <span className="badge calm">off</span>}
        </strong>
        <span className="muted small">
          {SENDERS[hook.scheme].label}
          {hook.events.length > 0 && ` · ${hook.events.join(", ")}`}
          {hook.mode === "notify" && " · notifies you, without a model"}
          {hook.coalesce_seconds > 0 && ` · one run for ${count(hook.coalesce_seconds, "second")}`}
          {hook.session_id && (
            <>
              {" · lands in "}
              <Link href={`/ui/sessions/${hook.session_id}`}>a session</Link>
            </>
          )}
          {hook.last_at && (
            <>
              {" · last "}
              <Time at={hook.last_at} />
            </>
          )}
        </span>
        <span className="row wrap small">
          <code className="address">{addressOf(hook)}</code>
          <CopyButton text={addressOf(hook)} label="Copy address" />
        </span>
        {hook.refused_at && (
          <span className="muted small">
            Refused one <Time at={hook.refused_at} />: {hook.refused_why}.
          </span>
        )}
        {test.data && (
          <span role="status" className="small">
            {ANSWERS[test.data.status]}{" "}
            {test.data.run_id && <Link href={`/ui/runs/${test.data.run_id}`}>Show the run</Link>}
          </span>
        )}
        {problem && (
          <span className="bad-text small" role="alert">
            {explain(problem)}
          </span>
        )}
      </span>
      <button type="button" className="small" disabled={test.isPending} onClick={() => test.mutate(undefined)}>
        Test
      </button>
      <button type="button" className="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Deliveries
      </button>
      <button type="button" className="small" onClick={() => setAsks("rotate")}>
        Rotate secret
      </button>
      <button type="button" className="small" disabled={turn.isPending} onClick={() => turn.mutate(!hook.enabled)}>
        {hook.enabled ? "Turn off" : "Turn on"}
      </button>
      <button type="button" className="small" onClick={() => setAsks("delete")}>
        Delete
      </button>
      {isOpen && <Deliveries hook={hook} />}
      {asks === "rotate" && <Rotate hook={hook} onReveal={onReveal} onClose={() => setAsks(null)} />}
      {asks === "delete" && (
        <Confirm
          title={`Delete ${hook.name}?`}
          text="Its deliveries are deleted, and runs of it that have not begun are cancelled. The sender gets 404."
          action="Delete"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsks(null)}
        />
      )}
    </li>
  );
}
