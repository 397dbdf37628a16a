import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { useIsOutdated } from "./api/build";
import { type ApiError, onSignedOut } from "./api/client";
import type { Notification as Notice } from "./api/frames.generated";
import { useLinkState, useNews } from "./api/news";
import { clearPageError, usePageError } from "./api/pageError";
import { useKeepPush } from "./api/push";
import * as queries from "./api/queries";
import { onOpenRequest } from "./api/worker";
import { Boundary } from "./components/frame/Boundary";
import { ConfirmLogin } from "./components/frame/ConfirmLogin";
import { lazyView } from "./components/frame/lazyView";
import { showNotification } from "./components/frame/notifications";
import { Failure, Loading } from "./components/frame/Page";
import { Sidebar } from "./components/frame/Sidebar";
import { Keyboard } from "./components/keyboard/Keyboard";
import { useReportZone } from "./components/text/zone";
import { Icon } from "./components/ui/Icon";
import { ChatView } from "./views/chat/ChatView";
import { StartView } from "./views/chat/StartView";
import { SignedOut } from "./views/login/SignedOut";
import "./App.css";

const AgendaView = lazyView(() => import("./views/agenda/AgendaView"));
const AgentsView = lazyView(() => import("./views/agent/AgentsView"));
const AgentView = lazyView(() => import("./views/agent/AgentView"));
const RunView = lazyView(() => import("./views/runs/RunView"));
const InboxView = lazyView(() => import("./views/inbox/InboxView"));
const SettingsView = lazyView(() => import("./views/settings/SettingsView"));

export function App() {
  const [, navigate] = useLocation();
  useEffect(() => onOpenRequest(navigate), [navigate]);
  return (
    <QueryClientProvider client={queries.queryClient}>
      <Boundary place="">
        <LoginGate />
      </Boundary>
    </QueryClientProvider>
  );
}

/** Shows the page to a logged-in browser, and to any other how to log in. */
function LoginGate() {
  const me = useQuery({ ...queries.me, retry: false });
  const [reason, setReason] = useState<ApiError | null>(null);
  useEffect(() => onSignedOut(setReason), []);
  if (reason) return <SignedOut reason={reason} />;
  if (!me.data && me.errorUpdateCount > 0)
    return (
      <Failure
        title="The server is not responding"
        text="Check that it is running. This page will load when it is back."
        retry={() => void me.refetch()}
      />
    );
  if (!me.data) return <Loading what="Wakeful" />;
  return <Shell />;
}

function Shell() {
  useReportZone();
  useKeepPush();
  useNews(useCallback((notice: Notice) => void showNotification(notice), []));
  const [location] = useLocation();
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <Boundary place={location} isPart>
        <Sidebar />
      </Boundary>
      <main id="main" tabIndex={-1}>
        <LinkNotice />
        <UpdateNotice />
        <PageErrorNotice />
        <Boundary place={location}>
          <Pages />
        </Boundary>
      </main>
      <Keyboard />
      <ConfirmLogin />
    </div>
  );
}

function Pages(): ReactNode {
  return (
    <Switch>
      <Route path="/" component={StartView} />
      <Route path="/ui/sessions/:id">{({ id }) => <ChatView sessionId={id} />}</Route>
      <Route path="/ui/agenda" component={AgendaView} />
      <Route path="/ui/agents" component={AgentsView} />
      <Route path="/ui/agents/:id/:tab?">{({ id, tab }) => <AgentView agentId={id} tab={tab ?? "configure"} />}</Route>
      <Route path="/ui/runs/:id">{({ id }) => <RunView runId={id} />}</Route>
      <Route path="/ui/inbox" component={InboxView} />
      <Route path="/ui/settings" component={SettingsView} />
      <Route path="/ui">
        <Redirect to={`/${location.search}`} />
      </Route>
      <Route>
        <Failure
          title="This page does not exist"
          text="There is no page at this address. The API reference is under Settings, About."
        >
          <Link className="button" href="/">
            Home
          </Link>
        </Failure>
      </Route>
    </Switch>
  );
}

function PageErrorNotice() {
  const text = usePageError();
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: an error is cleared by going to another page
  useEffect(clearPageError, [location]);
  return (
    <div role="alert">
      {text && (
        <p className="link-notice row">
          <span className="grow">That didn't work. {text}</span>
          <button type="button" className="quiet icon-only" aria-label="Dismiss" onClick={clearPageError}>
            <Icon name="close" />
          </button>
        </p>
      )}
    </div>
  );
}

function UpdateNotice() {
  const isOutdated = useIsOutdated();
  return (
    <div role="status" aria-live="polite">
      {isOutdated && (
        <p className="link-notice row">
          <span className="grow">Wakeful was updated. This page still runs the version before.</span>
          <button type="button" className="small" onClick={() => window.location.reload()}>
            Reload
          </button>
        </p>
      )}
    </div>
  );
}

const NOTICE_DELAY_MS = 1500; // a short loss of the connection is not shown

function LinkNotice() {
  const link = useLinkState();
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (link !== "lost") return;
    const timer = setTimeout(() => setLong(true), NOTICE_DELAY_MS);
    return () => clearTimeout(timer);
  }, [link]);
  return (
    <div role="status" aria-live="polite">
      {isLong && <p className="link-notice">Connection lost. This page may be out of date; reconnecting…</p>}
    </div>
  );
}
