// Written by `make docs` from src/wakeful/core and the REST API; edit there.

export const TOOLSETS = {
  "recall": {
    "label": "Recalls",
    "hint": "Schedule its own runs in the same session",
    "needs_self_scheduling": true
  },
  "scheduler": {
    "label": "Scheduler",
    "hint": "Schedule messages and sessions within a day",
    "needs_self_scheduling": true
  },
  "next_run": {
    "label": "Next run",
    "hint": "Schedule its own next run, one at a time",
    "needs_self_scheduling": true
  },
  "database": {
    "label": "Database",
    "hint": "An encrypted database of its own",
    "needs_self_scheduling": false
  },
  "notify": {
    "label": "Notify",
    "hint": "Send you notifications",
    "needs_self_scheduling": true
  },
  "files": {
    "label": "Files",
    "hint": "Read and write files in its workspace",
    "needs_self_scheduling": false
  },
  "web": {
    "label": "Web",
    "hint": "Fetch web pages",
    "needs_self_scheduling": false
  },
  "shell": {
    "label": "Shell",
    "hint": "Run commands in its workspace",
    "needs_self_scheduling": false
  },
  "subagents": {
    "label": "Subagents",
    "hint": "Give tasks to the agents listed below",
    "needs_self_scheduling": false
  }
} as const;

export const MODES = {
  "ambient": {
    "label": "Ambient",
    "hint": "A quiet companion that looks in now and then.",
    "bounds": {
      "max_horizon_seconds": 604800,
      "min_interval_seconds": 3600,
      "daily_cap": 6,
      "quiet_from": "22:00",
      "quiet_to": "07:00"
    }
  },
  "reactive": {
    "label": "Reactive",
    "hint": "Follows things closely, day and night.",
    "bounds": {
      "max_horizon_seconds": 86400,
      "min_interval_seconds": 300,
      "daily_cap": 48,
      "quiet_from": null,
      "quiet_to": null
    }
  },
  "project": {
    "label": "Project",
    "hint": "Works on something long, a few times a day.",
    "bounds": {
      "max_horizon_seconds": 2592000,
      "min_interval_seconds": 3600,
      "daily_cap": 4,
      "quiet_from": "22:00",
      "quiet_to": "07:00"
    }
  },
  "manual": {
    "label": "Manual",
    "hint": "Schedules nothing by itself.",
    "bounds": {
      "max_horizon_seconds": 604800,
      "min_interval_seconds": 900,
      "daily_cap": 0,
      "quiet_from": null,
      "quiet_to": null
    }
  }
} as const;

export const WAKE_KINDS = {
  "recall": "Scheduled run",
  "message": "Scheduled message",
  "session": "Scheduled session",
  "next_run": "Next run"
} as const;

export const RUN_STATUSES = {
  "queued": "waiting",
  "running": "running",
  "success": "done",
  "failed": "failed",
  "stopped": "stopped",
  "skipped": "skipped",
  "interrupted": "interrupted"
} as const;

export const RUN_NOTES = {
  "did_nothing": "did nothing",
  "empty_answer": "empty answer",
  "iteration_limit": "step limit reached",
  "budget": "budget used up",
  "repeated_calls": "stopped for repeating itself",
  "bad_calls": "too many bad tool calls",
  "too_many_calls": "too many tool calls in one reply",
  "answer_too_long": "answer too long",
  "output_limit": "answer cut off at the output limit",
  "repeated_text": "stopped for repeating its text",
  "call_as_text": "wrote a tool call as text",
  "unkept_promise": "promised later work and scheduled nothing",
  "prompt_cut": "its model read only a part of the request"
} as const;

export const SERVER_NOTES = {
  "budget": "The server asked it to finish: most of the run's budget is used up.",
  "promise": "The server asked it to schedule the work it promised, or to say that it does not do it.",
  "call_as_text": "It wrote a tool call as text, so nothing was called. Its model may not support tools: test it.",
  "unkept_promise": "It promised to do something later and scheduled nothing, so it will not wake for it.",
  "prompt_cut": "The model's server dropped a part of what it was sent, perhaps its instructions or the beginning of the conversation: its context window is smaller than the one set for the model. The inbox says what to do.",
  "model_taken_back": "The model it was booked with is no longer allowed for it, so it uses its own model."
} as const;

export const RESULT_KINDS = {
  "db_query": "rows",
  "db_run_view": "rows",
  "db_insert": "changes",
  "db_upsert": "changes",
  "db_update": "changes",
  "db_delete": "changes",
  "db_restore": "changes",
  "db_execute": "changes",
  "read_file": "file",
  "write_file": "file",
  "notify": "note",
  "schedule_recall": "booking",
  "schedule_next_run": "booking",
  "scheduler": "booking",
  "run_command": "command",
  "spawn_agent": "subagent"
} as const;

