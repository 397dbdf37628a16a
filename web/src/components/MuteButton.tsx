import { call } from "../api/client";
import * as queries from "../api/queries";
import type { WakeShape } from "../api/rest.generated";
import { Icon } from "./Icon";

/** What a muted wake has to tell comes to the inbox and goes nowhere else. */
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
          ? "It tells you in the inbox only. Click to have it on your channels and in the browser's notifications again."
          : "Keep it from your channels and the browser's notifications; it still comes to the inbox."
      }
      onClick={() => mute.mutate(!wake.muted)}
    >
      <Icon name={wake.muted ? "mute" : "bell"} size={15} />
      <span className="menu-text">{wake.muted ? "Muted" : "Mute"}</span>
    </button>
  );
}
