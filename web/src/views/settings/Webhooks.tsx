/** Outgoing webhooks: messages about events to other systems. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import type { NewWebhook, RevealedWebhookShape, WebhookDeliveryShape, WebhookShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { CopyButton } from "../../components/text/CodeBlock";
import { count } from "../../components/text/labels";
import { Time } from "../../components/text/times";
import { Confirm } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { SettingsSection } from "../../components/ui/SettingsSection";
import "./Webhooks.css";

const CHANGES = [["webhooks"]];
type Event = NewWebhook["events"][number];
const EVENTS: Record<Event, string> = {
  "run.finished": "A run finished",
  "run.failed": "A run failed",
  "wake.missed": "A planned time was missed",
  "loop.ended": "An agent scheduled no next run",
  notification: "Something is in the inbox",
};
const NAMES = Object.keys(EVENTS) as Event[];

export function Webhooks() {
  const webhooks = useQuery(queries.webhooks);
  const [made, setMade] = useState<RevealedWebhookShape | null>(null);
  return (
    <SettingsSection
      title="Webhooks"
      text="Messages to other systems about runs and notifications, signed as Standard Webhooks. For addresses that start work here, see Hooks in an agent's Configure."
    >
      <ErrorText error={webhooks.error} />
      {webhooks.data?.length === 0 && <p className="muted">None yet.</p>}
      <ul className="rows" aria-label="Webhooks">
        {webhooks.data?.map((each) => (
          <Webhook key={each.id} webhook={each} onReveal={setMade} />
        ))}
      </ul>
      {made && (
        <div className="secret" role="status">
          <p>
            The secret of <strong>{made.name}</strong>, shown only once. The receiver checks signatures with it:
          </p>
          <p className="row wrap">
            <code>{made.secret}</code> <CopyButton text={made.secret} label="Copy secret" />
          </p>
        </div>
      )}
      <Add onReveal={setMade} />
    </SettingsSection>
  );
}

function Webhook({ webhook, onReveal }: { webhook: WebhookShape; onReveal: (made: RevealedWebhookShape) => void }) {
  const path = { webhook_id: webhook.id };
  const [isAsking, setAsking] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const turn = queries.useAct(
    (enabled: boolean) => call("PATCH /webhooks/{webhook_id}", { path, body: { enabled } }),
    CHANGES,
  );
  const test = queries.useAct(() => call("POST /webhooks/{webhook_id}/test", { path }), CHANGES);
  const rotate = queries.useAct(() => call("POST /webhooks/{webhook_id}/rotate", { path }).then(onReveal), CHANGES);
  const remove = queries.useAct(() => call("DELETE /webhooks/{webhook_id}", { path }), CHANGES);
  const problem = turn.error ?? test.error ?? rotate.error;
  return (
    <li>
      <span className="grow">
        <strong>
          {webhook.name} {!webhook.enabled && <span className="badge calm">off</span>}
          {webhook.enabled && webhook.failing_since && <span className="badge bad">failing</span>}
        </strong>
        <span className="muted small">
          {webhook.url} · {webhook.events.join(", ")}
          {webhook.last_sent_at && (
            <>
              {" · last sent "}
              <Time at={webhook.last_sent_at} />
            </>
          )}
        </span>
        {webhook.last_error && webhook.last_error_at && (
          <span className="bad-text small">
            <Time at={webhook.last_error_at} />: {webhook.last_error}
          </span>
        )}
        {test.data && (
          <span role="status" className={test.data.status === "sent" ? "small" : "bad-text small"}>
            {test.data.status === "sent" ? "The receiver has taken it." : `Not sent: ${test.data.last_error}`}
          </span>
        )}
        {problem && (
          <span className="bad-text small" role="alert">
            {explain(problem)}
          </span>
        )}
      </span>
      <button type="button" className="small" disabled={test.isPending} onClick={() => test.mutate(undefined)}>
        {test.isPending ? "Sending…" : "Test"}
      </button>
      <button type="button" className="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Deliveries
      </button>
      <button type="button" className="small" disabled={rotate.isPending} onClick={() => rotate.mutate(undefined)}>
        Rotate secret
      </button>
      <button type="button" className="small" disabled={turn.isPending} onClick={() => turn.mutate(!webhook.enabled)}>
        {webhook.enabled ? "Turn off" : "Turn on"}
      </button>
      <button type="button" className="small" onClick={() => setAsking(true)}>
        Delete
      </button>
      {isOpen && <Deliveries webhook={webhook} />}
      {isAsking && (
        <Confirm
          title={`Delete ${webhook.name}?`}
          text="Its address, its secret and its deliveries are deleted. What waits to be sent is given up."
          action="Delete"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </li>
  );
}

function Deliveries({ webhook }: { webhook: WebhookShape }) {
  const deliveries = useQuery(queries.webhookDeliveries(webhook.id));
  const replay = queries.useAct(
    (id: string) =>
      call("POST /webhooks/{webhook_id}/deliveries/{webhook_delivery_id}/replay", {
        path: { webhook_id: webhook.id, webhook_delivery_id: id },
      }),
    CHANGES,
  );
  return (
    <div className="webhook-deliveries">
      <ErrorText error={deliveries.error ?? replay.error} />
      {deliveries.data?.length === 0 && <p className="muted small">Nothing was sent yet.</p>}
      <ul aria-label={`Deliveries of ${webhook.name}`}>
        {deliveries.data?.map((each) => (
          <li key={each.id}>
            <span className="grow small">
              <span>
                <Time at={each.created_at} /> · {each.event} · {state(each)}
              </span>
              {each.last_error && <span className="bad-text">{each.last_error}</span>}
            </span>
            {each.status !== "pending" && (
              <button type="button" className="small" onClick={() => replay.mutate(each.id)}>
                Send again
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

function state(message: WebhookDeliveryShape) {
  if (message.status === "sent") return "sent";
  if (message.status === "pending" && message.next_at && message.attempts > 0)
    return (
      <>
        tried {count(message.attempts, "time")}, next <Time at={message.next_at} />
      </>
    );
  return { pending: "waiting", failed: "given up", cancelled: "cancelled" }[message.status];
}

function Add({ onReveal }: { onReveal: (made: RevealedWebhookShape) => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<Event[]>(["run.failed", "notification"]);
  const add = queries.useAct(
    () => call("POST /webhooks", { body: { name, url, events } }).then(onReveal),
    CHANGES,
    () => {
      setName("");
      setUrl(""); // it may hold a secret, which is not kept in the page
    },
  );
  return (
    <Form act={add} onSubmit={() => add.mutate(undefined)}>
      <div className="row wrap">
        <input
          value={name}
          required
          maxLength={MAX_LENGTH.NewWebhook.name}
          placeholder="Name"
          aria-label="Name of the webhook"
          onChange={(event) => setName(event.target.value)}
        />
        <input
          value={url}
          required
          autoComplete="off"
          placeholder="https://…"
          aria-label="Address of the webhook"
          onChange={(event) => setUrl(event.target.value)}
        />
        <button type="submit" disabled={add.isPending || events.length === 0}>
          Add a webhook
        </button>
      </div>
      <div className="row wrap" role="group" aria-label="Events of the webhook">
        {NAMES.map((each) => (
          <label key={each} className="check small">
            <input
              type="checkbox"
              checked={events.includes(each)}
              onChange={(event) =>
                setEvents(NAMES.filter((one) => (one === each ? event.target.checked : events.includes(one))))
              }
            />
            {EVENTS[each]}
          </label>
        ))}
      </div>
      <p className="muted small">The address is not shown again, only its host.</p>
      <ErrorText error={add.error} />
    </Form>
  );
}
