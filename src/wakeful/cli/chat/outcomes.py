"""Exit codes of commands that wait for a run. docs/cli.md lists them."""

FAILED, STOPPED, TIMED_OUT, INTERRUPTED, NEEDS_APPROVAL = 1, 4, 5, 6, 7
CTRL_C = 130

BY_STATUS = {"success": 0, "failed": FAILED, "stopped": STOPPED, "interrupted": INTERRUPTED, "skipped": FAILED}
BY_FRAME = {"stream_end": 0, "stream_stopped": STOPPED, "error": FAILED}
