// Written by `make docs` from the server's OpenAPI document; edit there.

/** Limits and abilities that runs with a model use. */
export interface AbilitiesShape {
  context_window: number;
  is_window_known: boolean;
  output_limit: number | null;
  tool_calls: "native" | "none";
  images: boolean | null;
  thinking: boolean | null;
}

/** A server, as far as all its users may know. */
export interface About {
  version: string;
  store: "sqlite" | "postgresql";
  shell: "bubblewrap" | "landlock" | "unconfined" | "refused";
  model: string;
  is_demo: boolean;
  is_model_removed: boolean;
  models: string[];
}

/** A possible reaction: a request to this server. */
export interface ActionShape {
  label: string;
  method: string;
  path: string;
  body: Record<string, unknown>;
}

export interface Added {
  inserted: number;
  row_ids: number[];
}

export interface AgendaShape {
  ran: RunEntry[];
  planned: PlannedShape[];
  held: PlannedShape[];
}

/** Fields that are left out stay unchanged. */
export interface AgentChange {
  name?: string | null;
  description?: string | null;
  model?: string | null;
  allowed_models?: string[] | null;
  system_prompt?: string | null;
  toolsets?: ("recall" | "scheduler" | "next_run" | "database" | "notify" | "files" | "web" | "shell" | "subagents")[] | null;
  mcp_servers?: string[] | null;
  ask_before?: string[] | null;
  profiles?: string[] | null;
  may_write_skills?: boolean | null;
  subagents?: string[] | null;
  planning?: boolean | null;
  thinking_level?: "off" | "low" | "medium" | "high" | null;
  max_iterations?: number | null;
  run_limit_seconds?: number | null;
  budgets?: BudgetsChange | null;
  database_mb?: number | null;
  timezone?: string | null;
  self_scheduling?: boolean | null;
  schedule?: ScheduleChange | null;
}

export interface AgentList {
  agents: AgentShape[];
}

/** An agent, as a model. */
export interface AgentModel {
  id: string;
  object: "model";
  created: number;
  owned_by: "wakeful";
  name: string;
  description: string;
}

export interface AgentModels {
  object: "list";
  data: AgentModel[];
}

/** The agent's own pause, and the one of all agents, which holds it too. */
export interface AgentPauseAnswer {
  pause: PauseShape | null;
  everything: PauseShape | null;
}

/** An agent and its settings. */
export interface AgentShape {
  id: string;
  name: string;
  description: string;
  model: string | null;
  allowed_models: string[];
  system_prompt: string;
  toolsets: string[];
  mcp_servers: string[];
  ask_before: string[];
  profiles: string[];
  may_write_skills: boolean;
  subagents: string[];
  planning: boolean;
  thinking_level: "off" | "low" | "medium" | "high" | null;
  max_iterations: number;
  budgets: BudgetsShape;
  database_mb: number | null;
  timezone: string | null;
  self_scheduling: boolean;
  schedule: BoundsShape;
  run_limit_seconds: number;
  created_at: string;
  updated_at: string;
  zone: string;
  is_zone_known: boolean;
  offered_timezone: string | null;
  hidden_toolsets: string[];
}

/** The data of an agent. */
export interface AgentSize {
  agent_id: string;
  name: string;
  user_name: string;
  database_bytes: number;
  file_bytes: number;
  message_bytes: number;
  messages: number;
  runs: number;
}

/** Usage of an agent today, in its time zone, and its limits; without a limit, what is left is null. */
export interface AgentUsage {
  today: SpentShape;
  budgets: BudgetsShape;
  tokens_left: number | null;
  cost_left: number | null;
}

/** The pause of all agents, and those of single agents. */
export interface AllPausesAnswer {
  pause: PauseShape | null;
  agents: PauseShape[];
}

export interface AllowanceList {
  allowances: AllowanceShape[];
}

/** A tool that an agent may call in a session without asking. */
export interface AllowanceShape {
  id: string;
  session_id: string;
  tool: string;
  created_at: string;
  session_title: string;
}

export interface Answer {
  approve: boolean;
  note?: string | null;
  always?: boolean;
}

export interface AnswerMessage {
  role: "assistant";
  content: string;
  reasoning_content?: string | null;
  refusal?: null;
}

/** The result; `run_id` is the new run, if the call was one of a headless run. */
export interface ApprovalAnswered {
  ok?: boolean;
  run_id?: string | null;
}

export interface ApprovalList {
  approvals: ApprovalShape[];
}

/** A tool call that needs approval. `sentence` says what it would do, with long values shortened; `shown` has every argument, to be on the screen before a person can approve. */
export interface ApprovalShape {
  run_id: string;
  call_id: string;
  session_id: string;
  agent_id: string | null;
  tool: string;
  args: Record<string, unknown>;
  status: "pending" | "approved" | "denied" | "refused" | "used";
  sentence: string;
  note: string | null;
  asked_at: string;
  answered_at: string | null;
  shown: ShownArgumentShape[];
}

/** The settings of scheduled backups on the node that responds. */
export interface BackupPlanShape {
  every_seconds: number;
  keep: number;
  recipients: number;
}

/** Scheduled backups of all nodes. Backups that `wakeful backup` writes are not counted. */
export interface BackupsShape {
  plan: BackupPlanShape | null;
  started_at: string | null;
  node: string | null;
  is_running: boolean;
  finished_at: string | null;
  file: string | null;
  size: number | null;
  failed_at: string | null;
  error: string | null;
  is_failing: boolean;
}

export interface Blob {
  base64: string;
}

export interface Body_log_in_login_post {
  code?: string | null;
  token?: string | null;
}

export interface Body_upload_sessions__session_id__uploads_post {
  files: string[];
}

/** The time that was requested, and the one that was booked for it. */
export interface BookingShape {
  requested: string;
  requested_at: string | null;
  zone?: string | null;
  moved_by: string[];
  final: string;
  changed_by?: "agent" | "user" | "system" | null;
}

/** Limits of the next runs that an agent books itself. */
export interface BoundsShape {
  mode: "ambient" | "reactive" | "project" | "manual";
  max_horizon_seconds: number;
  min_interval_seconds: number;
  daily_cap: number;
  quiet_from: string | null;
  quiet_to: string | null;
  days: number[];
  is_customised: boolean;
}

/** A browser that gets push messages. Of its endpoint only the host is shown. */
export interface BrowserShape {
  id: string;
  name: string;
  service: string;
  last_sent_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
}

export interface Browsers {
  public_key: string | null;
  problem: string | null;
  browsers: BrowserShape[];
}

/** Fields that are left out stay unchanged; null removes a limit. */
export interface BudgetsChange {
  run_tokens?: number | null;
  run_cost?: number | null;
  day_tokens?: number | null;
  day_cost?: number | null;
}

/** Limits of what an agent may spend; null: no limit. */
export interface BudgetsShape {
  run_tokens?: number | null;
  run_cost?: number | null;
  day_tokens?: number | null;
  day_cost?: number | null;
}

/** One entry of the changelog. For an update, `before` and `after` have only the changed columns. */
export interface ChangeShape {
  id: number;
  at: string;
  actor: "agent" | "user" | "migration" | "system";
  run_id: string | null;
  op: "schema" | "insert" | "update" | "soft_delete" | "restore" | "execute" | "import" | "undo" | "purge";
  table_name: string | null;
  row_id: number | null;
  before: Record<string, string | number | Blob | null> | null;
  after: Record<string, string | number | Blob | null> | null;
  detail: Record<string, unknown> | null;
}

/** Entries, the newest first; fewer than requested if they are large. Pass `next` as `before` to continue. */
export interface Changes {
  changes: ChangeShape[];
  next?: number | null;
}

/** Fields that are left out stay unchanged. */
export interface ChannelChange {
  name?: string | null;
  url?: string | null;
  enabled?: boolean | null;
}

export interface ChannelList {
  channels: ChannelShape[];
}

/** A channel. Of its URL only the host is shown. */
export interface ChannelShape {
  id: string;
  name: string;
  url: string;
  enabled: boolean;
  last_sent_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
}

export interface Choice {
  index: 0;
  message: AnswerMessage;
  finish_reason: "stop" | "length";
  logprobs?: null;
}

/** A schedule with the fields that were asked for. */
export interface ChosenFields {
  id?: string | null;
  kind?: "message" | "session" | null;
  status?: "pending" | "queued" | "delivered" | "cancelled" | "failed" | null;
  label?: string | null;
  fire_at?: string | null;
  origin_session_id?: string | null;
  created_session_id?: string | null;
  delivery_phase?: string | null;
  error_summary?: ErrorShape | null;
  session_config_summary?: Record<string, unknown> | null;
  run_status?: string | null;
  created_at?: string | null;
}

