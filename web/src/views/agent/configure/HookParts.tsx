/** Parts of a hook: its deliveries, and the dialog that replaces its secret. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { HookDeliveryShape, HookShape, RevealedHook } from "../../../api/rest.generated";
import { CodeBlock } from "../../../components/text/CodeBlock";
import { Time } from "../../../components/text/times";
import { Dialog } from "../../../components/ui/Dialog";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Form } from "../../../components/ui/Form";

const OUTCOMES: Record<HookDeliveryShape["outcome"], string> = {
  run: "started a run",
  folded: "part of a run",
  notified: "notified you",
  ping: "ping",
  filtered: "not an event it is for",
};

export function Deliveries({ hook }: { hook: HookShape }) {
  const deliveries = useQuery(queries.hookDeliveries(hook.id));
  return (
    <div className="deliveries stack">
      <ErrorText error={deliveries.error} />
      {deliveries.data?.length === 0 && (
        <p className="muted small">Nothing was delivered yet. Test sends a signed delivery from here.</p>
      )}
      <ul aria-label={`Deliveries of ${hook.name}`}>
        {deliveries.data?.map((each) => (
          <Delivery key={each.id} hook={hook} delivery={each} />
        ))}
      </ul>
    </div>
  );
}

function Delivery({ hook, delivery }: { hook: HookShape; delivery: HookDeliveryShape }) {
  const [isOpen, setOpen] = useState(false);
  const body = useQuery({
    queryKey: ["hooks", hook.id, "deliveries", delivery.id],
    queryFn: () =>
      call("GET /hooks/{hook_id}/deliveries/{hook_delivery_id}", {
        path: { hook_id: hook.id, hook_delivery_id: delivery.id },
      }),
    enabled: isOpen,
  });
  return (
    <li>
      <span className="grow small">
        <span>
          <Time at={delivery.at} /> · {delivery.event ?? "no event"} · {OUTCOMES[delivery.outcome]}
          {delivery.run_id && (
            <>
              {" · "}
              <Link href={`/ui/runs/${delivery.run_id}`}>run</Link>
            </>
          )}
        </span>
        <span className="muted">
          {delivery.delivery_id} · {delivery.size.toLocaleString()} bytes
        </span>
      </span>
      <button type="button" className="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Hide body" : "Show body"}
      </button>
      {isOpen && (
        <div className="whole">
          <ErrorText error={body.error} />
          {body.data &&
            (body.data.payload === null ? (
              <p className="muted small">Its body was deleted, or never kept.</p>
            ) : (
              <CodeBlock code={body.data.payload} />
            ))}
        </div>
      )}
    </li>
  );
}

interface RotateProps {
  hook: HookShape;
  onReveal: (hook: RevealedHook) => void;
  onClose: () => void;
}

export function Rotate({ hook, onReveal, onClose }: RotateProps) {
  const [secret, setSecret] = useState("");
  const rotate = queries.useAct(
    () =>
      call("POST /hooks/{hook_id}/rotate", { path: { hook_id: hook.id }, body: secret ? { secret } : {} }).then(
        onReveal,
      ),
    [["hooks"]],
    onClose,
  );
  return (
    <Dialog title={`Rotate the secret of ${hook.name}`} onClose={onClose}>
      <Form act={rotate} onSubmit={() => rotate.mutate(undefined)}>
        <p>The secret before is accepted for another 24 hours, so that no delivery is lost meanwhile.</p>
        <label className="stack">
          Secret that the sender made; leave it empty to have one made here
          <input
            type="password"
            autoComplete="off"
            value={secret}
            onChange={(event) => setSecret(event.target.value)}
          />
        </label>
        <ErrorText error={rotate.error} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={rotate.isPending}>
            Rotate
          </button>
        </div>
      </Form>
    </Dialog>
  );
}
