/** Parts of every page: its header, and what is shown while loading, on failure and when empty. */

import { type ReactNode, useEffect } from "react";
import { Icon, type IconName } from "../ui/Icon";
import "./Page.css";

export function PageHeader({ title, children }: { title: string; children?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Wakeful`;
  }, [title]);
  return (
    <header className="page-header">
      <button
        type="button"
        className="quiet icon-only sidebar-opener"
        aria-label="Open the sidebar"
        onClick={() => document.dispatchEvent(new Event("wakeful:sidebar"))}
      >
        <Icon name="menu" />
      </button>
      <h1>{title}</h1>
      <div className="page-actions">{children}</div>
    </header>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p className="loading" role="status">
      <span className="shimmer">Loading {what}</span>
    </p>
  );
}

interface FailureProps {
  title: string;
  text: string;
  retry?: (() => void) | undefined;
  isPart?: boolean; // of a page that has a header
  children?: ReactNode;
}

export function Failure({ title, text, retry, isPart = false, children }: FailureProps) {
  const problem = (
    <div className="empty" role="alert">
      <Icon name="alert" size={26} />
      {isPart && <h2>{title}</h2>}
      <p>{text}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
      {children}
    </div>
  );
  if (isPart) return problem;
  return (
    <div className="page">
      <PageHeader title={title} />
      {problem}
    </div>
  );
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children: ReactNode;
}

/** A place without content yet, and how to begin. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div className="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