export const REASONS = {
  "quiet_hours": "quiet hours",
  "day_not_allowed": "not allowed on this day",
  "daily_cap": "daily limit reached",
  "paused": "paused",
  "deferred": "the session was busy",
  "overlap": "the previous run had not finished",
  "backoff": "waiting after failures",
  "brake": "too many runs within an hour",
  "token_brake": "too many runs of its token within an hour",
  "missed": "missed",
  "mcp_elsewhere": "no running server has its MCP servers",
  "outage": "its model did not answer",
  "out_of_resources": "the server was out of resources",
  "disk_full": "the server's disk was full",
  "min_interval": "minimum gap between runs",
  "max_horizon": "too far ahead",
  "low_priority": "low priority: your conversation went first",
  "loop_ended": "no next run scheduled",
  "past": "the time was in the past",
  "clock_change": "the clocks change then",
  "replanned": "rescheduled after the clock was wrong",
  "zone_rules_changed": "the rules of its time zone have changed",
  "cron": "the next time of its cron rule",
  "session_deleted": "the session was deleted",
  "forgotten": "nobody wrote there or edited it for a long time",
  "self_scheduling_off": "self-scheduling is off",
  "attempts_used_up": "no attempts left",
  "restored": "restored from a backup",
  "starts_used_up": "the server crashed too often before it began",
  "away_too_long": "the server was down for too long",
  "resumed": "resumed after an interruption",
  "time_limit": "time limit reached",
  "stopped": "stopped",
  "error": "an error",
  "booked": "scheduled",
  "run_now": "started by hand",
  "started": "started",
  "wake_fired": "finished",
  "wake_failed": "ended with a failure",
  "wake_cancelled": "cancelled",
  "wake_skipped": "skipped",
  "wake_superseded": "replaced by a newer one"
} as const;

export const IMAGE_TYPES = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp"
] as const;

export const MAX_IMAGES = 10 as const;

export const MAX_IMAGE_BYTES = 5242880 as const;

export const MAX_LENGTH = {
  "AgentChange": {
    "name": 200,
    "description": 100000,
    "model": 200,
    "system_prompt": 100000,
    "timezone": 100
  },
  "Answer": {
    "note": 2000
  },
  "Body_log_in_login_post": {
    "code": 200,
    "token": 1000
  },
  "ChannelChange": {
    "name": 100
  },
  "CompletionBody": {
    "model": 300
  },
  "Confirmation": {
    "confirm": 1000
  },
  "DefaultRequest": {
    "model": 300
  },
  "FileName": {
    "name": 100000,
    "path": 100000
  },
  "HookChange": {
    "name": 100,
    "instructions": 100000
  },
  "ListRequest": {
    "name": 64,
    "provider": 64,
    "address": 500
  },
  "ModelChange": {
    "address": 500,
    "provider": 64,
    "model": 200
  },
  "NewAgent": {
    "name": 200,
    "description": 100000,
    "model": 200,
    "system_prompt": 100000,
    "timezone": 100
  },
  "NewBrowser": {
    "name": 100
  },
  "NewChannel": {
    "name": 100
  },
  "NewDownloadTicket": {
    "path": 8000
  },
  "NewHook": {
    "name": 100,
    "instructions": 100000
  },
  "NewImport": {
    "table": 200,
    "text": 10485760,
    "source": 200
  },
  "NewMessage": {
    "content": 1000000
  },
  "NewMigration": {
    "purpose": 2000,
    "up_sql": 100000,
    "down_sql": 100000
  },
  "NewModel": {
    "address": 500,
    "provider": 64,
    "model": 200,
    "name": 64
  },
  "NewNextRun": {
    "scheduled_at": 200,
    "when": 200,
    "timezone": 200,
    "instructions": 100000
  },
  "NewParameter": {
    "description": 500
  },
  "NewPause": {
    "reason": 1000
  },
  "NewRecall": {
    "when": 200,
    "timezone": 200,
    "timezone_offset": 200,
    "cron": 200,
    "until": 200,
    "internal_comment": 100000,
    "additional_context_message": 100000
  },
  "NewSchedule": {
    "message": 100000,
    "at": 200,
    "when": 200,
    "timezone": 200,
    "label": 100000
  },
  "NewSession": {
    "title": 200
  },
  "NewTable": {
    "purpose": 2000
  },
  "NewText": {
    "text": 64000
  },
  "NewTokenShape": {
    "name": 200
  },
  "NewUser": {
    "name": 200
  },
  "NewView": {
    "sql": 100000,
    "description": 2000
  },
  "NewWebhook": {
    "name": 100
  },
  "Proof": {
    "proof": 1000
  },
  "RecallChange": {
    "when": 200,
    "timezone": 200,
    "cron": 200,
    "until": 200,
    "internal_comment": 100000,
    "additional_context_message": 100000
  },
  "Retry": {
    "content": 1000000
  },
  "SessionChange": {
    "title": 200
  },
  "StatementBody": {
    "sql": 100000
  },
  "TableToRecover": {
    "table": 200,
    "new_name": 200
  },
  "TestRequest": {
    "model": 300
  },
  "UserChange": {
    "name": 200,
    "timezone": 100
  },
  "WakeChange": {
    "when": 200,
    "timezone": 200,
    "cron": 200,
    "until": 200,
    "instructions": 100000,
    "comment": 100000,
    "ping_url": 2000
  },
  "WebhookChange": {
    "name": 100
  },
  "WritingStatement": {
    "sql": 100000
  }
} as const;
