"""Chat completions: agents for programs that speak OpenAI's protocol."""
