import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { BackupsShape } from "../../api/rest.generated";
import { count } from "../../components/text/labels";
import { Time } from "../../components/text/times";
import { ErrorText } from "../../components/ui/ErrorText";
import { Fact, Facts } from "../../components/ui/Facts";
import { SettingsSection } from "../../components/ui/SettingsSection";
import { size } from "./Storage";

/** Scheduled backups: the last one, and whether they fail. */
export function Backups() {
  const backups = useQuery({ ...queries.backups, refetchInterval: 60_000 });
  const data = backups.data;
  return (
    <SettingsSection
      title="Backups"
      text="Everything in one encrypted file. The settings file says where and how often; the command “wakeful backup FILE” makes one now."
    >
      <ErrorText error={queries.problemOf(backups)} />
      {data?.is_failing && (
        <p className="bad-text" role="alert">
          The last backup failed <Time at={data.failed_at ?? ""} />: {data.error} It is tried again every ten minutes.
        </p>
      )}
      {data && (
        <Facts>
          <Fact name="Schedule">{schedule(data)}</Fact>
          {(data.plan || data.finished_at) && (
            <Fact name="Last scheduled backup">
              {data.finished_at ? (
                <>
                  <Time at={data.finished_at} /> · {data.file} · {size(data.size ?? 0)} · by {data.node}
                </>
              ) : (
                "none yet"
              )}
            </Fact>
          )}
          {data.is_running && data.started_at && (
            <Fact name="Running">
              since <Time at={data.started_at} />
            </Fact>
          )}
        </Facts>
      )}
    </SettingsSection>
  );
}

function schedule({ plan }: BackupsShape): string {
  if (!plan) return "none: set backup_dir and backup_recipients in the settings file";
  const to = count(plan.recipients, "recipient");
  return `every ${length(plan.every_seconds).replace(/^1 /, "")}, the last ${plan.keep} are kept, encrypted to ${to}`;
}

function length(seconds: number): string {
  if (seconds % 86_400 === 0) return count(seconds / 86_400, "day");
  if (seconds % 3_600 === 0) return count(seconds / 3_600, "hour");
  return count(seconds / 60, "minute");
}
