import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call, explain } from "../api/client";
import * as queries from "../api/queries";
import type { NotificationShape } from "../api/rest.generated";
import { BookDialog } from "../components/BookDialog";
import { Icon } from "../components/Icon";
import { allowNotifications, mayNotify, placeOf } from "../components/notifications";
import { Empty, Failure, Loading, PageHeader } from "../components/Page";
import { Time } from "../components/times";

export default function InboxView() {
  const inbox = useQuery(queries.notifications);
  const readAll = queries.useAct(() => call("POST /notifications/read"), [["notifications"]]);
  if (inbox.isError) return <Failure title="Inbox" text={explain(inbox.error)} retry={() => void inbox.refetch()} />;
  if (!inbox.data) return <Loading what="the inbox" />;
  const unread = inbox.data.filter((each) => each.read_at === null).length;
  return (
    <div className="page">
      <PageHeader title={unread ? `Inbox (${unread})` : "Inbox"}>
        <BrowserNotifications />
        {unread > 0 && (
          <button type="button" onClick={() => readAll.mutate(undefined)}>
            <Icon name="check" size={16} />
            All read
          </button>
        )}
      </PageHeader>
      <div className="page-body">
        {inbox.data.length === 0 ? (
          <Empty icon="inbox" title="Nothing here yet">
            <p>What agents tell you with their notify tool comes here, and so does every failure that needs you.</p>
          </Empty>
        ) : (
          <ul className="inbox">
            {inbox.data.map((each) => (
              <Entry key={each.id} entry={each} />
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

function Entry({ entry }: { entry: NotificationShape }) {
  const agent = useQuery(queries.agents).data?.find((each) => each.id === entry.agent_id);
  const [isBooking, setBooking] = useState(false);
  const changes = [["notifications"], ["runs"]];
  const read = queries.useAct(() => call("POST /notifications/{notification_id}/read", { path: { notification_id: entry.id } }), changes);
  const again = queries.useAct(() => call("POST /runs/{run_id}/again", { path: { run_id: entry.run_id ?? "" } }), changes);
  const markRead = () => entry.read_at === null && read.mutate(undefined);
  const isLoopEnd = entry.code === "loop_ended";
  return (
    <li className={entry.read_at === null ? "inbox-entry is-unread" : "inbox-entry"}>
      <Link href={placeOf(entry)} className="inbox-link" onClick={markRead}>
        <strong>{entry.title}</strong>
        <span>{entry.body}</span>
        <span className="muted small">
          {agent && `${agent.name} · `}
          <Time at={entry.created_at} zone={agent?.timezone} form="both" />
        </span>
      </Link>
      <div className="row">
        {isLoopEnd && entry.run_id && (
          <button type="button" className="small" onClick={() => again.mutate(undefined)}>
            Run now
          </button>
        )}
        {isLoopEnd && agent && (
          <button type="button" className="small" onClick={() => setBooking(true)}>
            Book again
          </button>
        )}
        {entry.read_at === null && (
          <button type="button" className="small quiet" onClick={markRead} aria-label={`Mark “${entry.title}” as read`}>
            <Icon name="check" size={15} />
          </button>
        )}
      </div>
      {again.isError && <p className="bad-text">{explain(again.error)}</p>}
      {isBooking && agent && <BookDialog agent={agent} sessionId={null} wake={null} onClose={() => setBooking(false)} />}
    </li>
  );
}

export function BrowserNotifications() {
  const [isOn, setOn] = useState(mayNotify);
  if (!("Notification" in window)) return null;
  return (
    <button
      type="button"
      className="quiet"
      aria-pressed={isOn}
      title="Show notifications of the browser while this page is in the background"
      onClick={() => void allowNotifications(!isOn).then(setOn)}
    >
      <Icon name="bell" size={16} />
      <span className="wide-only">{isOn ? "Browser notifications on" : "Browser notifications off"}</span>
    </button>
  );
}
