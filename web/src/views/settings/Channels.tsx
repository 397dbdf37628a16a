/** Notification channels. An address is a secret: it is saved and never shown again. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import type { ChannelShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { Time } from "../../components/text/times";
import { Confirm } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { SettingsSection } from "../../components/ui/SettingsSection";

const CHANGES = [["channels"]];

export function Channels() {
  const channels = useQuery(queries.channels);
  return (
    <SettingsSection
      title="Channels"
      text="Notifications go to the inbox and to these channels: ntfy, e-mail, chat services and more."
    >
      <ErrorText error={channels.error} />
      {channels.data?.length === 0 && (
        <p className="muted">
          None yet. With ntfy, for example: pick a hard-to-guess topic, subscribe to it in the ntfy app, then add
          ntfy://your-topic here.
        </p>
      )}
      <ul className="rows" aria-label="Channels">
        {channels.data?.map((channel) => (
          <Channel key={channel.id} channel={channel} />
        ))}
      </ul>
      <Add />
    </SettingsSection>
  );
}

const OUTCOMES = {
  sent: "Sent. Check that it arrived.",
  failed: "Not sent.",
  timed_out: "It did not answer in time.",
  rate_limited: "Not sent: too many within the hour.",
};

function Channel({ channel }: { channel: ChannelShape }) {
  const path = { channel_id: channel.id };
  const [isAsking, setAsking] = useState(false);
  const turn = queries.useAct(
    (enabled: boolean) => call("PATCH /channels/{channel_id}", { path, body: { enabled } }),
    CHANGES,
  );
  const test = queries.useAct(() => call("POST /channels/{channel_id}/test", { path }), CHANGES);
  const remove = queries.useAct(() => call("DELETE /channels/{channel_id}", { path }), CHANGES);
  const problem = turn.error ?? test.error;
  const hasJustFailed =
    channel.last_error !== null &&
    (channel.last_sent_at === null || (channel.last_error_at ?? "") > channel.last_sent_at);
  return (
    <li>
      <span className="grow">
        <strong>
          {channel.name} {!channel.enabled && <span className="badge calm">off</span>}
          {channel.enabled && hasJustFailed && <span className="badge bad">failing</span>}
        </strong>
        <span className="muted small">
          {channel.url}
          {channel.last_sent_at && (
            <>
              {" "}
              · last sent <Time at={channel.last_sent_at} />
            </>
          )}
        </span>
        {channel.last_error && channel.last_error_at && (
          <span className={hasJustFailed ? "bad-text small" : "muted small"}>
            <Time at={channel.last_error_at} />: {channel.last_error}
          </span>
        )}
        {test.data && (
          <span role="status" className={test.data.outcome === "sent" ? "small" : "bad-text small"}>
            {OUTCOMES[test.data.outcome]} {test.data.reason}
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
      <button type="button" className="small" disabled={turn.isPending} onClick={() => turn.mutate(!channel.enabled)}>
        {channel.enabled ? "Turn off" : "Turn on"}
      </button>
      <button type="button" className="small" onClick={() => setAsking(true)}>
        Delete
      </button>
      {isAsking && (
        <Confirm
          title={`Delete ${channel.name}?`}
          text="Its address is deleted; to use it again you have to enter it again."
          action="Delete"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </li>
  );
}

function Add() {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const add = queries.useAct(
    () => call("POST /channels", { body: { name, url } }),
    CHANGES,
    () => {
      setName("");
      setUrl(""); // a secret, which is not kept in the page
    },
  );
  return (
    <Form act={add} onSubmit={() => add.mutate(undefined)}>
      <div className="row wrap">
        <input
          value={name}
          required
          maxLength={MAX_LENGTH.NewChannel.name}
          placeholder="Name"
          aria-label="Name of the channel"
          onChange={(event) => setName(event.target.value)}
        />
        <input
          value={url}
          required
          type="password"
          autoComplete="off"
          placeholder="Address, such as ntfy://TOPIC"
          aria-label="Address of the channel"
          onChange={(event) => setUrl(event.target.value)}
        />
        <button type="submit" disabled={add.isPending}>
          Add a channel
        </button>
      </div>
      <p className="muted small">
        The address is a URL as defined by{" "}
        <a href="https://github.com/caronc/apprise/wiki" target="_blank" rel="noopener noreferrer">
          apprise
        </a>{" "}
        (an open-source library). It is a secret and is not shown again.
      </p>
      <ErrorText error={add.error} />
    </Form>
  );
}
