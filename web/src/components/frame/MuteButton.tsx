import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { WakeShape } from "../../api/rest.generated";
import { Icon } from "../ui/Icon";

/** Mutes a scheduled run: its notifications then go to the inbox only. */
export function MuteButton({ wake }: { wake: WakeShape }) {
  const mute = queries.useQuickAct(
    (muted: boolean) => call("PATCH /wakes/{wake_id}", { path: { wake_id: wake.id }, body: { muted } }),
    [["wakes"]],
  );
  return (
    <button
      type="button"
      className="small quiet"
      aria-pressed={wake.muted}
      aria-label={wake.muted ? "Muted" : "Mute"}
      disabled={mute.isPending}
      title={
        wake.muted
          ? "Muted: only in the inbox. Click to send it to your channels and browser notifications again."
          : "Don't send it to your channels or browser notifications; it still appears in the inbox."
      }
      onClick={() => mute.mutate(!wake.muted)}
    >
      <Icon name={wake.muted ? "mute" : "bell"} size={15} />
      <span className="menu-text">{wake.muted ? "Muted" : "Mute"}</span>
    </button>
  );
}
