import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { BASE } from "../../api/base";
import * as queries from "../../api/queries";
import { Keys } from "../keyboard/Keys";
import { overlay, PALETTE_KEYS } from "../keyboard/overlay";
import { useShortcutsOn } from "../keyboard/setting";
import { SessionList } from "../sessions/SessionList";
import { Icon, type IconName } from "../ui/Icon";
import { Menu, MenuItem, MenuLabel } from "../ui/Menu";
import { PausedUntil, PauseMenu, PauseReason, useResume } from "../wakes/PauseMenu";
import "./Sidebar.css";

export function Sidebar() {
  const [isOpen, setOpen] = useState(false);
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes after each navigation
  useEffect(() => setOpen(false), [location]);
  useEffect(() => {
    const open = () => setOpen(true);
    const close = (event: KeyboardEvent) => event.key === "Escape" && setOpen(false);
    document.addEventListener("wakeful:sidebar", open);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("wakeful:sidebar", open);
      document.removeEventListener("keydown", close);
    };
  }, []);
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Escape and a button close it by keyboard */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Escape and a button close it by keyboard */}
      {isOpen && <div className="backdrop" onClick={() => setOpen(false)} />}
      <aside className={isOpen ? "sidebar is-open" : "sidebar"} aria-label="Sidebar">
        <div className="brand">
          <Link href="/" className="brand-name">
            <img src={`${BASE}/ui/icon.svg`} alt="" width={24} height={24} />
            Wakeful
          </Link>
          <button
            type="button"
            className="quiet icon-only sidebar-closer"
            aria-label="Close the sidebar"
            onClick={() => setOpen(false)}
          >
            <Icon name="close" />
          </button>
        </div>
        <NewSession />
        <PaletteButton />
        <nav aria-label="Main">
          <NavLink href="/ui/agenda" icon="calendar" text="Agenda" />
          <InboxLink />
          <NavLink href="/ui/agents" icon="agent" text="Agents" />
          <NavLink href="/ui/settings" icon="settings" text="Settings" />
        </nav>
        <SessionList />
        <PauseEverything />
      </aside>
    </>
  );
}

function NewSession() {
  const agents = useQuery(queries.agents).data ?? [];
  const [, navigate] = useLocation();
  return (
    <div className="new-session">
      <Link href="/" className="button primary grow">
        <Icon name="plus" />
        New session
      </Link>
      {agents.length > 1 && (
        <Menu label="New session with…" icon="down">
          <MenuLabel>New session with</MenuLabel>
          {agents.map((agent) => (
            <MenuItem key={agent.id} onSelect={() => navigate(`/?agent=${agent.id}`)}>
              {agent.name}
            </MenuItem>
          ))}
        </Menu>
      )}
    </div>
  );
}

function PaletteButton() {
  const isOn = useShortcutsOn();
  return (
    <button type="button" className="palette-button" onClick={() => overlay.set({ kind: "palette" })}>
      <Icon name="search" size={15} />
      <span className="grow">Search or jump</span>
      {isOn && (
        <span className="wide-only" aria-hidden="true">
          <Keys keys={PALETTE_KEYS} />
        </span>
      )}
    </button>
  );
}

interface NavLinkProps {
  href: string;
  icon: IconName;
  text: string;
  count?: number;
  countLabel?: string;
}

function NavLink({ href, icon, text, count = 0, countLabel = "" }: NavLinkProps) {
  const [location] = useLocation();
  const isHere = location === href || location.startsWith(`${href}/`);
  return (
    <Link href={href} className="nav-link" aria-current={isHere ? "page" : undefined}>
      <Icon name={icon} />
      {text}
      {count > 0 && (
        <span className="count">
          {count}
          <span className="hidden"> {countLabel}</span>
        </span>
      )}
    </Link>
  );
}

function InboxLink() {
  const unread = (useQuery(queries.notifications).data ?? []).filter((each) => each.read_at === null).length;
  const waiting = (useQuery(queries.waitingApprovals).data ?? []).length;
  const label = waiting > 0 ? "unread or waiting for your approval" : "unread";
  return <NavLink href="/ui/inbox" icon="inbox" text="Inbox" count={unread + waiting} countLabel={label} />;
}

function PauseEverything() {
  const pause = useQuery(queries.pauseOfAll).data;
  const resume = useResume();
  if (pause) {
    return (
      <div className="pause-all is-paused">
        <p>
          <strong>Everything is paused</strong>
          <span className="muted small">
            <PausedUntil pause={pause} />
          </span>
        </p>
        <button type="button" className="small" onClick={() => resume.mutate(null)}>
          Resume
        </button>
        <PauseReason pause={pause} />
      </div>
    );
  }
  return (
    <div className="pause-all">
      <PauseMenu agentId={null} text="Pause everything" />
    </div>
  );
}
