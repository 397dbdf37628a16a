import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import { allowNotifications, mayNotify } from "../../components/frame/notifications";
import { Empty, Failure, Loading, PageHeader } from "../../components/frame/Page";
import { Icon } from "../../components/ui/Icon";
import { InboxEntry } from "./InboxEntry";
import { WaitingApprovals } from "./WaitingApprovals";
import "./InboxView.css";

export default function InboxView() {
  const inbox = useQuery(queries.notifications);
  const readAll = queries.useQuickAct(() => call("POST /notifications/read"), [["notifications"]]);
  if (queries.problemOf(inbox))
    return <Failure title="Inbox" text={explain(inbox.error)} retry={() => void inbox.refetch()} />;
  if (!inbox.data) return <Loading what="the inbox" />;
  const unread = inbox.data.filter((each) => each.read_at === null).length;
  return (
    <div className="page">
      <PageHeader title={unread ? `Inbox (${unread})` : "Inbox"}>
        <BrowserNotifications />
        {unread > 0 && (
          <button type="button" onClick={() => readAll.mutate(undefined)}>
            <Icon name="check" size={16} />
            Mark all read
          </button>
        )}
      </PageHeader>
      <div className="page-body">
        <WaitingApprovals />
        {inbox.data.length === 0 ? (
          <Empty icon="inbox" title="Nothing here yet">
            <p>Notifications from your agents appear here, and failures that need your attention.</p>
          </Empty>
        ) : (
          <ul className="inbox">
            {inbox.data.map((each) => (
              <InboxEntry key={each.id} entry={each} />
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

export function BrowserNotifications({ hasLabel = false }: { hasLabel?: boolean }) {
  const [isOn, setOn] = useState(mayNotify);
  if (!("Notification" in window)) return null;
  return (
    <button
      type="button"
      className="quiet"
      aria-pressed={isOn}
      title="Show browser notifications while this page is in the background"
      onClick={() => void allowNotifications(!isOn).then(setOn)}
    >
      <Icon name="bell" size={16} />
      <span className={hasLabel ? "" : "wide-only"}>
        {isOn ? "Browser notifications on" : "Browser notifications off"}
      </span>
    </button>
  );
}
