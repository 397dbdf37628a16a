import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import { count } from "../../components/text/labels";
import { Time } from "../../components/text/times";
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
        <>
          <Facts>
            <Fact name="Store">
              {size(data.store_bytes)}
              {data.reusable_bytes > 0 && `, of which ${size(data.reusable_bytes)} are free for new data`}
            </Fact>
            <Fact name="Agents' files">{size(data.workspace_bytes)}</Fact>
            <Fact name="Agents' databases">{size(data.database_bytes)}</Fact>
            <Fact name="Free on the disk">{size(data.free_bytes)}</Fact>
            <Fact name="Run streams">kept for {data.retention.events_hours} h after the run; messages stay</Fact>
            <Fact name="Skipped runs">listed for {data.retention.skipped_days} days, then counted</Fact>
            <Fact name="Recurring runs">
              {data.retention.forget_recalls_after_days
                ? `end after ${data.retention.forget_recalls_after_days} days without you; the inbox says so`
                : "never end by themselves"}
            </Fact>
            <Fact name="Ended runs">
              {data.retention.runs_days ? `deleted after ${data.retention.runs_days} days` : "kept"}
            </Fact>
            <Fact name="Sessions of scheduled runs">
              {data.retention.sessions_days
                ? `deleted after ${data.retention.sessions_days} days, unless a person wrote in them`
                : "kept"}
            </Fact>
          </Facts>
          <p className="muted small">
            Measured <Time at={data.measured_at} />
          </p>
          <details>
            <summary>By agent</summary>
            <ul className="rows" aria-label="Sizes of agents">
              {data.agents.map((agent) => (
                <li key={agent.agent_id}>
                  <span className="grow">
                    <strong>{agent.name}</strong>
                    <span className="muted small">
                      of {agent.user_name} · {count(agent.messages, "message")}, {size(agent.message_bytes)} ·{" "}
                      {count(agent.runs, "run")} · database {size(agent.database_bytes)} · files{" "}
                      {size(agent.file_bytes)}
                    </span>
                  </span>
                  <span>{size(agent.message_bytes + agent.database_bytes + agent.file_bytes)}</span>
                </li>
              ))}
            </ul>
          </details>
          <details>
            <summary>By table</summary>
            <ul className="rows" aria-label="Sizes of tables">
              {data.tables.map((table) => (
                <li key={table.name}>
                  <span className="grow">{table.name}</span>
                  <span>{size(table.bytes)}</span>
                </li>
              ))}
            </ul>
          </details>
        </>
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
