/** The form of a new hook. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentShape, NewHook, RevealedHook } from "../../../api/rest.generated";
import { MAX_LENGTH } from "../../../api/server.generated";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Form } from "../../../components/ui/Form";
import { SENDERS } from "./senders";

const EVENTS: Record<NewHook["scheme"], string> = {
  github: "push, pull_request.opened",
  gitlab: "Push Hook, Merge Request Hook",
  stripe: "invoice.paid, customer.*",
  standard: "user.created, user.*",
  bearer: "the field “type” of the body",
};

interface Props {
  agent: AgentShape;
  onDone: (made: RevealedHook | null) => void;
}

export function NewHookForm({ agent, onDone }: Props) {
  const [name, setName] = useState("");
  const [scheme, setScheme] = useState<NewHook["scheme"]>("github");
  const [isRun, setRun] = useState(true);
  const [instructions, setInstructions] = useState("");
  const [events, setEvents] = useState("");
  const [tools, setTools] = useState("");
  const [seconds, setSeconds] = useState("0");
  const [sessionId, setSessionId] = useState("");
  const [isConfirmed, setConfirmed] = useState(false);
  const sessions = useInfiniteQuery(queries.sessions({})).data?.pages.flatMap((page) => page.sessions) ?? [];
  const add = queries.useAct(
    () =>
      call("POST /agents/{agent_id}/hooks", {
        path: { agent_id: agent.id },
        body: {
          name: name.trim(),
          scheme,
          instructions,
          mode: isRun ? "run" : "notify",
          events: listed(events),
          tools: tools.trim() ? listed(tools) : null,
          coalesce_seconds: Number(seconds),
          session_id: sessionId || null,
          confirm_session: isConfirmed,
        },
      }).then(onDone),
    [["hooks"]],
  );
  return (
    <Form className="stack new-hook" aria-label="New hook" act={add} onSubmit={() => add.mutate(undefined)}>
      <div className="row wrap">
        <input
          value={name}
          required
          maxLength={MAX_LENGTH.NewHook.name}
          placeholder="Name"
          aria-label="Name of the hook"
          onChange={(event) => setName(event.target.value)}
        />
        <select
          value={scheme}
          aria-label="Sender"
          onChange={(event) => setScheme(event.target.value as NewHook["scheme"])}
        >
          {Object.entries(SENDERS).map(([value, { label }]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <select
          value={isRun ? "run" : "notify"}
          aria-label="What a delivery does"
          onChange={(event) => setRun(event.target.value === "run")}
        >
          <option value="run">Run the agent</option>
          <option value="notify">Notify me, without a model</option>
        </select>
      </div>
      <label className="stack">
        {isRun ? "What the agent should do with what is sent" : "Text of the notification (optional)"}
        <textarea
          rows={3}
          required={isRun}
          value={instructions}
          placeholder={isRun ? "Read what was pushed, and note what changed in changes.md with write_file." : ""}
          onChange={(event) => setInstructions(event.target.value)}
        />
      </label>
      <label className="stack">
        Events, separated by commas; empty: all
        <input value={events} placeholder={EVENTS[scheme]} onChange={(event) => setEvents(event.target.value)} />
      </label>
      {isRun && (
        <details>
          <summary>More</summary>
          <div className="stack">
            <label className="stack">
              Tools of its runs, separated by commas; empty: those that change nothing outside of this agent
              <input
                value={tools}
                placeholder="read_file, write_file, notify"
                onChange={(event) => setTools(event.target.value)}
              />
            </label>
            <label className="stack">
              Fold the deliveries of this many seconds into one run
              <input
                type="number"
                min={0}
                max={3600}
                value={seconds}
                onChange={(event) => setSeconds(event.target.value)}
              />
            </label>
            <label className="stack">
              Where its runs land
              <select value={sessionId} onChange={(event) => setSessionId(event.target.value)}>
                <option value="">A new session for each run</option>
                {sessions
                  .filter((session) => session.agent_id === agent.id)
                  .map((session) => (
                    <option key={session.id} value={session.id}>
                      {session.title || "Untitled"}
                    </option>
                  ))}
              </select>
            </label>
            {sessionId && (
              <label className="check">
                <input
                  type="checkbox"
                  required
                  checked={isConfirmed}
                  onChange={(event) => setConfirmed(event.target.checked)}
                />
                What is sent stays in that session, and every later run there reads it, with all of the agent's tools. I
                want that.
              </label>
            )}
          </div>
        </details>
      )}
      <ErrorText error={add.error} />
      <div className="row">
        <button type="submit" className="primary" disabled={add.isPending}>
          Add
        </button>
        <button type="button" onClick={() => onDone(null)}>
          Cancel
        </button>
      </div>
    </Form>
  );
}

function listed(text: string): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
}
