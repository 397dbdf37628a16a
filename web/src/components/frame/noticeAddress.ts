/** The page that a notification is about. Also used by the service worker, so it imports nothing. */

export interface NoticeTarget {
  code: string;
  run_id?: string | null;
  session_id?: string | null;
  agent_id?: string | null;
  view_ref?: string | null;
}

export function addressOf({ code, run_id, session_id, agent_id, view_ref }: NoticeTarget): string {
  if (view_ref && agent_id) return `/ui/agents/${agent_id}/views?view=${encodeURIComponent(view_ref)}`;
  if (code === "instructions_changed" && agent_id) return `/ui/agents/${agent_id}/configure#instructions`;
  if ((code === "storage_low" || code === "columns_renamed") && agent_id) return `/ui/agents/${agent_id}/data`;
  if (session_id) return `/ui/sessions/${session_id}`;
  if (run_id) return `/ui/runs/${run_id}`;
  return agent_id ? `/ui/agents/${agent_id}` : "/ui/inbox";
}
