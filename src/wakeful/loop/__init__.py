"""The agent loop: the prompt, the context, model calls, tool calls, planning, subagents."""
