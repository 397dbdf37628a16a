// Written by `make docs` from the server's /ws/schema; edit there.

/** A person has answered, and the run continues. */
export interface ApprovalAnswered {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "approval_answered";
  tool: string;
  call_id: string;
  approved: boolean;
  note?: string | null;
}

/** A call waits for a person's approval; after a crash the run asks again. */
export interface ApprovalRequested {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "approval_requested";
  tool: string;
  args: Record<string, unknown>;
  call_id: string;
  sentence?: string;
  shown: ShownArgument[];
}

/** The context is about to be compressed. */
export interface CompressionStarted {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "compression_started";
  context_tokens: number;
  max_context_tokens: number;
}

/** The context was compressed; the saved transcript is unchanged. */
export interface ContextCompressed {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "context_compressed";
  messages_before: number;
  messages_after: number;
  summary: string;
  context_tokens: number;
  max_context_tokens: number;
}

/** A run failed, or (without seq) a frame of the client was refused. */
export interface ErrorFrame {
  seq?: number | null;
  run_id?: string | null;
  type: "error";
  message: string;
  code: string;
  field?: string | null;
}

/** The connection is alive. */
export interface Heartbeat {
  type: "heartbeat";
}

/** The steps of the plan. */
export interface PlanReady {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "plan_ready";
  plan: string;
}

/** The current phase of planning: 1 analysis, 2 reflection, 3 plan. */
export interface PlanningStatus {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "planning_status";
  phase: 1 | 2 | 3;
  label: string;
}

/** Another agent takes over this session. */
export interface ProfileSwitched {
  seq?: number | null;
  run_id?: string | null;
  type: "profile_switched";
  profile_id: string;
  profile_name: string;
}

/** A recall of the session changed. */
export interface RecallUpdate {
  seq?: number | null;
  run_id?: string | null;
  type: "recall_update";
  session_id: string;
  recall_id: string;
  call_type: string;
  trigger_at: string;
  status: string;
  action: "scheduled" | "deferred" | "fired" | "rescheduled" | "skipped" | "cancelled" | "failed";
}

/** The frames from here on are live. */
export interface ReplayEnd {
  type: "replay_end";
}

/** `count` frames follow that were sent before this client connected. */
export interface ReplayStart {
  type: "replay_start";
  count: number;
}

/** The server has written to the model, or remarks on its answer; the transcript has it too. */
export interface ServerNote {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "server_note";
  code: "budget" | "promise" | "call_as_text" | "unkept_promise" | "prompt_cut" | "model_taken_back";
  text: string;
}

/** Load the session again: what is shown may be out of date. */
export interface SessionSync {
  type: "session_sync";
}

/** An argument as it is shown, with blanks and invisible characters written out; a long one in three parts. */
export interface ShownArgument {
  name: string;
  start: string;
  middle: string;
  end: string;
}

/** A piece of the answer. */
export interface StreamDelta {
  seq?: number | null;
  run_id?: string | null;
  type: "stream_delta";
  delta: string;
}

/** A run succeeded; the session accepts the next message. */
export interface StreamEnd {
  seq?: number | null;
  run_id?: string | null;
  type: "stream_end";
  content: string;
  context_tokens: number;
  max_context_tokens: number;
  elapsed_seconds: number;
  tool_call_count: number;
  token_count: number;
  message_index: number;
}

/** A run starts. A second one in the same run: it was interrupted and resumes from its last saved step. */
export interface StreamStart {
  seq?: number | null;
  run_id?: string | null;
  type: "stream_start";
}

/** A person stopped the run. */
export interface StreamStopped {
  seq?: number | null;
  run_id?: string | null;
  type: "stream_stopped";
}

/** A piece of the model's reasoning. */
export interface ThinkingDelta {
  seq?: number | null;
  run_id?: string | null;
  type: "thinking_delta";
  delta: string;
}

/** The model has stopped reasoning for now. */
export interface ThinkingEnd {
  seq?: number | null;
  run_id?: string | null;
  type: "thinking_end";
}

/** A tool has returned. */
export interface ToolCall {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "tool_call";
  tool: string;
  args: Record<string, unknown>;
  result: string;
  success: boolean;
  metadata?: Record<string, unknown>;
  call_id: string;
}

/** A tool is about to be called. */
export interface ToolStarted {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "tool_started";
  tool: string;
  args: Record<string, unknown>;
  call_id: string;
}

/** The whole reasoning of a turn that was not streamed: planning and subagents. */
export interface TurnThinking {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "turn_thinking";
  thinking: string;
}

/** The run waits for a model or an MCP server, until the next frame of the same agent. */
export interface Waiting {
  seq?: number | null;
  run_id?: string | null;
  is_subagent?: boolean;
  subagent_id?: string | null;
  type: "waiting";
  for: "model" | "mcp_server";
  reason: string;
  retry_in?: number | null;
}

export type SessionFrame = StreamStart | StreamEnd | StreamStopped | ErrorFrame | ThinkingDelta | ThinkingEnd | TurnThinking | PlanningStatus | PlanReady | ApprovalRequested | ApprovalAnswered | Waiting | ToolStarted | ToolCall | StreamDelta | ServerNote | CompressionStarted | ContextCompressed | ProfileSwitched | RecallUpdate | SessionSync | ReplayStart | ReplayEnd | Heartbeat;

/** An agent was created, changed or deleted. */
export interface AgentUpdate {
  seq?: number | null;
  type: "agent_update";
  agent_id: string;
  name?: string | null;
  action: "changed" | "deleted";
}

/** A run asks for approval of a tool call, or was answered. GET /approvals lists the calls that wait. */
export interface ApprovalUpdate {
  seq?: number | null;
  type: "approval_update";
  run_id: string;
  session_id: string;
  agent_id: string;
  waiting: number;
}

/** Something is being written to an agent's own database, or was. */
export interface DbUpdate {
  seq?: number | null;
  type: "db_update";
  agent_id: string;
  table?: string | null;
  in_flight?: number;
  last_change?: number | null;
}

/** A new notification in the inbox. */
export interface Notification {
  seq?: number | null;
  type: "notification";
  notification_id: string;
  code: string;
  title: string;
  body: string;
  agent_id?: string | null;
  session_id?: string | null;
  run_id?: string | null;
  wake_id?: string | null;
  view_ref?: string | null;
  times?: Record<string, string>;
}

/** A run has a new status. */
export interface RunUpdate {
  seq?: number | null;
  type: "run_update";
  run_id: string;
  agent_id: string;
  session_id?: string | null;
  wake_id?: string | null;
  trigger: string;
  status: string;
  reason?: string | null;
}

/** A schedule or a next run changed. */
export interface ScheduleUpdate {
  seq?: number | null;
  type: "schedule_update";
  wake_id: string;
  kind: string;
  agent_id: string;
  session_id?: string | null;
  trigger_at: string;
  status: string;
}

/** A session was created, changed or deleted. */
export interface SessionUpdate {
  seq?: number | null;
  type: "session_update";
  session_id: string;
  agent_id?: string | null;
  title?: string | null;
  action: "changed" | "deleted";
}

export type EventsFrame = RecallUpdate | ScheduleUpdate | SessionUpdate | RunUpdate | ApprovalUpdate | AgentUpdate | DbUpdate | Notification | SessionSync | Heartbeat | ErrorFrame;

