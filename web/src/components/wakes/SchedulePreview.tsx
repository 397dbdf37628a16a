/** When a run will really run: the server plans a booking or a change without saving it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../../api/client";
import type { AgentShape, PreviewShape } from "../../api/rest.generated";
import { absolute, inZone, relative, useNow } from "../text/times";
import { useDebounced } from "../ui/useDebounced";
import { bookingText, delayText } from "./moves";

interface Rule {
  when?: string | null;
  interval_seconds?: number | null;
  cron?: string | null;
  timezone?: string;
}

export type Plan = Rule & ({ wake_id: string } | { agent_id: string; kind: "recall" | "next_run" });

function load(plan: Plan): Promise<PreviewShape> {
  if (!("wake_id" in plan)) return call("GET /wakes/preview", { query: plan });
  const { wake_id, ...query } = plan;
  return call("GET /wakes/{wake_id}/preview", { path: { wake_id }, query });
}

const REFRESH_MS = 5_000;

/** Preview 250 ms after the last keystroke. */
export function usePreview(plan: Plan) {
  const settled = useDebounced(JSON.stringify(plan), 250);
  const found = useQuery({
    queryKey: ["wakes", "preview", settled],
    queryFn: () => load(JSON.parse(settled) as Plan),
    retry: false,
    placeholderData: (before) => before,
    refetchInterval: ({ state }) => !state.error && REFRESH_MS, // "in 5 minutes" means another time when saved later
  });
  const now = useNow(1);
  const isRequested = "when" in plan && plan.when !== null && !found.isPlaceholderData && found.isSuccess;
  // A requested time counts from when it is saved, a booked one from now.
  return { ...found, isCurrent: settled === JSON.stringify(plan), now: isRequested ? found.dataUpdatedAt : now };
}

interface Props {
  preview: PreviewShape | undefined;
  agent: AgentShape;
  isOnce: boolean;
  now: number;
}

export function SchedulePreview({ preview, agent, isOnce, now }: Props) {
  const isHeld = preview?.times.length === 0 && preview.held.length > 0;
  const times = (isHeld ? preview.held : preview?.times)?.slice(0, isOnce ? 1 : 5);
  const moved = bookingText(preview?.booking ?? null, agent);
  return (
    <div className="next-times" aria-live="polite">
      <h3>{isHeld ? "When you resume, it will run" : isOnce ? "It will run" : "The next times"}</h3>
      {times?.length === 0 && <p className="muted">Never: no time fits.</p>}
      <ol>
        {times?.map((time) => {
          const at = new Date(time.at);
          return (
            <li key={time.nominal_at}>
              <time dateTime={time.at} title={inZone(at, agent.zone)}>
                {absolute(at, now)}
              </time>{" "}
              <span className="muted">{relative(at, now)}</span>
              {time.reason && time.at !== time.nominal_at && !isHeld && (
                <span className="badge wait">delayed: {delayText(time.reason, agent.schedule.days)}</span>
              )}
            </li>
          );
        })}
      </ol>
      {isHeld && <p className="muted small">{agent.name} is paused, so it waits until you resume.</p>}
      {moved && (
        <p className="small">
          Moved: {moved}.{" "}
          {preview?.booking?.moved_by.includes("max_horizon") && (
            <Link href={`/ui/agents/${agent.id}/configure#scheduling`}>Allow more</Link>
          )}
        </p>
      )}
    </div>
  );
}
