import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import { ErrorText } from "../../components/ui/ErrorText";
import { Fact, Facts } from "../../components/ui/Facts";
import { SettingsSection } from "../../components/ui/SettingsSection";

export function Storage() {
  const storage = useQuery(queries.storage);
  const data = storage.data;
  return (
    <SettingsSection
      title="Disk and retention"
      text="What this server stores, and for how long. The settings file changes how long."
    >
      <ErrorText error={storage.error} />
      {data && (
        <Facts>
          <Fact name="Store">{size(data.store_bytes)}</Fact>
          <Fact name="Agents' files">{size(data.workspace_bytes)}</Fact>
          <Fact name="Agents' databases">{size(data.database_bytes)}</Fact>
          <Fact name="Run streams">kept for {data.retention.events_hours} h after the run; messages stay</Fact>
          <Fact name="Skipped runs">listed for {data.retention.skipped_days} days, then counted</Fact>
          <Fact name="Recurring runs">
            {data.retention.forget_recalls_after_days
              ? `end after ${data.retention.forget_recalls_after_days} days without you; the inbox says so`
              : "never end by themselves"}
          </Fact>
        </Facts>
      )}
    </SettingsSection>
  );
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function size(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
