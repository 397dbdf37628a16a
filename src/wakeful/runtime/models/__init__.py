"""The models an agent can think with: our own chat wire, pydantic-ai's providers, the demo model and a scripted one."""
