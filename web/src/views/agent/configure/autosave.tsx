/** Autosave: an error is shown at its setting, and leaving with unsaved text must be confirmed. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { BASE } from "../../../api/base";
import { call, explain } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentChange, AgentShape } from "../../../api/rest.generated";
import { Dialog } from "../../../components/ui/Dialog";

export type Save = (change: AgentChange) => Promise<unknown>;

export interface PartProps {
  agent: AgentShape;
  save: Save;
}

/** Send an agent's requests one after the other, so that a test of its model uses the settings saved before. */
export const inOrder = (agentId: string) => ({ id: `agent ${agentId}` });

/** Save changes of an agent; each is shown before the server has answered. */
export function useSave(agentId: string) {
  const client = useQueryClient();
  return useMutation({
    scope: inOrder(agentId),
    mutationFn: (body: AgentChange) => call("PATCH /agents/{agent_id}", { path: { agent_id: agentId }, body }),
    mutationKey: ["agent", agentId],
    onMutate: async (change) => {
      // The response to an earlier request would undo the change on the screen.
      await client.cancelQueries({ queryKey: queries.agents.queryKey });
      client.setQueryData(queries.agents.queryKey, (before) =>
        before?.map((each) => (each.id === agentId ? withChange(each, change) : each)),
      );
    },
    onSettled: async () => {
      if (client.isMutating({ mutationKey: ["agent", agentId] }) > 1) return; // the last of several saves refetches
      await Promise.all([["agents"], ["wakes"], ["usage"]].map((queryKey) => client.invalidateQueries({ queryKey })));
    },
  });
}

function withChange(agent: AgentShape, { schedule, budgets, ...plain }: AgentChange): AgentShape {
  return {
    ...agent,
    ...(plain as Partial<AgentShape>),
    schedule: { ...agent.schedule, ...(schedule as Partial<AgentShape["schedule"]>) },
    budgets: { ...agent.budgets, ...budgets },
  };
}

/** Text that is not saved, and save requests in progress. */
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

/** Asks for confirmation before a page with unsaved text is left. */
export function UnsavedGuard({ children }: { children: ReactNode }) {
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
      const place = link.pathname.slice(BASE.length) + link.search + link.hash;
      // The click takes the focus from a field, which saves it; ask only if that is refused.
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
          <p>Some changes were not saved; see the message below the field.</p>
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

/** Save one setting; its error is returned to be shown beside it. */
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
