"""Chat completions: agents as models of OpenAI's protocol."""
