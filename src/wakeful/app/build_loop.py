"""Builds the agent loop of a node, and the other users of models."""

from wakeful.app.build_base import Base
from wakeful.runtime.loop.loop import AgentLoop
from wakeful.runtime.loop.run_state import SubagentLimits
from wakeful.runtime.models.providers import Models
from wakeful.server.services import Services
from wakeful.service.agents.database_prompt import DatabasePrompt
from wakeful.service.sessions.briefing import Briefings
from wakeful.tools.registry import Tools


def build_models(base: Base) -> Models:
    settings = base.settings
    return Models(
        settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_api_key is None else settings.model_api_key.get_secret_value(),
        clock=base.clock,
        window=settings.context_window,
    )


def build_briefings(base: Base, services: Services) -> Briefings:
    data = DatabasePrompt(services.data.files, base.clock)
    return Briefings(base.store, base.clock, data.show_views, data.describe)


def build_loop(base: Base, services: Services, briefings: Briefings, models: Models, tools: Tools) -> AgentLoop:
    return AgentLoop(
        briefings,
        models,
        tools,
        base.clock,
        base.workspace_of,
        services.approvals,
        services.instructions,
        services.directories,
        subagents=SubagentLimits(depth=base.settings.subagent_depth, per_run=base.settings.subagents_per_run),
    )
