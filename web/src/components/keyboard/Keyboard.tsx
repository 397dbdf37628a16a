/** Listens to the page's shortcuts, and shows the palette and the list of shortcuts. */

import { useQuery } from "@tanstack/react-query";
import { useLayoutEffect } from "react";
import { useLocation } from "wouter";
import * as queries from "../../api/queries";
import { lazyView } from "../frame/lazyView";
import { Dialog } from "../ui/Dialog";
import { ScheduleDialog } from "../wakes/ScheduleDialog";
import { follow } from "./follow";
import { type Command, commandOf, isPaletteKey, plainKey } from "./keys";
import { moveInList } from "./lists";
import { IS_MAC, overlay } from "./overlay";
import { areShortcutsOn } from "./setting";

const Palette = lazyView(() => import("../palette/Palette"), true);
const ShortcutSheet = lazyView(() => import("./ShortcutSheet"), true);

export function Keyboard() {
  const [, navigate] = useLocation();
  useLayoutEffect(() => listen((path) => follow(path, navigate)), [navigate]);
  const open = overlay.use();
  const close = () => overlay.set(null);
  if (open === null) return null;
  if (open.kind === "palette")
    return (
      <Dialog title="Search and commands" onClose={close}>
        <Palette onClose={close} />
      </Dialog>
    );
  if (open.kind === "sheet")
    return (
      <Dialog title="Keyboard shortcuts" onClose={close}>
        <ShortcutSheet />
      </Dialog>
    );
  return <Schedule {...open} onClose={close} />;
}

interface ScheduleProps {
  agentId: string;
  sessionId: string | null;
  onClose: () => void;
}

function Schedule({ agentId, sessionId, onClose }: ScheduleProps) {
  const agent = useQuery(queries.agents).data?.find((each) => each.id === agentId);
  return agent && <ScheduleDialog agent={agent} sessionId={sessionId} wake={null} onClose={onClose} />;
}

const ACTIONS: Record<Command, (go: (path: string) => void) => void> = {
  palette: () => overlay.set({ kind: "palette" }),
  sheet: () => overlay.set({ kind: "sheet" }),
  new: (go) => go("/"),
  agenda: (go) => go("/ui/agenda"),
  inbox: (go) => go("/ui/inbox"),
  agents: (go) => go("/ui/agents"),
  settings: (go) => go("/ui/settings"),
  next: () => moveInList(1),
  previous: () => moveInList(-1),
};

const SEQUENCE_MS = 1_500; // between two keys of one shortcut

function listen(go: (path: string) => void): () => void {
  let before = "";
  let pressedAt = 0;
  const onKeyDown = (event: KeyboardEvent) => {
    if (!areShortcutsOn() || event.defaultPrevented || event.isComposing || event.repeat || isTaken()) return;
    if (isPaletteKey(event, IS_MAC)) {
      event.preventDefault();
      overlay.set({ kind: "palette" });
      return;
    }
    const key = isTyping(event.target) ? null : plainKey(event);
    if (key === null || key === "Shift") return;
    const isInTime = event.timeStamp - pressedAt < SEQUENCE_MS;
    const { command, kept } = commandOf(isInTime ? before : "", key);
    before = kept;
    pressedAt = event.timeStamp;
    if (command === null) return;
    event.preventDefault(); // or the key would be typed into the field that is focused now
    ACTIONS[command](go);
  };
  document.addEventListener("keydown", onKeyDown);
  return () => document.removeEventListener("keydown", onKeyDown);
}

/** Say whether a dialog or a menu has the keyboard. */
function isTaken(): boolean {
  return document.querySelector("dialog[open], [role=menu]") !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}
