"""Agents for programs that speak OpenAI's protocol."""