export interface ChosenRows {
  row_ids: number[];
}

export interface ChosenSchedules {
  schedules: ChosenFields[];
  next?: string | null;
}

export interface ColumnShape {
  name: string;
  type: string;
  declared: "text" | "integer" | "real" | "boolean" | "date" | "datetime" | "json" | "blob" | null;
  required: boolean;
  primary_key: boolean;
  default: string | null;
  system: boolean;
}

/** A chat completion. Other parameters are ignored; the answer's header X-Wakeful-Ignored names them. */
export interface CompletionBody {
  model: string;
  messages: Record<string, unknown>[];
  stream?: boolean | null;
  stream_options?: Record<string, unknown> | null;
  n?: number | null;
  tool_choice?: string | Record<string, unknown> | null;
  response_format?: Record<string, unknown> | null;
}

/** A whole answer. */
export interface CompletionShape {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: Choice[];
  usage: CompletionUsage;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

export interface Confirmation {
  confirm: string;
}

/** The key of the file, for other SQLCipher programs. */
export interface DatabaseKey {
  path: string;
  key: string;
  pragma: string;
  cipher: "SQLCipher 4";
}

/** State and content of a database. The two sizes are null while it is locked, because it cannot be read then. */
export interface DatabaseShape {
  state: "none" | "open" | "locked";
  is_on: boolean;
  in_flight: number;
  used_bytes: number | null;
  quota_bytes: number | null;
  default_quota_bytes: number;
  tables: TableBrief[];
  views: ViewBrief[];
}

export interface DatabaseStorageShape {
  used_bytes: number;
  quota_bytes: number;
}

/** One decision about a planned time of a wake; `text` says it in a sentence, with instants in ISO 8601. */
export interface DecisionShape {
  nominal_at: string;
  at: string;
  code: string;
  run_id: string | null;
  detail: Record<string, unknown>;
  text: string;
}

export interface DefaultRequest {
  model: string | null;
}

/** The model of agents without one of their own. */
export interface DefaultShape {
  model: string;
  source: "settings" | "chosen" | "built_in";
  is_removed: boolean;
}

export interface Deleted {
  ok?: boolean;
  wakes_left?: number;
}

export interface DeletedRows {
  deleted: number;
  row_ids: number[];
}

/** The answer to the sender. */
export interface DeliveryAnswer {
  status: "accepted" | "folded" | "notified" | "duplicate" | "ping" | "ignored";
  delivery: string;
  run_id?: string | null;
}

export interface Done {
  ok?: boolean;
}

/** The requested path with a ticket in it, for one GET. */
export interface DownloadTicket {
  path: string;
  expires_in: number;
}

/** The body of every error response. */
export interface ErrorAnswer {
  error: ErrorDetail;
}

/** An error: what is wrong, the value, and the next step. */
export interface ErrorDetail {
  code: string;
  message: string;
  hint?: string | null;
  field?: string | null;
}

/** Why a schedule failed or was cancelled; `data` has what else is known, such as reason, delivery_phase, run_id. */
export interface ErrorShape {
  message: string;
  class: string;
  data: Record<string, string>;
}

/** The number of changed rows, and the rows of RETURNING. */
export interface Executed {
  changed: number;
  columns?: string[] | null;
  rows?: ((string | number | Blob | null)[])[] | null;
  row_count?: number | null;
  truncated?: boolean | null;
}

export interface FileName {
  name?: string;
  path: string;
  size?: number | null;
}

/** Rows as lists, in the order of the columns; `truncated` if some were left out because of their number or size. */
export interface FoundRows {
  columns: string[];
  rows: ((string | number | Blob | null)[])[];
  row_count: number;
  truncated: boolean;
}

export interface FoundServers {
  servers: FoundShape[];
}

/** A server of local models that answers on this machine. */
export interface FoundShape {
  provider: string;
  label: string;
  address: string;
  models: ListedShape[];
}

/** Fields that are left out stay unchanged. */
export interface HookChange {
  name?: string | null;
  instructions?: string | null;
  events?: string[] | null;
  tools?: string[] | null;
  coalesce_seconds?: number | null;
  per_minute?: number | null;
  mode?: "run" | "notify" | null;
  enabled?: boolean | null;
  session_id?: string | null;
  confirm_session?: boolean;
}

export interface HookDeliveryDetail {
  id: string;
  delivery_id: string;
  event: string | null;
  at: string;
  outcome: "run" | "folded" | "notified" | "ping" | "filtered";
  run_id: string | null;
  wake_id: string | null;
  size: number;
  payload: string | null;
}

export interface HookDeliveryList {
  deliveries: HookDeliveryShape[];
  next?: string | null;
}

/** A delivery that was accepted. */
export interface HookDeliveryShape {
  id: string;
  delivery_id: string;
  event: string | null;
  at: string;
  outcome: "run" | "folded" | "notified" | "ping" | "filtered";
  run_id: string | null;
  wake_id: string | null;
  size: number;
}

export interface HookList {
  hooks: HookShape[];
}

/** An incoming hook. Its secret is shown once, when it is made. */
export interface HookShape {
  id: string;
  agent_id: string;
  session_id: string | null;
  name: string;
  scheme: "github" | "stripe" | "standard" | "gitlab" | "bearer";
  path: string;
  url: string | null;
  events: string[];
  instructions: string;
  tools: string[] | null;
  coalesce_seconds: number;
  per_minute: number;
  mode: "run" | "notify";
  enabled: boolean;
  old_secret_until: string | null;
  last_at: string | null;
  refused_at: string | null;
  refused_why: string | null;
  created_at: string;
  updated_at: string;
}

export interface Imported {
  table: string;
  imported: number;
  created_table: boolean;
  ignored_columns: string[];
  renamed_columns: Record<string, string>;
}

export interface InstructionFileList {
  files: InstructionFileShape[];
}

/** A file that instructs an agent, as it is on disk now. */
export interface InstructionFileShape {
  path: string;
  size: number;
  digest: string;
  accepted: boolean;
  text: string;
}

/** The result of the latest run of a wake. */
export interface LastRun {
  id: string;
  status: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted";
  reason: string | null;
  note: "did_nothing" | "empty_answer" | "iteration_limit" | "budget" | "repeated_calls" | "bad_calls" | "too_many_calls" | "answer_too_long" | "output_limit" | "repeated_text" | "call_as_text" | "unkept_promise" | "prompt_cut" | null;
  finished_at: string;
}

/** A change that was not undone, and why. */
export interface LeftShape {
  table?: string | null;
  row_id?: number | null;
  why: string;
}

/** An endpoint: that of an added model (`name`), or one that is about to be added. */
export interface ListRequest {
  name?: string | null;
  provider?: string | null;
  address?: string | null;
  key?: string | null;
}

export interface Listed {
  models: ListedShape[];
}

/** A model in a provider's list, with the facts that the provider states. */
export interface ListedShape {
  id: string;
  label?: string | null;
  context_window?: number | null;
  output_limit?: number | null;
  input_price?: number | null;
  output_price?: number | null;
  has_tools?: boolean | null;
  images?: boolean | null;
  thinking?: boolean | null;
}

/** One line of the log; secrets are replaced by `[secret]`. */
export interface LogLineShape {
  at: string;
  level: "debug" | "info" | "warning" | "error" | "critical";
  logger: string;
  message: string;
  fields: Record<string, unknown>;
  exception: string | null;
}

/** Lines of the node that responds, the oldest first. */
export interface LogLines {
  lines: LogLineShape[];
  next: string;
  missed: number;
}

/** The secret to send as `X-Wakeful-Page`, together with the cookie. It is shown only here. */
export interface LoggedIn {
  page_secret: string;
}

/** A link that logs a browser in, once; `path` follows the server's address. `url` is null without `public_url`. */
export interface LoginLink {
  path: string;
  url: string | null;
  expires_in: number;
}

/** A new token. Its secret is shown only here. */
export interface MadeToken {
  token: TokenShape;
  secret: string;
}

/** The result for each row; a deleted row is revived. */
export interface Matched {
  inserted: number;
  updated: number;
  revived: number;
  outcomes: ("inserted" | "updated" | "revived")[];
  row_ids: number[];
}

export interface McpServerList {
  mcp_servers: McpServerShape[];
}

/** An MCP server on this node, without its command or address, which only the settings file has. */
export interface McpServerShape {
  name: string;
  kind: "stdio" | "http";
  for_users: boolean;
  state: "off" | "starting" | "on" | "failed";
  tools: number;
  confinement: "bubblewrap" | "landlock" | "unconfined" | "refused" | null;
  note: string | null;
  last_error: string | null;
}

/** The caller, and the scope of their token. */
export interface Me {
  user: UserShape;
  scope: "read" | "chat" | "schedule" | "admin";
  token_id: string;
}

/** One entry of a transcript. */
export interface MessageShape {
  id: string;
  index: number;
  role: string;
  content: string;
  created_at: string;
  run_id: string | null;
  is_recall: boolean;
  source: string | null;
  wake_id: string | null;
  schedule_id?: string | null;
  label: string | null;
  thinking?: string | null;
  tool_calls?: Record<string, unknown>[] | null;
  tool?: Record<string, unknown> | null;
  images?: Record<string, string>[] | null;
  files?: Record<string, string>[] | null;
  through?: string | null;
  is_cut_off?: boolean;
  note?: string | null;
  remark?: "budget" | "promise" | "call_as_text" | "unkept_promise" | "prompt_cut" | "model_taken_back" | null;
  timestamp?: string | null;
  subagent?: SubagentStep | null;
  superseded_by?: string | null;
}

export interface MessageTaken {
  run_id: string;
}

export interface Migrated {
  statements: number;
  tables: string[];
  snapshot: string | null;
}

/** Another provider or address drops the key, unless a new one is given. Null removes a limit, price or ability. */
export interface ModelChange {
  address?: string | null;
  key?: string | null;
  context_window?: number | null;
  output_limit?: number | null;
  input_price?: number | null;
  output_price?: number | null;
  tool_calls?: "native" | "none" | null;
  images?: boolean | null;
  thinking?: boolean | null;
  check?: boolean;
  provider?: string | null;
  model?: string | null;
}

export interface ModelList {
  models: ModelShape[];
  default: DefaultShape;
  calls_as_text: string[];
}

/** A model. Null fields were not given, and are asked of the provider or have defaults: see `abilities`. */
export interface ModelShape {
  name: string;
  provider: string;
  provider_label: string;
  model: string;
  address: string;
  has_key: boolean;
  source: "settings" | "added";
  is_default: boolean;
  used_by: string[];
  context_window: number | null;
  output_limit: number | null;
  input_price: number | null;
  output_price: number | null;
  tool_calls: "native" | "none" | null;
  images: boolean | null;
  thinking: boolean | null;
  abilities: AbilitiesShape;
  tested_at: string | null;
  created_at: string | null;
  updated_at: string | null;
}

/** The result of a test request, which offers the model one tool. */
export interface ModelTrialShape {
  model: string;
  outcome: "answered" | "waiting" | "failed" | "timed_out";
  seconds: number;
  said?: string | null;
  reason?: string | null;
  problem?: "address" | "busy" | "key" | "model" | "name" | "not_a_model" | "package" | "quota" | "refused" | "timeout" | "tls" | null;
  tool_calls?: "native" | "none" | null;
  tools_note?: string | null;
  is_loading?: boolean;
  context_window?: number | null;
  output_limit?: number | null;
}

export interface NewAgent {
  name: string;
  description?: string | null;
  model?: string | null;
  allowed_models?: string[] | null;
  system_prompt?: string | null;
  toolsets?: ("recall" | "scheduler" | "next_run" | "database" | "notify" | "files" | "web" | "shell" | "subagents")[] | null;
  mcp_servers?: string[] | null;
  ask_before?: string[] | null;
  profiles?: string[] | null;
  may_write_skills?: boolean | null;
  subagents?: string[] | null;
  planning?: boolean | null;
  thinking_level?: "off" | "low" | "medium" | "high" | null;
  max_iterations?: number | null;
  run_limit_seconds?: number | null;
  budgets?: BudgetsChange | null;
  database_mb?: number | null;
  timezone?: string | null;
  self_scheduling?: boolean | null;
  schedule?: ScheduleChange | null;
}

/** The parts of a browser's `PushSubscription`. */
export interface NewBrowser {
  name: string;
  endpoint: string;
  p256dh: string;
  auth: string;
}

export interface NewChannel {
  name: string;
  url: string;
  enabled?: boolean;
}

export interface NewColumn {
  name: string;
  type?: "text" | "integer" | "real" | "boolean" | "date" | "datetime" | "json" | "blob";
  required?: boolean;
  unique?: boolean;
  primary_key?: boolean;
  default?: string | number | boolean | null;
}

export interface NewColumns {
  columns: NewColumn[];
}

export interface NewDownloadTicket {
  path: string;
}

export interface NewHook {
  name: string;
  scheme: "github" | "stripe" | "standard" | "gitlab" | "bearer";
  instructions?: string;
  events?: string[];
  tools?: string[] | null;
  coalesce_seconds?: number;
  per_minute?: number;
  mode?: "run" | "notify";
  enabled?: boolean;
  session_id?: string | null;
  confirm_session?: boolean;
  secret?: string | null;
}

/** A file as text. Without `create`, the table must exist. */
export interface NewImport {
  table: string;
  format?: "csv" | "json" | "jsonl";
  text: string;
  create?: boolean;
  source?: string;
}

export interface NewLoginLink {
  user_id?: string | null;
}

export interface NewMessage {
  content: string;
  images?: string[] | null;
  files?: FileName[] | null;
}

/** Statements, separated by `;`. They run in one transaction, after a snapshot. */
export interface NewMigration {
  purpose: string;
  up_sql: string;
  down_sql?: string;
}

export interface NewModel {
  address?: string | null;
  key?: string | null;
  context_window?: number | null;
  output_limit?: number | null;
  input_price?: number | null;
  output_price?: number | null;
  tool_calls?: "native" | "none" | null;
  images?: boolean | null;
  thinking?: boolean | null;
  check?: boolean;
  provider: string;
  model: string;
  name?: string | null;
  make_default?: boolean;
}

/** A next run to book: at a time with its zone, a number of seconds from now, or `when` as text. */
export interface NewNextRun {
  in_seconds?: number | null;
  scheduled_at?: string | null;
  when?: string | null;
  timezone?: string | null;
  instructions: string;
  context_views?: string[];
  priority?: "normal" | "low";
  on_miss?: "skip" | "run_once" | "run_catchup" | null;
}

/** A parameter with a default, even null, can be left out when the view is run. */
export interface NewParameter {
  name: string;
  description?: string;
  default?: string | number | boolean | null;
}

/** A pause until an instant, for a number of seconds or for a preset; without any, until it is resumed. */
export interface NewPause {
  until?: string | null;
  seconds?: number | null;
  preset?: "1h" | "4h" | "tomorrow" | "indefinitely" | null;
  reason?: string;
  stop?: boolean;
}

/** A recall to book. */
export interface NewRecall {
  call_type: "once" | "recurring" | "immediate";
  when?: string | null;
  timezone?: string | null;
  timezone_offset?: string | null;
  interval_seconds?: number | null;
  cron?: string | null;
  until?: string | null;
  max_runs?: number | null;
  on_miss?: "skip" | "run_once" | "run_catchup" | null;
  priority?: "normal" | "low";
  internal_comment?: string;
  additional_context_message: string;
}

export interface NewRows {
  rows: Record<string, unknown>[];
}

/** A schedule to book: exactly one of `delay_ms`, `at` and `when`; `session_config` with kind session only. */
export interface NewSchedule {
  kind: "message" | "session";
  message: string;
  delay_ms?: number | null;
  at?: string | null;
  when?: string | null;
  timezone?: string | null;
  label?: string;
  session_config?: Record<string, unknown> | null;
  ephemeral?: boolean;
}

export interface NewSession {
  agent_id?: string | null;
  title?: string;
}

/** A table; the server adds its own three columns. */
export interface NewTable {
  name: string;
  purpose: string;
  columns: NewColumn[];
  indexes?: string[][];
}

export interface NewText {
  text: string;
}

export interface NewTokenShape {
  name: string;
  scope: "read" | "chat" | "schedule" | "admin";
  expires_at?: string | null;
  expires_in?: number | null;
  user_id?: string | null;
}

export interface NewUser {
  name: string;
  role?: "owner" | "user";
}

export interface NewView {
  sql: string;
  description?: string;
  parameters?: NewParameter[];
  render?: "table" | "bar" | "line" | "pie" | "number";
  pinned?: boolean | null;
}

export interface NewWebhook {
  name: string;
  url: string;
  events: ("run.finished" | "run.failed" | "wake.missed" | "loop.ended" | "notification")[];
  agent_id?: string | null;
  enabled?: boolean;
}

export interface NextRunAnswer {
  next_run: NextRunShape | null;
}

/** The next run, whether its time was moved, and how many runs the agent may still book today. */
export interface NextRunBooked {
  next_run: NextRunShape;
  told: string;
  clamped: boolean;
  clamp_reasons: string[];
  requested_at: string;
  remaining_budget_today: number;
}

/** The pending next run of an agent, if there is one. */
export interface NextRunShape {
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  id: string;
  agent_id: string;
  scheduled_at: string;
  attempt_at: string;
  held_by: string | null;
  is_paused: boolean;
  booking: BookingShape | null;
  instructions: string;
  context_views: string[];
  priority: "normal" | "low";
  on_miss: "skip" | "run_once" | "run_catchup";
  scheduled_by: "agent" | "user" | "system";
  booked_by_run: string | null;
  status: "pending" | "queued" | "running" | "fired" | "failed" | "cancelled" | "skipped" | "superseded";
  created_at: string;
  updated_at: string;
  has_read: string | null;
  through: string | null;
}

export interface NodeList {
  nodes: NodeShape[];
  this_id: string;
}

/** One server process on the store. */
export interface NodeShape {
  id: string;
  name: string;
  version: string;
  place: string;
  started_at: string;
  seen_at: string;
  is_alive: boolean;
  is_draining: boolean;
  mcp_servers: string[];
  runs: number;
  agents: number;
}

/** A notification in the inbox. `view_ref` is a saved view of the agent's database that shows more. */
export interface NotificationShape {
  id: string;
  agent_id: string | null;
  code: string;
  title: string;
  body: string;
  created_at: string;
  wake_id: string | null;
  run_id: string | null;
  session_id: string | null;
  view_ref: string | null;
  read_at: string | null;
  times: Record<string, string>;
  resolved_at: string | null;
  actions?: ActionShape[];
}

export interface Notifications {
  notifications: NotificationShape[];
}

/** The body of an error response under /v1. */
export interface OpenAIErrorAnswer {
  error: OpenAIErrorDetail;
}

/** An error in OpenAI's form. `message` ends with the next step. */
export interface OpenAIErrorDetail {
  message: string;
  type: string;
  param: string | null;
  code: string;
}

export interface ParameterShape {
  name: string;
  description?: string;
  default?: string | number | boolean | null;
}

export interface PauseAnswer {
  pause: PauseShape | null;
}

/** A period in which wakes wait. */
export interface PauseShape {
  id: string;
  agent_id: string | null;
  started_at: string;
  until: string | null;
  reason: string;
  held: number;
}

export interface Pin {
  pinned: boolean;
}

/** A future run. If `at` is later than `nominal_at`, `reason` says why. */
export interface PlannedShape {
  wake_id: string;
  agent_id: string;
  session_id: string | null;
  kind: string;
  comment: string;
  about: string;
  nominal_at: string;
  at: string;
  covers: number;
  reason: string | null;
}

/** The planned booking. During a pause without an end, `times` is empty and `held` has the times. */
export interface PreviewShape {
  times: TimeShape[];
  held: TimeShape[];
  booking: BookingShape | null;
}

/** That the person at a browser that is logged in is still its user. */
export interface Proof {
  proof: string;
}

/** A provider, and what a model from it needs. */
export interface ProviderShape {
  id: string;
  label: string;
  is_local: boolean;
  needs_key: boolean;
  address: string | null;
  address_example: string | null;
  key_page: string | null;
  lists_models: boolean;
  example: string;
  note: string | null;
  extra: string | null;
  is_available: boolean;
}

export interface Providers {
  providers: ProviderShape[];
}

/** The result of a test message. `handed_over`: the push service has it; the browser may get it later. */
export interface PushTestShape {
  outcome: "handed_over" | "gone" | "failed" | "timed_out" | "rate_limited";
  reason?: string | null;
}

export interface RecallAnswer {
  recall: RecallShape | null;
}

/** The recall, its time as text, and a warning if its text is not a task for the agent. */
export interface RecallBooked {
  recall: RecallShape;
  told: string;
  warning?: string | null;
}

/** Fields that are left out stay unchanged. */
export interface RecallChange {
  when?: string | null;
  timezone?: string | null;
  interval_seconds?: number | null;
  cron?: string | null;
  until?: string | null;
  max_runs?: number | null;
  on_miss?: "skip" | "run_once" | "run_catchup" | null;
  priority?: "normal" | "low" | null;
  internal_comment?: string | null;
  additional_context_message?: string | null;
}

/** A recall under the names of its door. */
export interface RecallShape {
  id: string;
  session_id: string;
  call_type: "once" | "recurring" | "immediate";
  interval_seconds: number | null;
  cron: string | null;
  timezone: string | null;
  until: string | null;
  max_runs: number | null;
  booking: BookingShape | null;
  nominal_at: string;
  attempt_at: string;
  held_by: string | null;
  internal_comment: string;
  additional_context_message: string;
  priority: "normal" | "low";
  on_miss: "skip" | "run_once" | "run_catchup";
  scheduled_by: "agent" | "user" | "system";
  booked_by_run: string | null;
  status: string;
  reason: string | null;
  error: string | null;
  created_at: string;
  updated_at: string;
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  trigger_at: string;
  is_paused: boolean;
  has_read: string | null;
  through: string | null;
}

export interface Recovered {
  table: string;
  recovered: number;
  snapshot: string;
}

export interface Restored {
  restored: number;
  row_ids: number[];
}

/** Retention of data about ended runs and wakes; set in the server's settings. */
export interface RetentionShape {
  events_hours: number;
  skipped_days: number;
  forget_recalls_after_days: number;
  runs_days: number;
  sessions_days: number;
}

/** Without `content` the message stays as it is. */
export interface Retry {
  content?: string | null;
}

/** A hook with its secret, which is not shown again; null: you have set it yourself. */
export interface RevealedHook {
  id: string;
  agent_id: string;
  session_id: string | null;
  name: string;
  scheme: "github" | "stripe" | "standard" | "gitlab" | "bearer";
  path: string;
  url: string | null;
  events: string[];
  instructions: string;
  tools: string[] | null;
  coalesce_seconds: number;
  per_minute: number;
  mode: "run" | "notify";
  enabled: boolean;
  old_secret_until: string | null;
  last_at: string | null;
  refused_at: string | null;
  refused_why: string | null;
  created_at: string;
  updated_at: string;
  secret: string | null;
}

/** A webhook with the secret of its signatures, which is not shown again. */
export interface RevealedWebhookShape {
  id: string;
  name: string;
  url: string;
  agent_id: string | null;
  events: string[];
  enabled: boolean;
  old_secret_until: string | null;
  failing_since: string | null;
  last_sent_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
  updated_at: string;
  secret: string;
}

export interface Rotation {
  secret?: string | null;
}

/** A page of a table. The first column, `_row_id`, identifies a row in edits; `total` is the number of all rows. */
export interface Rows {
  columns: string[];
  rows: ((string | number | Blob | null)[])[];
  row_count: number;
  truncated: boolean;
  table: string;
  total: number;
}

export interface RowsChange {
  row_ids: number[];
  changes: Record<string, unknown>;
}

export interface RowsToMatch {
  rows: Record<string, unknown>[];
  conflict_columns: string[];
}

export interface RunDetail {
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  id: string;
  agent_id: string;
  session_id: string | null;
  wake_id: string | null;
  kind: "recall" | "message" | "session" | "next_run" | null;
  trigger: "message" | "wake" | "run_now";
  scheduled_by: "agent" | "user" | "system";
  nominal_at: string;
  covers: number;
  status: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted";
  reason: string | null;
  note: "did_nothing" | "empty_answer" | "iteration_limit" | "budget" | "repeated_calls" | "bad_calls" | "too_many_calls" | "answer_too_long" | "output_limit" | "repeated_text" | "call_as_text" | "unkept_promise" | "prompt_cut" | null;
  error: string | null;
  attempt: number;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  node: string | null;
  about: string;
  usage: UsageShape | null;
  has_read: string | null;
  through: string | null;
}

export interface RunEntry {
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  id: string;
  agent_id: string;
  session_id: string | null;
  wake_id: string | null;
  kind: "recall" | "message" | "session" | "next_run" | null;
  trigger: "message" | "wake" | "run_now";
  scheduled_by: "agent" | "user" | "system";
  nominal_at: string;
  covers: number;
  status: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted";
  reason: string | null;
  note: "did_nothing" | "empty_answer" | "iteration_limit" | "budget" | "repeated_calls" | "bad_calls" | "too_many_calls" | "answer_too_long" | "output_limit" | "repeated_text" | "call_as_text" | "unkept_promise" | "prompt_cut" | null;
  error: string | null;
  attempt: number;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  node: string | null;
  about: string;
  has_read: string | null;
  through: string | null;
}

/** The frames of a run, as its session's socket sent them. Pass `next` as `after` to continue. */
export interface RunEvents {
  events: Record<string, unknown>[];
  next?: number | null;
}

export interface RunList {
  runs: RunDetail[];
  next?: string | null;
}

/** One execution of an agent, or the record of one that was skipped. */
export interface RunShape {
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  id: string;
  agent_id: string;
  session_id: string | null;
  wake_id: string | null;
  kind: "recall" | "message" | "session" | "next_run" | null;
  trigger: "message" | "wake" | "run_now";
  scheduled_by: "agent" | "user" | "system";
  nominal_at: string;
  covers: number;
  status: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted";
  reason: string | null;
  note: "did_nothing" | "empty_answer" | "iteration_limit" | "budget" | "repeated_calls" | "bad_calls" | "too_many_calls" | "answer_too_long" | "output_limit" | "repeated_text" | "call_as_text" | "unkept_promise" | "prompt_cut" | null;
  error: string | null;
  attempt: number;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  node: string | null;
  has_read: string | null;
  through: string | null;
}

export interface RunWithTexts {
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  id: string;
  agent_id: string;
  session_id: string | null;
  wake_id: string | null;
  kind: "recall" | "message" | "session" | "next_run" | null;
  trigger: "message" | "wake" | "run_now";
  scheduled_by: "agent" | "user" | "system";
  nominal_at: string;
  covers: number;
  status: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted";
  reason: string | null;
  note: "did_nothing" | "empty_answer" | "iteration_limit" | "budget" | "repeated_calls" | "bad_calls" | "too_many_calls" | "answer_too_long" | "output_limit" | "repeated_text" | "call_as_text" | "unkept_promise" | "prompt_cut" | null;
  error: string | null;
  attempt: number;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  node: string | null;
  about: string;
  usage: UsageShape | null;
  brief: string;
  answer: string;
  has_read: string | null;
  through: string | null;
}

/** The schedule, its time as text, and a warning if some of its configuration has no effect. */
export interface ScheduleBooked {
  schedule: ScheduleShape;
  told: string;
  warning?: string | null;
}

/** A mode sets all bounds; other fields in the same request are applied after it. */
export interface ScheduleChange {
  mode?: "ambient" | "reactive" | "project" | "manual" | null;
  max_horizon_seconds?: number | null;
  min_interval_seconds?: number | null;
  daily_cap?: number | null;
  quiet_from?: string | null;
  quiet_to?: string | null;
  days?: number[] | null;
}

/** Public attributes of a schedule, live or ended. */
export interface ScheduleShape {
  id: string;
  kind: "message" | "session";
  status: "pending" | "queued" | "delivered" | "cancelled" | "failed";
  label: string;
  fire_at: string;
  origin_session_id: string | null;
  created_session_id: string | null;
  delivery_phase: string | null;
  error_summary: ErrorShape | null;
  session_config_summary: Record<string, unknown> | null;
  run_status: string | null;
  created_at: string;
}

/** Tables, views and size; the system tables only if requested. */
export interface SchemaShape {
  tables: TableShape[];
  views: ViewShape[];
  storage: DatabaseStorageShape;
  system_tables: SystemTableShape[];
}

export interface SearchAnswer {
  results: SearchResult[];
  next?: string | null;
  index: SearchIndexShape;
}

/** Whether everything from before the last upgrade can be found yet, and how much of it. */
export interface SearchIndexShape {
  is_complete: boolean;
  percent: number;
}

/** A message that matches, or a session by its title: then `message_id`, `run_id` and `role` are null. */
export interface SearchResult {
  session_id: string;
  session_title: string;
  agent_id: string;
  message_id: string | null;
  run_id: string | null;
  role: string | null;
  created_at: string;
  snippet: string;
  matches: unknown[][];
}

export interface Seen {
  digest: string;
}

/** Fields that are left out stay unchanged. Another agent continues with all of its own tools. */
export interface SessionChange {
  title?: string;
  agent_id?: string;
}

export interface SessionDetail {
  id: string;
  agent_id: string;
  title: string;
  created_at: string;
  updated_at: string;
  tool_limit: string[] | null;
  origin_session_id: string | null;
  origin_wake_id: string | null;
  origin_label: string | null;
  scheduled_origin_session_id?: string | null;
  scheduled_from_schedule_id?: string | null;
  scheduled_from_label?: string | null;
  is_running: boolean;
  is_failed: boolean;
  needs_approval: boolean;
  recall: RecallShape | null;
  messages: MessageShape[];
}

export interface SessionList {
  sessions: SessionShape[];
  next?: string | null;
}

/** A session. `tool_limit` lists the tools of the agent that handed it over; null: no limit. */
export interface SessionShape {
  id: string;
  agent_id: string;
  title: string;
  created_at: string;
  updated_at: string;
  tool_limit: string[] | null;
  origin_session_id: string | null;
  origin_wake_id: string | null;
  origin_label: string | null;
  scheduled_origin_session_id?: string | null;
  scheduled_from_schedule_id?: string | null;
  scheduled_from_label?: string | null;
  is_running: boolean;
  is_failed: boolean;
  needs_approval: boolean;
  recall: RecallShape | null;
}

/** An argument as text, with blanks and invisible characters written out. A long one has a `middle`, which may be folded if its length is shown. */
export interface ShownArgumentShape {
  name: string;
  start: string;
  middle: string;
  end: string;
}

export interface SnapshotShape {
  name: string;
  at: string;
  bytes: number;
  kept_until: string | null;
}

export interface Snapshots {
  snapshots: SnapshotShape[];
}

/** Usage since a time, including planning and subagents. */
export interface SpentShape {
  since: string;
  runs: number;
  model_calls: number;
  tokens: number;
  cost: number;
  unpriced_runs: number;
}

export interface StatementBody {
  sql: string;
  params?: Record<string, unknown> | unknown[] | null;
  limit?: number;
  include_deleted?: boolean;
}

/** The run that was asked to stop, and its state then; or why there was none, or why it takes longer. */
export interface StopAnswer {
  ok: boolean;
  run_id?: string | null;
  was?: "queued" | "running" | null;
  reason?: string | null;
}

/** Bytes on disk; workspaces and databases only of the node that responds. */
export interface StorageShape {
  store_bytes: number;
  reusable_bytes: number;
  workspace_bytes: number;
  database_bytes: number;
  free_bytes: number;
  search_index: SearchIndexShape;
  retention: RetentionShape;
  measured_at: string;
  tables: TableSize[];
  agents: AgentSize[];
}

/** The subagent that took a step. The id is that of the call that gave it its task. */
export interface SubagentStep {
  id: string;
  agent: string;
  role: string;
}

export interface SystemTableShape {
  name: string;
  columns: ColumnShape[];
  indexes: TableIndexShape[];
}

export interface TableBrief {
  name: string;
  purpose: string;
  rows: number;
  deleted_rows: number;
}

export interface TableChanged {
  table: string;
  columns: string[];
}

export interface TableIndexShape {
  name: string;
  unique: boolean;
  columns: (string | null)[];
}

export interface TableShape {
  name: string;
  columns: ColumnShape[];
  indexes: TableIndexShape[];
  purpose: string;
  rows: number;
  deleted_rows: number;
}

/** A table of the store, with its indexes. */
export interface TableSize {
  name: string;
  bytes: number;
}

/** Without `new_name`, the table keeps its name. */
export interface TableToRecover {
  table: string;
  new_name?: string | null;
}

export interface TakenBack {
  statements: number;
  tables: string[];
  snapshot: string | null;
}

export interface TestRequest {
  model?: string | null;
}

/** The result of a test message. */
export interface TestShape {
  outcome: "sent" | "failed" | "timed_out" | "rate_limited";
  reason?: string | null;
}

/** A ticket that opens one socket, as `?ticket=`. */
export interface Ticket {
  ticket: string;
  expires_in: number;
}

/** One time of a run that is not booked yet. */
export interface TimeShape {
  nominal_at: string;
  at: string;
  covers: number;
  reason: string | null;
}

/** A token, without its secret. */
export interface TokenShape {
  id: string;
  user_id: string;
  name: string;
  kind: "api" | "browser";
  scope: "read" | "chat" | "schedule" | "admin";
  created_at: string;
  expires_at: string | null;
}

export interface Tokens {
  tokens: TokenShape[];
}

export interface ToolList {
  tools: ToolShape[];
}

/** A tool that an agent can have; one without a toolset depends on other settings of the agent. */
export interface ToolShape {
  name: string;
  toolset: string | null;
}

export interface Undone {
  run_id: string;
  undone: number;
  left: LeftShape[];
  left_count: number;
}

export interface Updated {
  updated: number;
  row_ids: number[];
}

export interface UploadList {
  files: UploadShape[];
}

export interface UploadShape {
  name: string;
  path: string;
  size: number;
}

/** Usage of a run; cost is null if the price is unknown. */
export interface UsageShape {
  model: string;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
  model_calls: number;
  tool_calls: number;
}

/** Fields that are left out stay unchanged. */
export interface UserChange {
  name?: string | null;
  role?: "owner" | "user" | null;
  timezone?: string | null;
}

/** A user. */
export interface UserShape {
  id: string;
  name: string;
  role: "owner" | "user";
  timezone: string | null;
  created_at: string;
}

export interface Users {
  users: UserShape[];
}

export interface Verified {
  intact: boolean;
  broken_at: number | null;
  is_cut_off: boolean;
}

export interface ViewArguments {
  params?: Record<string, unknown> | null;
  limit?: number;
}

export interface ViewBrief {
  name: string;
  render: "table" | "bar" | "line" | "pie" | "number";
  pinned: boolean;
}

export interface ViewFound {
  columns: string[];
  rows: ((string | number | Blob | null)[])[];
  row_count: number;
  truncated: boolean;
  view: string;
  render: "table" | "bar" | "line" | "pie" | "number";
  changed_at: string | null;
}

export interface ViewSaved {
  view: string;
  outcome: "created" | "replaced";
  pinned: boolean;
}

/** A saved SELECT. */
export interface ViewShape {
  name: string;
  sql: string;
  description: string;
  parameters: ParameterShape[];
  required_parameters: string[];
  render: "table" | "bar" | "line" | "pie" | "number";
  pinned: boolean;
  created_at: string;
  updated_at: string;
}

export interface Views {
  views: ViewShape[];
}

/** Fields that are left out stay unchanged. Recurrence is for recalls only. */
export interface WakeChange {
  when?: string | null;
  timezone?: string | null;
  interval_seconds?: number | null;
  cron?: string | null;
  until?: string | null;
  max_runs?: number | null;
  on_miss?: "skip" | "run_once" | "run_catchup" | null;
  priority?: "normal" | "low" | null;
  instructions?: string | null;
  comment?: string | null;
  muted?: boolean | null;
  ping_url?: string | null;
}

export interface WakeList {
  wakes: WakeWithLastRun[];
  next?: string | null;
}

/** A promise to wake an agent. */
export interface WakeShape {
  id: string;
  kind: "recall" | "message" | "session" | "next_run";
  agent_id: string;
  session_id: string | null;
  call_type: "once" | "recurring" | "immediate";
  interval_seconds: number | null;
  cron: string | null;
  timezone: string | null;
  until: string | null;
  max_runs: number | null;
  booking: BookingShape | null;
  nominal_at: string;
  attempt_at: string;
  held_by: string | null;
  comment: string;
  instructions: string;
  context_views: string[];
  session_config: Record<string, unknown> | null;
  priority: "normal" | "low";
  on_miss: "skip" | "run_once" | "run_catchup";
  scheduled_by: "agent" | "user" | "system";
  booked_by_run: string | null;
  tools: string[] | null;
  status: "pending" | "queued" | "running" | "fired" | "failed" | "cancelled" | "skipped" | "superseded";
  reason: string | null;
  error: string | null;
  delivery_phase: string | null;
  created_session_id: string | null;
  muted: boolean;
  ping_to: string | null;
  created_at: string;
  updated_at: string;
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  is_paused: boolean;
  has_read: string | null;
  through: string | null;
}

export interface WakeWithLastRun {
  id: string;
  kind: "recall" | "message" | "session" | "next_run";
  agent_id: string;
  session_id: string | null;
  call_type: "once" | "recurring" | "immediate";
  interval_seconds: number | null;
  cron: string | null;
  timezone: string | null;
  until: string | null;
  max_runs: number | null;
  booking: BookingShape | null;
  nominal_at: string;
  attempt_at: string;
  held_by: string | null;
  comment: string;
  instructions: string;
  context_views: string[];
  session_config: Record<string, unknown> | null;
  priority: "normal" | "low";
  on_miss: "skip" | "run_once" | "run_catchup";
  scheduled_by: "agent" | "user" | "system";
  booked_by_run: string | null;
  tools: string[] | null;
  status: "pending" | "queued" | "running" | "fired" | "failed" | "cancelled" | "skipped" | "superseded";
  reason: string | null;
  error: string | null;
  delivery_phase: string | null;
  created_session_id: string | null;
  muted: boolean;
  ping_to: string | null;
  created_at: string;
  updated_at: string;
  door: "page" | "rest" | "cli" | "tool" | "mcp" | "v1" | "hook" | null;
  token_id: string | null;
  token_name: string | null;
  outside_sources: string[];
  is_paused: boolean;
  last_run: LastRun | null;
  has_read: string | null;
  through: string | null;
}

/** Fields that are left out stay unchanged. */
export interface WebhookChange {
  name?: string | null;
  url?: string | null;
  events?: ("run.finished" | "run.failed" | "wake.missed" | "loop.ended" | "notification")[] | null;
  agent_id?: string | null;
  enabled?: boolean | null;
}

export interface WebhookDeliveryList {
  deliveries: WebhookDeliveryShape[];
  next?: string | null;
}

/** An event for a webhook, and how sending it went. `id` is the `webhook-id` that the receiver gets. */
export interface WebhookDeliveryShape {
  id: string;
  event: string;
  status: "pending" | "sent" | "failed" | "cancelled";
  attempts: number;
  next_at: string | null;
  last_status: number | null;
  last_error: string | null;
  created_at: string;
  settled_at: string | null;
  data: Record<string, unknown>;
}

export interface WebhookList {
  webhooks: WebhookShape[];
}

/** An outgoing webhook. Of its address only the host is shown. */
export interface WebhookShape {
  id: string;
  name: string;
  url: string;
  agent_id: string | null;
  events: string[];
  enabled: boolean;
  old_secret_until: string | null;
  failing_since: string | null;
  last_sent_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
  updated_at: string;
}

export interface Why {
  decisions: DecisionShape[];
}

export interface WritingStatement {
  sql: string;
  params?: Record<string, unknown> | unknown[] | null;
}

/** What each route takes and answers. */
export interface Routes {
  "GET /about": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: About };
  "GET /agenda": { path: Record<never, never>; query: { from?: string | null; to?: string | null }; body?: undefined; answer: AgendaShape };
  "GET /agents": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: AgentList };
  "POST /agents": { path: Record<never, never>; query: Record<never, never>; body: NewAgent; answer: AgentShape };
  "GET /agents/{agent_id}": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: AgentShape };
  "PATCH /agents/{agent_id}": { path: { agent_id: string }; query: Record<never, never>; body: AgentChange; answer: AgentShape };
  "DELETE /agents/{agent_id}": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Deleted };
  "GET /agents/{agent_id}/allowances": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: AllowanceList };
  "DELETE /agents/{agent_id}/allowances/{allowance_id}": { path: { agent_id: string; allowance_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /agents/{agent_id}/db": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: DatabaseShape };
  "DELETE /agents/{agent_id}/db": { path: { agent_id: string }; query: Record<never, never>; body: Confirmation; answer: Done };
  "GET /agents/{agent_id}/db/changelog": { path: { agent_id: string }; query: { run_id?: string | null; table?: string | null; row_id?: number | null; before?: number | null; limit?: number }; body?: undefined; answer: Changes };
  "POST /agents/{agent_id}/db/changelog/{change_id}/take-back": { path: { agent_id: string; change_id: number }; query: Record<never, never>; body?: undefined; answer: TakenBack };
  "POST /agents/{agent_id}/db/execute": { path: { agent_id: string }; query: Record<never, never>; body: WritingStatement; answer: Executed };
  "POST /agents/{agent_id}/db/import": { path: { agent_id: string }; query: Record<never, never>; body: NewImport; answer: Imported };
  "POST /agents/{agent_id}/db/key": { path: { agent_id: string }; query: Record<never, never>; body: Confirmation; answer: DatabaseKey };
  "POST /agents/{agent_id}/db/migrate": { path: { agent_id: string }; query: Record<never, never>; body: NewMigration; answer: Migrated };
  "POST /agents/{agent_id}/db/query": { path: { agent_id: string }; query: Record<never, never>; body: StatementBody; answer: FoundRows };
  "POST /agents/{agent_id}/db/rotate-key": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /agents/{agent_id}/db/schema": { path: { agent_id: string }; query: { system?: boolean }; body?: undefined; answer: SchemaShape };
  "GET /agents/{agent_id}/db/snapshots": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Snapshots };
  "POST /agents/{agent_id}/db/snapshots/{snapshot}/recover": { path: { agent_id: string; snapshot: string }; query: Record<never, never>; body: TableToRecover; answer: Recovered };
  "POST /agents/{agent_id}/db/tables": { path: { agent_id: string }; query: Record<never, never>; body: NewTable; answer: TableChanged };
  "POST /agents/{agent_id}/db/tables/{table}/columns": { path: { agent_id: string; table: string }; query: Record<never, never>; body: NewColumns; answer: TableChanged };
  "GET /agents/{agent_id}/db/tables/{table}/export": { path: { agent_id: string; table: string }; query: { format?: "csv" | "json" | "jsonl"; show?: "active" | "deleted" | "all" }; body?: undefined; answer: Record<string, unknown>[] };
  "GET /agents/{agent_id}/db/tables/{table}/rows": { path: { agent_id: string; table: string }; query: { show?: "active" | "deleted" | "all"; where?: string | null; sort?: string | null; desc?: boolean; limit?: number; offset?: number }; body?: undefined; answer: Rows };
  "POST /agents/{agent_id}/db/tables/{table}/rows": { path: { agent_id: string; table: string }; query: Record<never, never>; body: NewRows; answer: Added };
  "PATCH /agents/{agent_id}/db/tables/{table}/rows": { path: { agent_id: string; table: string }; query: Record<never, never>; body: RowsChange; answer: Updated };
  "POST /agents/{agent_id}/db/tables/{table}/rows/delete": { path: { agent_id: string; table: string }; query: Record<never, never>; body: ChosenRows; answer: DeletedRows };
  "POST /agents/{agent_id}/db/tables/{table}/rows/restore": { path: { agent_id: string; table: string }; query: Record<never, never>; body: ChosenRows; answer: Restored };
  "POST /agents/{agent_id}/db/tables/{table}/rows/upsert": { path: { agent_id: string; table: string }; query: Record<never, never>; body: RowsToMatch; answer: Matched };
  "GET /agents/{agent_id}/db/verify": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Verified };
  "GET /agents/{agent_id}/db/views": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Views };
  "PUT /agents/{agent_id}/db/views/{view}": { path: { agent_id: string; view: string }; query: Record<never, never>; body: NewView; answer: ViewSaved };
  "DELETE /agents/{agent_id}/db/views/{view}": { path: { agent_id: string; view: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /agents/{agent_id}/db/views/{view}/export": { path: { agent_id: string; view: string }; query: { format?: "csv" | "json" | "jsonl"; params?: string | null }; body?: undefined; answer: Record<string, unknown>[] };
  "PUT /agents/{agent_id}/db/views/{view}/pin": { path: { agent_id: string; view: string }; query: Record<never, never>; body: Pin; answer: Done };
  "POST /agents/{agent_id}/db/views/{view}/run": { path: { agent_id: string; view: string }; query: Record<never, never>; body: ViewArguments; answer: ViewFound };
  "POST /agents/{agent_id}/hooks": { path: { agent_id: string }; query: Record<never, never>; body: NewHook; answer: RevealedHook };
  "GET /agents/{agent_id}/instructions": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: InstructionFileList };
  "PUT /agents/{agent_id}/instructions/{path}": { path: { agent_id: string; path: string }; query: Record<never, never>; body: NewText; answer: InstructionFileShape };
  "POST /agents/{agent_id}/instructions/{path}/accept": { path: { agent_id: string; path: string }; query: Record<never, never>; body: Seen; answer: InstructionFileShape };
  "GET /agents/{agent_id}/next-run": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: NextRunAnswer };
  "PUT /agents/{agent_id}/next-run": { path: { agent_id: string }; query: Record<never, never>; body: NewNextRun; answer: NextRunBooked };
  "DELETE /agents/{agent_id}/next-run": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /agents/{agent_id}/next-run/run-now": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: RunShape };
  "GET /agents/{agent_id}/pause": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: AgentPauseAnswer };
  "PUT /agents/{agent_id}/pause": { path: { agent_id: string }; query: Record<never, never>; body: NewPause; answer: PauseAnswer };
  "DELETE /agents/{agent_id}/pause": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /agents/{agent_id}/test-model": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: ModelTrialShape };
  "GET /agents/{agent_id}/usage": { path: { agent_id: string }; query: Record<never, never>; body?: undefined; answer: AgentUsage };
  "GET /approvals": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: ApprovalList };
  "GET /backups": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: BackupsShape };
  "POST /backups": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: undefined };
  "GET /channels": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: ChannelList };
  "POST /channels": { path: Record<never, never>; query: Record<never, never>; body: NewChannel; answer: ChannelShape };
  "PATCH /channels/{channel_id}": { path: { channel_id: string }; query: Record<never, never>; body: ChannelChange; answer: ChannelShape };
  "DELETE /channels/{channel_id}": { path: { channel_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /channels/{channel_id}/test": { path: { channel_id: string }; query: Record<never, never>; body?: undefined; answer: TestShape };
  "POST /download-tickets": { path: Record<never, never>; query: Record<never, never>; body: NewDownloadTicket; answer: DownloadTicket };
  "GET /healthz": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Record<string, string | boolean> };
  "GET /hooks": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: HookList };
  "GET /hooks/{hook_id}": { path: { hook_id: string }; query: Record<never, never>; body?: undefined; answer: HookShape };
  "PATCH /hooks/{hook_id}": { path: { hook_id: string }; query: Record<never, never>; body: HookChange; answer: HookShape };
  "DELETE /hooks/{hook_id}": { path: { hook_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /hooks/{hook_id}": { path: { hook_id: string }; query: Record<never, never>; body?: undefined; answer: DeliveryAnswer };
  "GET /hooks/{hook_id}/deliveries": { path: { hook_id: string }; query: { page?: string | null; limit?: number }; body?: undefined; answer: HookDeliveryList };
  "GET /hooks/{hook_id}/deliveries/{hook_delivery_id}": { path: { hook_id: string; hook_delivery_id: string }; query: Record<never, never>; body?: undefined; answer: HookDeliveryDetail };
  "POST /hooks/{hook_id}/rotate": { path: { hook_id: string }; query: Record<never, never>; body?: Rotation | null; answer: RevealedHook };
  "POST /hooks/{hook_id}/test": { path: { hook_id: string }; query: Record<never, never>; body?: undefined; answer: DeliveryAnswer };
  "GET /login": { path: Record<never, never>; query: { code?: string | null }; body?: undefined; answer: undefined };
  "POST /login": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: LoggedIn };
  "POST /login-links": { path: Record<never, never>; query: Record<never, never>; body: NewLoginLink; answer: LoginLink };
  "POST /login/renew": { path: Record<never, never>; query: Record<never, never>; body: Proof; answer: Done };
  "POST /logout": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /logs": { path: Record<never, never>; query: { after?: string | null; since?: string | null; level?: "debug" | "info" | "warning" | "error" | "critical" | null; limit?: number; wait?: number }; body?: undefined; answer: LogLines };
  "GET /mcp-servers": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: McpServerList };
  "GET /me": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Me };
  "GET /metrics": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: undefined };
  "GET /models": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: ModelList };
  "POST /models": { path: Record<never, never>; query: Record<never, never>; body: NewModel; answer: ModelShape };
  "PUT /models/default": { path: Record<never, never>; query: Record<never, never>; body: DefaultRequest; answer: DefaultShape };
  "POST /models/discover": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: FoundServers };
  "POST /models/list": { path: Record<never, never>; query: Record<never, never>; body: ListRequest; answer: Listed };
  "GET /models/providers": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Providers };
  "POST /models/test": { path: Record<never, never>; query: Record<never, never>; body: TestRequest; answer: ModelTrialShape };
  "GET /models/{name}": { path: { name: string }; query: Record<never, never>; body?: undefined; answer: ModelShape };
  "PATCH /models/{name}": { path: { name: string }; query: Record<never, never>; body: ModelChange; answer: ModelShape };
  "DELETE /models/{name}": { path: { name: string }; query: { force?: boolean }; body?: undefined; answer: Done };
  "GET /nodes": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: NodeList };
  "POST /nodes/{node_id}/drain": { path: { node_id: string }; query: Record<never, never>; body?: undefined; answer: NodeShape };
  "POST /nodes/{node_id}/undrain": { path: { node_id: string }; query: Record<never, never>; body?: undefined; answer: NodeShape };
  "GET /notifications": { path: Record<never, never>; query: { limit?: number }; body?: undefined; answer: Notifications };
  "POST /notifications/read": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /notifications/{notification_id}/read": { path: { notification_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /pause": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: AllPausesAnswer };
  "PUT /pause": { path: Record<never, never>; query: Record<never, never>; body: NewPause; answer: PauseAnswer };
  "DELETE /pause": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /push-subscriptions": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Browsers };
  "POST /push-subscriptions": { path: Record<never, never>; query: Record<never, never>; body: NewBrowser; answer: BrowserShape };
  "DELETE /push-subscriptions/{subscription_id}": { path: { subscription_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /push-subscriptions/{subscription_id}/test": { path: { subscription_id: string }; query: Record<never, never>; body?: undefined; answer: PushTestShape };
  "GET /readyz": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: unknown };
  "GET /runs": { path: Record<never, never>; query: { agent_id?: string | null; session_id?: string | null; wake_id?: string | null; status?: "queued" | "running" | "success" | "failed" | "stopped" | "skipped" | "interrupted" | null; limit?: number; page?: string | null }; body?: undefined; answer: RunList };
  "GET /runs/{run_id}": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: RunWithTexts };
  "POST /runs/{run_id}/again": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: RunShape };
  "GET /runs/{run_id}/approvals": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: ApprovalList };
  "POST /runs/{run_id}/approvals/{call_id}": { path: { run_id: string; call_id: string }; query: Record<never, never>; body: Answer; answer: ApprovalAnswered };
  "POST /runs/{run_id}/continue": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: RunShape };
  "GET /runs/{run_id}/events": { path: { run_id: string }; query: { after?: number }; body?: undefined; answer: RunEvents };
  "POST /runs/{run_id}/stop": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: StopAnswer };
  "POST /runs/{run_id}/undo-data": { path: { run_id: string }; query: Record<never, never>; body?: undefined; answer: Undone };
  "GET /schedules/{schedule_id}": { path: { schedule_id: string }; query: { fields?: string | null }; body?: undefined; answer: ChosenFields };
  "DELETE /schedules/{schedule_id}": { path: { schedule_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /search": { path: Record<never, never>; query: { q: string; limit?: number; page?: string | null }; body?: undefined; answer: SearchAnswer };
  "GET /sessions": { path: Record<never, never>; query: { agent_id?: string | null; q?: string | null; has_recall?: boolean; has_wake?: boolean; unattended?: boolean | null; limit?: number; page?: string | null }; body?: undefined; answer: SessionList };
  "POST /sessions": { path: Record<never, never>; query: Record<never, never>; body?: NewSession | null; answer: SessionDetail };
  "GET /sessions/{session_id}": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: SessionDetail };
  "PATCH /sessions/{session_id}": { path: { session_id: string }; query: Record<never, never>; body: SessionChange; answer: SessionShape };
  "DELETE /sessions/{session_id}": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /sessions/{session_id}/export.md": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: undefined };
  "GET /sessions/{session_id}/images/{image_id}": { path: { session_id: string; image_id: string }; query: Record<never, never>; body?: undefined; answer: undefined };
  "POST /sessions/{session_id}/messages": { path: { session_id: string }; query: Record<never, never>; body: NewMessage; answer: MessageTaken };
  "POST /sessions/{session_id}/messages/{message_id}/retry": { path: { session_id: string; message_id: string }; query: Record<never, never>; body?: Retry | null; answer: MessageTaken };
  "GET /sessions/{session_id}/recall": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: RecallAnswer };
  "POST /sessions/{session_id}/recall": { path: { session_id: string }; query: Record<never, never>; body: NewRecall; answer: RecallBooked };
  "PATCH /sessions/{session_id}/recall": { path: { session_id: string }; query: Record<never, never>; body: RecallChange; answer: RecallAnswer };
  "DELETE /sessions/{session_id}/recall": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "POST /sessions/{session_id}/recall/run-now": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: RunShape };
  "POST /sessions/{session_id}/recall/skip": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /sessions/{session_id}/schedules": { path: { session_id: string }; query: { status?: "pending" | "queued" | "delivered" | "cancelled" | "failed" | null; fields?: string | null; limit?: number; page?: string | null }; body?: undefined; answer: ChosenSchedules };
  "POST /sessions/{session_id}/schedules": { path: { session_id: string }; query: Record<never, never>; body: NewSchedule; answer: ScheduleBooked };
  "POST /sessions/{session_id}/stop": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: StopAnswer };
  "POST /sessions/{session_id}/uploads": { path: { session_id: string }; query: Record<never, never>; body?: undefined; answer: UploadList };
  "GET /storage": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: StorageShape };
  "GET /tokens": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Tokens };
  "POST /tokens": { path: Record<never, never>; query: Record<never, never>; body: NewTokenShape; answer: MadeToken };
  "DELETE /tokens/{token_id}": { path: { token_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /tools": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: ToolList };
  "GET /users": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Users };
  "POST /users": { path: Record<never, never>; query: Record<never, never>; body: NewUser; answer: UserShape };
  "GET /users/{user_id}": { path: { user_id: string }; query: Record<never, never>; body?: undefined; answer: UserShape };
  "PATCH /users/{user_id}": { path: { user_id: string }; query: Record<never, never>; body: UserChange; answer: UserShape };
  "DELETE /users/{user_id}": { path: { user_id: string }; query: Record<never, never>; body?: undefined; answer: Deleted };
  "POST /v1/chat/completions": { path: Record<never, never>; query: Record<never, never>; body: CompletionBody; answer: CompletionShape };
  "GET /v1/models": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: AgentModels };
  "GET /v1/models/{model}": { path: { model: string }; query: Record<never, never>; body?: undefined; answer: AgentModel };
  "GET /wakes": { path: Record<never, never>; query: { agent_id?: string | null; status?: "pending" | "queued" | "running" | "fired" | "failed" | "cancelled" | "skipped" | "superseded" | null; live?: boolean; limit?: number; page?: string | null }; body?: undefined; answer: WakeList };
  "GET /wakes/preview": { path: Record<never, never>; query: { agent_id: string; kind?: "recall" | "next_run"; when?: string | null; interval_seconds?: number | null; cron?: string | null; timezone?: string | null; until?: string | null; max_runs?: number | null }; body?: undefined; answer: PreviewShape };
  "GET /wakes/{wake_id}": { path: { wake_id: string }; query: Record<never, never>; body?: undefined; answer: WakeWithLastRun };
  "PATCH /wakes/{wake_id}": { path: { wake_id: string }; query: Record<never, never>; body: WakeChange; answer: WakeShape };
  "DELETE /wakes/{wake_id}": { path: { wake_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /wakes/{wake_id}/preview": { path: { wake_id: string }; query: { when?: string | null; interval_seconds?: number | null; cron?: string | null; timezone?: string | null }; body?: undefined; answer: PreviewShape };
  "POST /wakes/{wake_id}/run-now": { path: { wake_id: string }; query: Record<never, never>; body?: undefined; answer: RunShape };
  "POST /wakes/{wake_id}/skip": { path: { wake_id: string }; query: Record<never, never>; body?: undefined; answer: WakeShape };
  "GET /wakes/{wake_id}/why": { path: { wake_id: string }; query: Record<never, never>; body?: undefined; answer: Why };
  "GET /webhooks": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: WebhookList };
  "POST /webhooks": { path: Record<never, never>; query: Record<never, never>; body: NewWebhook; answer: RevealedWebhookShape };
  "GET /webhooks/{webhook_id}": { path: { webhook_id: string }; query: Record<never, never>; body?: undefined; answer: WebhookShape };
  "PATCH /webhooks/{webhook_id}": { path: { webhook_id: string }; query: Record<never, never>; body: WebhookChange; answer: WebhookShape };
  "DELETE /webhooks/{webhook_id}": { path: { webhook_id: string }; query: Record<never, never>; body?: undefined; answer: Done };
  "GET /webhooks/{webhook_id}/deliveries": { path: { webhook_id: string }; query: { page?: string | null; limit?: number }; body?: undefined; answer: WebhookDeliveryList };
  "POST /webhooks/{webhook_id}/deliveries/{webhook_delivery_id}/replay": { path: { webhook_id: string; webhook_delivery_id: string }; query: Record<never, never>; body?: undefined; answer: WebhookDeliveryShape };
  "POST /webhooks/{webhook_id}/rotate": { path: { webhook_id: string }; query: Record<never, never>; body?: undefined; answer: RevealedWebhookShape };
  "POST /webhooks/{webhook_id}/test": { path: { webhook_id: string }; query: Record<never, never>; body?: undefined; answer: WebhookDeliveryShape };
  "POST /ws-ticket": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Ticket };
  "GET /ws/schema": { path: Record<never, never>; query: Record<never, never>; body?: undefined; answer: Record<string, unknown> };
}
