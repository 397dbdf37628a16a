import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/client";
import { useAct } from "../../api/queries";
import type { AgentShape, SessionDetail } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { download } from "../../api/tickets";
import { Confirm, Dialog } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { Icon } from "../../components/ui/Icon";
import { Menu, MenuItem } from "../../components/ui/Menu";

/** Actions on a whole session. */
export function SessionMenu({ session, agent }: { session: SessionDetail; agent: AgentShape | undefined }) {
  const [open, setOpen] = useState<"rename" | "delete" | null>(null);
  const [title, setTitle] = useState(session.title);
  const [, navigate] = useLocation();
  const path = { session_id: session.id };
  const stale = [["sessions"], ["session", session.id]];
  const rename = useAct(
    () => call("PATCH /sessions/{session_id}", { path, body: { title } }),
    stale,
    () => setOpen(null),
  );
  const remove = useAct(
    () => call("DELETE /sessions/{session_id}", { path }),
    [["sessions"], ["wakes"]],
    () => navigate("/"),
  );
  return (
    <>
      {agent && (
        <Link className="chip link" href={`/ui/agents/${agent.id}`} title="This session's agent">
          <Icon name="agent" size={14} />
          <span className="chip-text">{agent.name}</span>
        </Link>
      )}
      <Menu label="Session" icon="more">
        <MenuItem onSelect={() => setOpen("rename")}>Rename…</MenuItem>
        <MenuItem onSelect={() => void download(`/sessions/${session.id}/export.md`)}>Export as Markdown</MenuItem>
        <MenuItem onSelect={() => setOpen("delete")}>Delete…</MenuItem>
      </Menu>
      {open === "rename" && (
        <Dialog title="Rename this session" onClose={() => setOpen(null)}>
          <Form act={rename} onSubmit={() => rename.mutate(undefined)}>
            <label className="field">
              Title
              <input
                value={title}
                maxLength={MAX_LENGTH.SessionChange.title}
                onChange={(event) => setTitle(event.target.value)}
              />
            </label>
            <ErrorText error={rename.error} />
            <div className="row end">
              <button type="button" onClick={() => setOpen(null)}>
                Cancel
              </button>
              <button type="submit" className="primary">
                Rename
              </button>
            </div>
          </Form>
        </Dialog>
      )}
      {open === "delete" && (
        <Confirm
          title="Delete this session?"
          text="A run that is going on is stopped, its scheduled runs are cancelled, and its messages are deleted."
          action="Delete"
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setOpen(null)}
        />
      )}
    </>
  );
}
