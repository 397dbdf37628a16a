import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useState } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { type ApiError, onSignedOut } from "./api/client";
import type { Notification as Notice } from "./api/frames.generated";
import { useLinkState, useNews } from "./api/news";
import { clearPageError, usePageError } from "./api/pageError";
import * as queries from "./api/queries";
import { Icon } from "./components/Icon";
import { showNotification } from "./components/notifications";
import { Failure, Loading } from "./components/Page";
import { Sidebar } from "./components/Sidebar";
import { useReportZone } from "./components/zone";
import { ChatView } from "./views/chat/ChatView";
import { StartView } from "./views/chat/StartView";
import { SignedOut } from "./views/SignedOut";
import "./App.css";

const AgendaView = lazy(() => import("./views/AgendaView"));
const AgentsView = lazy(() => import("./views/agent/AgentsView"));
const AgentView = lazy(() => import("./views/agent/AgentView"));
const RunView = lazy(() => import("./views/RunView"));
const InboxView = lazy(() => import("./views/InboxView"));
const SettingsView = lazy(() => import("./views/SettingsView"));

export function App() {
  return (
    <QueryClientProvider client={queries.queryClient}>
      <LoginGate />
    </QueryClientProvider>
  );
}

/** Shows the page to a logged-in browser, and to any other how to log in. */
function LoginGate() {
  const me = useQuery({ ...queries.me, retry: false });
  const [reason, setReason] = useState<ApiError | null>(null);
  useEffect(() => onSignedOut(setReason), []);
  if (reason) return <SignedOut reason={reason} />;
  if (me.isError)
    return (
      <Failure title="The server is not responding" text="Check that it is running." retry={() => void me.refetch()} />
    );
  if (!me.data) return <Loading what="Wakeful" />;
  return <Shell />;
}

function Shell() {
  useReportZone();
  useNews(useCallback((notice: Notice) => void showNotification(notice), []));
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <Sidebar />
      <main id="main" tabIndex={-1}>
        <LinkNotice />
        <PageErrorNotice />
        <Suspense fallback={<Loading what="this page" />}>
          <Pages />
        </Suspense>
      </main>
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
        <Redirect to="/" />
      </Route>
      <Route>
        <Failure title="Page not found" text="There is nothing at this address.">
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
