/** Browsers that get push messages. Their endpoints are secrets, which the server never shows. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, explain } from "../../api/client";
import { findObstacle, PushProblem, subscribe, unsubscribe, useSubscribed } from "../../api/push";
import * as queries from "../../api/queries";
import type { BrowserShape, Browsers } from "../../api/rest.generated";
import { Time } from "../../components/text/times";
import { Confirm } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { SettingsSection } from "../../components/ui/SettingsSection";

const CHANGES = [["push"]];

export function Push() {
  const push = useQuery(queries.pushBrowsers);
  const here = useSubscribed();
  const isHere = push.data?.browsers.some((each) => each.id === here?.id) ?? false;
  return (
    <SettingsSection
      title="Notifications"
      text="Push messages to your browsers, also while this page is closed. They are encrypted for the browser; its push service only passes them on."
    >
      <ErrorText error={push.error} />
      {push.data && !isHere && <Add offer={push.data} />}
      <ul className="rows" aria-label="Browsers with push messages">
        {push.data?.browsers.map((each) => (
          <Browser key={each.id} browser={each} isHere={each.id === here?.id} />
        ))}
      </ul>
    </SettingsSection>
  );
}

const OBSTACLES = {
  insecure:
    "Push messages need HTTPS, and this page was loaded without it. Open it through a reverse proxy with a certificate, or at localhost on the server's own machine.",
  unsupported:
    "This browser has no push messages. On an iPhone or iPad, add this page to the home screen and open it from there.",
  blocked: "Notifications of this page are blocked in this browser. Allow them in its settings for this site.",
} as const;

function Add({ offer }: { offer: Browsers }) {
  const add = queries.useAct(() => subscribe(offer), CHANGES);
  const obstacle = findObstacle();
  const problem = offer.problem ?? (obstacle && OBSTACLES[obstacle]);
  if (problem) return <p className="muted">{problem}</p>;
  return (
    <>
      <p>
        <button type="button" disabled={add.isPending} onClick={() => add.mutate(undefined)}>
          {add.isPending ? "Waiting for the browser…" : "Notify this browser"}
        </button>
      </p>
      {add.error && (
        <p className="bad-text" role="alert">
          {textOf(add.error)}
        </p>
      )}
    </>
  );
}

/** A problem of the browser is a sentence already; others are the server's. */
function textOf(error: unknown): string {
  return error instanceof PushProblem ? error.message : explain(error);
}

const OUTCOMES = {
  handed_over: "Handed to the push service. Check that it appears.",
  gone: "Not sent.",
  failed: "Not sent.",
  timed_out: "The push service did not answer in time.",
  rate_limited: "Not sent.",
};

function Browser({ browser, isHere }: { browser: BrowserShape; isHere: boolean }) {
  const [isAsking, setAsking] = useState(false);
  const path = { subscription_id: browser.id };
  const test = queries.useAct(() => call("POST /push-subscriptions/{subscription_id}/test", { path }), CHANGES);
  const remove = queries.useAct(() => unsubscribe(browser.id), CHANGES);
  return (
    <li>
      <span className="grow">
        <strong>
          {browser.name} {isHere && <span className="badge calm">this browser</span>}
        </strong>
        <span className="muted small">
          since <Time at={browser.created_at} /> · {browser.service}
          {browser.last_sent_at && (
            <>
              {" "}
              · last message <Time at={browser.last_sent_at} />
            </>
          )}
        </span>
        {browser.last_error && browser.last_error_at && (
          <span className="bad-text small">
            <Time at={browser.last_error_at} />: {browser.last_error}
          </span>
        )}
        {test.data && (
          <span role="status" className={test.data.outcome === "handed_over" ? "small" : "bad-text small"}>
            {OUTCOMES[test.data.outcome]} {test.data.reason}
          </span>
        )}
        {test.error && (
          <span className="bad-text small" role="alert">
            {explain(test.error)}
          </span>
        )}
      </span>
      <button type="button" className="small" disabled={test.isPending} onClick={() => test.mutate(undefined)}>
        {test.isPending ? "Sending…" : "Test"}
      </button>
      <button type="button" className="small" onClick={() => setAsking(true)}>
        Remove
      </button>
      {isAsking && (
        <Confirm
          title={`Remove ${browser.name}?`}
          text="It gets no more push messages. You can add it again in that browser."
          action="Remove"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </li>
  );
}
