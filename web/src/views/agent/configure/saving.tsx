/** How settings are saved: each by itself, at once; a refusal stands at its setting, and nothing is left unsaved unasked. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Switch } from "radix-ui";
import { createContext, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { call, explain } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentChange, AgentShape } from "../../../api/rest.generated";
import { Dialog } from "../../../components/Dialog";

export type Save = (change: AgentChange) => Promise<unknown>;

export interface PartProps {
  agent: AgentShape;
  save: Save;
}

/** One after the other, so that what is tried next is tried with what was saved before. */
export const inOrder = (agentId: string) => ({ id: `agent ${agentId}` });

/** Show each change at once: what the server makes of it follows. */
export function useSave(agentId: string) {
  const client = useQueryClient();
  return useMutation({
    scope: inOrder(agentId),
    mutationFn: (body: AgentChange) => call("PATCH /agents/{agent_id}", { path: { agent_id: agentId }, body }),
    mutationKey: ["agent", agentId],
    onMutate: async (change) => {
      await client.cancelQueries({ queryKey: queries.agents.queryKey }); // an older state would undo what is shown
      client.setQueryData(queries.agents.queryKey, (before) =>
        before?.map((each) => (each.id === agentId ? foresee(each, change) : each)),
      );
    },
    onSettled: async () => {
      if (client.isMutating({ mutationKey: ["agent", agentId] }) > 1) return; // the last one of several reads it again
      await Promise.all([["agents"], ["wakes"], ["usage"]].map((queryKey) => client.invalidateQueries({ queryKey })));
    },
  });
}

function foresee(agent: AgentShape, { schedule, budgets, ...plain }: AgentChange): AgentShape {
  return {
    ...agent,
    ...(plain as Partial<AgentShape>),
    schedule: { ...agent.schedule, ...(schedule as Partial<AgentShape["schedule"]>) },
    budgets: { ...agent.budgets, ...budgets },
  };
}

/** What is written and not saved, and what is being saved. */
class Unsaved {
  readonly written = new Set<string>();
  private readonly saving = new Set<Promise<unknown>>();

  note(work: Promise<unknown>): void {
    this.saving.add(work);
    void work.finally(() => this.saving.delete(work));
  }

  settled(): Promise<unknown> {
    return Promise.allSettled([...this.saving]);
  }

  get isAny(): boolean {
    return this.written.size + this.saving.size > 0;
  }
}

const UnsavedContext = createContext(new Unsaved());

/** Ask before a page is left on which something is written that the server has not taken. */
export function Guard({ children }: { children: ReactNode }) {
  const [unsaved] = useState(() => new Unsaved());
  const [leavingTo, setLeavingTo] = useState<string | null>(null);
  const [, navigate] = useLocation();
  useEffect(() => {
    const beforeUnload = (event: BeforeUnloadEvent) => unsaved.isAny && event.preventDefault();
    const beforeLink = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href]") : null;
      if (
        !link ||
        link.target ||
        link.origin !== location.origin ||
        event.ctrlKey ||
        event.metaKey ||
        event.shiftKey ||
        !unsaved.isAny
      )
        return;
      event.preventDefault();
      event.stopPropagation();
      const place = link.pathname + link.search + link.hash;
      // What one leaves by the click is being saved; only what is then refused is worth a question.
      void unsaved.settled().then(() => (unsaved.written.size ? setLeavingTo(place) : navigate(place)));
    };
    window.addEventListener("beforeunload", beforeUnload);
    document.addEventListener("click", beforeLink, true);
    return () => {
      window.removeEventListener("beforeunload", beforeUnload);
      document.removeEventListener("click", beforeLink, true);
    };
  }, [unsaved, navigate]);
  return (
    <UnsavedContext value={unsaved}>
      {children}
      {leavingTo !== null && (
        <Dialog title="Leave without saving?" onClose={() => setLeavingTo(null)}>
          <p>Something here was not saved; the reason stands below it.</p>
          <div className="row end">
            <button type="button" onClick={() => setLeavingTo(null)}>
              Stay
            </button>
            <button
              type="button"
              className="danger"
              onClick={() => {
                unsaved.written.clear();
                navigate(leavingTo);
              }}
            >
              Leave
            </button>
          </div>
        </Dialog>
      )}
    </UnsavedContext>
  );
}

