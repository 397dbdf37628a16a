"""The engine: scheduler, runner, agent loop and models."""
