/** The banner on a phone: one line, which opens the whole banner in a sheet. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { count, kindText } from "../text/labels";
import { Time } from "../text/times";
import { Dialog } from "../ui/Dialog";
import { Icon, type IconName } from "../ui/Icon";
import { bannerRuns } from "./bannerRuns";
import { otherRunText } from "./OtherRuns";
import { PausedUntil } from "./PauseMenu";
import "./BannerLine.css";

interface Props {
  agent: AgentShape;
  sessionId: string | undefined;
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
  children: ReactNode; // the banner
}

interface Line {
  icon: IconName;
  tone: "is-scheduled" | "is-paused" | "is-idle";
  text: ReactNode;
  more: string;
}

export function BannerLine({ agent, sessionId, isOpen, onOpen, children }: Props) {
  const line = useLine(agent, sessionId);
  if (!line) return null;
  return (
    <>
      <button type="button" className={`banner-line ${line.tone}`} aria-haspopup="dialog" onClick={() => onOpen(true)}>
        <Icon name={line.icon} />
        {line.tone === "is-paused" ? (
          <span className="banner-line-whole">
            <strong>{line.text}</strong> <span className="muted">{line.more}</span>
          </span>
        ) : (
          <>
            <strong>{line.text}</strong>
            <span className="banner-line-more">{line.more}</span>
          </>
        )}
        <Icon name="down" size={16} />
      </button>
      {isOpen && (
        <Dialog title="Scheduled runs" isSheet onClose={() => onOpen(false)}>
          {children}
        </Dialog>
      )}
    </>
  );
}

function useLine(agent: AgentShape, sessionId: string | undefined): Line | null {
  const wakes = useQuery(queries.wakes).data;
  const pause = useQuery(queries.agentPause(agent.id)).data;
  if (!wakes || !pause) return null;
  const paused = pause.everything ?? pause.pause;
  if (paused)
    return {
      icon: "pause",
      tone: "is-paused",
      // The sheet says who ends a pause without a time; here the number of runs needs the room.
      text: paused.until ? (
        <>
          Paused <PausedUntil pause={paused} zone={agent.zone} />
        </>
      ) : (
        "Paused"
      ),
      more: paused.held > 0 ? `${count(paused.held, "run")} on hold` : "",
    };
  const { here, elsewhere } = bannerRuns(wakes, agent, sessionId);
  const [soonest] = here;
  if (soonest)
    return {
      icon: "clock",
      tone: "is-scheduled",
      text: <Time at={soonest.attempt_at} zone={agent.zone} form="relative" />,
      more: soonest.comment || soonest.instructions || kindText(soonest.kind),
    };
  const [other] = elsewhere;
  if (other)
    return {
      icon: "clock",
      tone: "is-idle", // it does not run in this session
      text: (
        <>
          {otherRunText(other, agent)} <Time at={other.attempt_at} zone={agent.zone} form="relative" />
        </>
      ),
      more: "",
    };
  if (sessionId || !agent.self_scheduling) return null; // a session has the controls in its header
  return { icon: "clock", tone: "is-idle", text: "", more: "No next run scheduled" };
}
