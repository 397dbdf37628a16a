import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link } from "wouter";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { McpServerShape } from "../../../api/rest.generated";
import { TOOLSETS } from "../../../api/server.generated";
import { Time } from "../../../components/text/times";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Form } from "../../../components/ui/Form";
import { Icon } from "../../../components/ui/Icon";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { type PartProps, useSetting } from "./autosave";
import { Problem, Toggle } from "./fields";
import "./Tools.css";

type ToolsetName = keyof typeof TOOLSETS;
const NAMES = Object.keys(TOOLSETS) as ToolsetName[];
const SHELL = {
  bubblewrap: "Run commands, confined to its workspace",
  landlock: "Run commands, confined to its workspace",
  unconfined: "Run commands without a sandbox: they can access whatever the server can",
  refused: "Disabled: this server cannot confine commands; its log says why",
} as const;

export function Tools(part: PartProps) {
  const { agent, save } = part;
  const isOwner = useQuery(queries.me).data?.user.role === "owner";
  const shell = useQuery(queries.about).data?.shell;
  const has = new Set(agent.toolsets);
  return (
    <SettingsSection id="tools" title="Tools" text="A tool that is off is not shown to the model at all.">
      <div className="toolsets">
        {NAMES.map((name) => {
          const { label, hint: usual, needs_self_scheduling } = TOOLSETS[name];
          const hint = name === "shell" && shell ? SHELL[shell] : usual;
          const isForbidden = name === "shell" && !isOwner && !has.has(name);
          const isHidden = needs_self_scheduling && !agent.self_scheduling && has.has(name);
          return (
            <Toggle
              key={name}
              label={label}
              hint={
                isForbidden
                  ? "Only an owner of this server may grant it"
                  : isHidden
                    ? `${hint}; hidden while self-scheduling is off`
                    : hint
              }
              isOn={has.has(name)}
              isLocked={isForbidden}
              onChange={(isOn) => save({ toolsets: NAMES.filter((each) => (each === name ? isOn : has.has(each))) })}
            />
          );
        })}
      </div>
      <McpServers {...part} isOwner={isOwner} />
      <AskFirst {...part} />
      <Allowed agentId={agent.id} />
      <Toggle
        label="Write its own skills"
        hint="It may save instructions for itself in its workspace, and read them in later runs."
        isOn={agent.may_write_skills}
        onChange={(may_write_skills) => save({ may_write_skills })}
      />
    </SettingsSection>
  );
}

const STATES = {
  on: ["good", "running"],
  starting: ["busy", "starting"],
  failed: ["bad", "failed"],
  off: ["calm", "not started"],
} as const;

function McpServers({ agent, save, isOwner }: PartProps & { isOwner: boolean }) {
  const servers = useQuery(queries.mcpServers).data ?? [];
  const gone = agent.mcp_servers.filter((name) => !servers.some((each) => each.name === name));
  const change = (name: string, isOn: boolean) =>
    save({ mcp_servers: isOn ? [...agent.mcp_servers, name] : agent.mcp_servers.filter((each) => each !== name) });
  return (
    <div className="stack" role="group" aria-label="MCP servers">
      <h3>MCP servers</h3>
      {servers.length + gone.length === 0 && (
        <p className="muted small">
          None yet. The server's owner adds them to its settings file, under <code>[mcp.NAME]</code>.
        </p>
      )}
      {servers.map((server) => (
        <Toggle
          key={server.name}
          label={server.name}
          hint={<McpState server={server} />}
          isOn={agent.mcp_servers.includes(server.name)}
          isLocked={!isOwner && !server.for_users && !agent.mcp_servers.includes(server.name)}
          onChange={(isOn) => change(server.name, isOn)}
        />
      ))}
      {gone.map((name) => (
        <Toggle
          key={name}
          label={name}
          hint="No longer in the server's settings"
          isOn
          onChange={(isOn) => change(name, isOn)}
        />
      ))}
    </div>
  );
}

function McpState({ server }: { server: McpServerShape }) {
  const [tone, text] = STATES[server.state];
  return (
    <>
      <span className={`badge ${tone}`}>{text}</span>{" "}
      {server.confinement === "unconfined" && <span className="badge bad">unconfined</span>}{" "}
      {server.state === "on" && `${server.tools} tools `}
      {server.note}
      {server.last_error && <span className="bad-text"> {server.last_error}</span>}
    </>
  );
}

/** Tools whose calls need approval. */
function AskFirst({ agent, save }: PartProps) {
  const tools = useQuery(queries.tools).data ?? [];
  const [name, setName] = useState("");
  const { problem, set } = useSetting();
  const id = useId();
  const add = async () => {
    const written = name.trim();
    if (written && (await set(() => save({ ask_before: [...agent.ask_before, written] })))) setName("");
  };
  return (
    <div className="stack" role="group" aria-label="Tools that ask first">
      <h3>Ask first</h3>
      <p className="muted small">
        Calls of these tools wait for your approval. A scheduled run skips the call and notifies you in the inbox.
      </p>
      {agent.ask_before.length > 0 && (
        <ul className="chips">
          {agent.ask_before.map((each) => (
            <li key={each} className="chip">
              <code>{each}</code>
              <button
                type="button"
                className="quiet icon-only"
                aria-label={`Stop asking before ${each}`}
                onClick={() => void set(() => save({ ask_before: agent.ask_before.filter((other) => other !== each) }))}
              >
                <Icon name="close" size={13} />
              </button>
            </li>
          ))}
        </ul>
      )}
      <Form className="row wrap" onSubmit={() => void add()}>
        <input
          value={name}
          list={`${id}-tools`}
          placeholder="write_file, or web_* for several"
          aria-label="Tool that asks first"
          aria-invalid={problem !== null}
          onChange={(event) => setName(event.target.value)}
        />
        <datalist id={`${id}-tools`}>
          {tools.map((tool) => (
            <option key={tool.name} value={tool.name} />
          ))}
          {agent.mcp_servers.map((server) => (
            <option key={server} value={`${server}_*`} />
          ))}
        </datalist>
        <button type="submit">Add</button>
      </Form>
      <Problem text={problem} />
    </div>
  );
}

/** Tools that a person has allowed in a session, which are not asked about there. */
function Allowed({ agentId }: { agentId: string }) {
  const allowed = useQuery(queries.allowances(agentId)).data ?? [];
  const revoke = queries.useAct(
    (id: string) =>
      call("DELETE /agents/{agent_id}/allowances/{allowance_id}", { path: { agent_id: agentId, allowance_id: id } }),
    [["agents", agentId, "allowances"]],
  );
  if (allowed.length === 0) return null;
  return (
    <div className="stack" role="group" aria-label="Always allowed">
      <h3>Always allowed</h3>
      <p className="muted small">Allowed with “Always allow” in a session, and only there; scheduled runs there too.</p>
      <ul className="allowed-tools">
        {allowed.map((each) => (
          <li key={each.id}>
            <span>
              <code>{each.tool}</code> in{" "}
              <Link href={`/ui/sessions/${each.session_id}`}>{each.session_title || "New session"}</Link>,{" "}
              <span className="muted small">
                since <Time at={each.created_at} />
              </span>
            </span>
            <button
              type="button"
              className="small"
              aria-label={`Revoke ${each.tool} in ${each.session_title || "New session"}`}
              onClick={() => revoke.mutate(each.id)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
      <ErrorText error={revoke.error} />
    </div>
  );
}