/** Saves one setting, and keeps the server's refusal for the place where the setting is. */
export function useSetting() {
  const unsaved = useContext(UnsavedContext);
  const [problem, setProblem] = useState<string | null>(null);
  const set = (work: () => Promise<unknown>): Promise<boolean> => {
    const done = (async () => {
      try {
        await work();
        setProblem(null);
        return true;
      } catch (error) {
        setProblem(explain(error));
        return false;
      }
    })();
    unsaved.note(done);
    return done;
  };
  return { problem, setProblem, set, unsaved };
}

export function Problem({ id, text }: { id?: string; text: string | null }) {
  if (text === null) return null;
  return (
    <p className="bad-text small" role="alert" id={id}>
      {text}
    </p>
  );
}

interface SectionProps {
  id: string;
  title: string;
  text?: string;
  children: ReactNode;
}

export function Section({ id, title, text, children }: SectionProps) {
  return (
    <section className="settings-section" id={id} aria-labelledby={`${id}-title`}>
      <div className="section-words">
        <h2 id={`${id}-title`}>{title}</h2>
        {text && <p className="muted">{text}</p>}
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onSave: (value: string) => Promise<unknown>; // may throw: what it says is shown below the field
  type?: string;
  rows?: number;
  placeholder?: string;
  hint?: ReactNode;
  list?: string;
}

/** Saved when it is left, or with Enter; Escape takes back what was written. */
export function Field({ label, value, onSave, type = "text", rows, placeholder, hint, list }: FieldProps) {
  const [text, setText] = useState<string | null>(null); // null: as saved
  const { problem, setProblem, set, unsaved } = useSetting();
  const id = useId();
  const latest = useRef({ text, value, onSave, problem });
  latest.current = { text, value, onSave, problem };
  const write = (written: string | null) => {
    setText(written);
    if (written === null || written === value) unsaved.written.delete(id);
    else unsaved.written.add(id);
  };
  const commit = async () => {
    if (text === null || text === value) {
      write(null);
      setProblem(null);
    } else if (await set(async () => onSave(text))) write(null);
  };
  useEffect(
    () => () => {
      // Left with the browser's own button, which takes the focus from nothing: what was not refused is saved.
      const { text, value, onSave, problem } = latest.current;
      if (unsaved.written.delete(id) && text !== null && text !== value && problem === null) void onSave(text);
    },
    [unsaved, id],
  );
  const shared = {
    id,
    value: text ?? value,
    placeholder,
    onBlur: () => void commit(),
    "aria-invalid": problem !== null,
    "aria-describedby": problem ? `${id}-problem` : hint ? `${id}-hint` : undefined,
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows ? (
        <textarea {...shared} rows={rows} onChange={(event) => write(event.target.value)} />
      ) : (
        <input
          {...shared}
          type={type === "number" ? "text" : type}
          inputMode={type === "number" ? "decimal" : undefined}
          list={list}
          onChange={(event) => write(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") void commit();
            if (event.key === "Escape") {
              write(null);
              setProblem(null);
            }
          }}
        />
      )}
      <Problem id={`${id}-problem`} text={problem} />
      {hint && (
        <p className="muted small" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface ToggleProps {
  label: string;
  hint?: ReactNode;
  isOn: boolean;
  isLocked?: boolean;
  onChange: (isOn: boolean) => Promise<unknown>;
}

export function Toggle({ label, hint, isOn, isLocked = false, onChange }: ToggleProps) {
  const id = useId();
  const { problem, set } = useSetting();
  return (
    <div className="toggle">
      <Switch.Root
        id={id}
        className="switch"
        checked={isOn}
        disabled={isLocked}
        aria-describedby={problem ? `${id}-problem` : hint ? `${id}-hint` : undefined}
        onCheckedChange={(on) => void set(() => onChange(on))}
      >
        <Switch.Thumb className="switch-thumb" />
      </Switch.Root>
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p className="muted small" id={`${id}-hint`}>
            {hint}
          </p>
        )}
        <Problem id={`${id}-problem`} text={problem} />
      </div>
    </div>
  );
}

/** Read a number that a person wrote, or say what was expected. */
export function readNumber(text: string, least = 0): number {
  const number = Number(text.trim().replace(",", "."));
  if (text.trim() === "" || !Number.isFinite(number) || number < least)
    throw new Error(`“${text}” is not a number of at least ${least}.`);
  return number;
}
