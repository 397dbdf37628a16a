/** An agent's settings; each is saved when it is changed. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import { useAct } from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { Confirm } from "../../components/ui/Dialog";
import { SettingsSection } from "../../components/ui/SettingsSection";
import { type PartProps, type Save, UnsavedGuard, useSave } from "./configure/autosave";
import { DatabaseSettings } from "./configure/DatabaseSettings";
import { Field } from "./configure/fields";
import { Hooks } from "./configure/Hooks";
import { Instructions } from "./configure/Instructions";
import { Limits } from "./configure/Limits";
import { Model } from "./configure/Model";
import { OtherAgents } from "./configure/OtherAgents";
import { Scheduling } from "./configure/Scheduling";
import { Tools } from "./configure/Tools";
import "./Configure.css";

export function Configure({ agent }: { agent: AgentShape }) {
  const act = useSave(agent.id);
  const me = useQuery(queries.me).data;
  const save: Save = act.mutateAsync;
  const part = { agent, save };
  useEffect(() => {
    const show = () => location.hash && document.getElementById(location.hash.slice(1))?.scrollIntoView();
    show();
    window.addEventListener("pushState", show); // sent by the router: links on this page lead to its sections
    window.addEventListener("hashchange", show);
    return () => {
      window.removeEventListener("pushState", show);
      window.removeEventListener("hashchange", show);
    };
  }, []);
  return (
    <UnsavedGuard>
      <fieldset className="configure" disabled={me !== undefined && me.scope !== "admin"}>
        <legend className="hidden">Settings of {agent.name}</legend>
        {me && me.scope !== "admin" && (
          <p className="muted">You can view these settings. Changing them needs a login with the “admin” scope.</p>
        )}
        <p className="save-state" role="status">
          {act.isPending ? (
            "Saving…"
          ) : act.isError ? (
            <span className="bad-text">Not saved: see below.</span>
          ) : act.isSuccess ? (
            "Saved."
          ) : (
            ""
          )}
        </p>
        <About {...part} />
        <Instructions agent={agent} />
        <Model {...part} />
        <Tools {...part} />
        <Scheduling {...part} />
        <Limits {...part} />
        <OtherAgents {...part} />
        <Hooks agent={agent} />
        {agent.toolsets.includes("database") && <DatabaseSettings agent={agent} />}
        <DeleteAgent agent={agent} />
      </fieldset>
    </UnsavedGuard>
  );
}

function About({ agent, save }: PartProps) {
  return (
    <SettingsSection id="about" title="About" text="Its name, and the prompt of every conversation.">
      <Field label="Name" value={agent.name} onSave={(name) => save({ name })} />
      <Field
        label="Description"
        value={agent.description}
        placeholder="Shown to you and to the agent"
        onSave={(description) => save({ description })}
      />
      <Field
        label="Prompt"
        rows={5}
        value={agent.system_prompt}
        placeholder="Instructions that come before every conversation"
        onSave={(system_prompt) => save({ system_prompt })}
      />
    </SettingsSection>
  );
}

function DeleteAgent({ agent }: { agent: AgentShape }) {
  const [isAsking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const remove = useAct(
    () => call("DELETE /agents/{agent_id}", { path: { agent_id: agent.id } }),
    [["agents"], ["wakes"]],
    () => navigate("/ui/agents"),
  );
  const text =
    "Its scheduled runs are cancelled, running ones are stopped, and its database is destroyed. Its sessions can still be read.";
  return (
    <SettingsSection id="delete" title="Delete agent" text={text}>
      <div>
        <button type="button" className="danger" onClick={() => setAsking(true)}>
          Delete {agent.name}
        </button>
      </div>
      {isAsking && (
        <Confirm
          title={`Delete ${agent.name}?`}
          text={text}
          action="Delete"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </SettingsSection>
  );
}
