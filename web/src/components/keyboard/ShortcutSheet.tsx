import { Link } from "wouter";
import { Keys } from "./Keys";
import { SHORTCUTS } from "./keys";
import { overlay, PALETTE_KEYS } from "./overlay";
import { useShortcutsOn } from "./setting";
import "./ShortcutSheet.css";

/** The list of keyboard shortcuts. */
export default function ShortcutSheet() {
  const isOn = useShortcutsOn();
  return (
    <>
      <dl className="shortcuts">
        <Row keys={PALETTE_KEYS} text="Search, or jump to anything; also while you type" />
        {SHORTCUTS.map(({ keys, text }) => (
          <Row key={keys} keys={keys} text={text} />
        ))}
        <Row keys="Enter" text="Send the message" />
        <Row keys="Shift+Enter" text="Start a new line in it" />
        <Row keys="Esc" text="In the message box: keep a queued message as a draft, else stop the run" />
      </dl>
      <p className="muted small">
        {isOn ? "Single keys work while you are not typing in a field." : "Keyboard shortcuts are off in this browser."}{" "}
        <Link href="/ui/settings" onClick={() => overlay.set(null)}>
          {isOn ? "Turn them off in the settings" : "Turn them on in the settings"}
        </Link>
      </p>
    </>
  );
}

function Row({ keys, text }: { keys: string; text: string }) {
  return (
    <div>
      <dt>{text}</dt>
      <dd>
        <Keys keys={keys} />
      </dd>
    </div>
  );
}
