"""Builds the agent loop of a node, and the other users of models."""

from dataclasses import dataclass

from wakeful.app.build.base import Base
from wakeful.runtime.loop.loop import AgentLoop
from wakeful.runtime.loop.run_state import SubagentLimits
from wakeful.runtime.models.check import ModelTests
from wakeful.runtime.models.client import ModelRequests
from wakeful.runtime.models.providers import Models
from wakeful.server.services import Services
from wakeful.service.agents.database_prompt import DatabasePrompt
from wakeful.service.hooks.payloads import HookPayloads
from wakeful.service.models.catalog import ModelCatalog
from wakeful.service.models.models import ModelService
from wakeful.service.sessions.briefing import Briefings
from wakeful.service.tracing.tracing import Tracing
from wakeful.tools.registry import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """The models of a node: for runs, for owners, and their tests."""

    models: Models
    service: ModelService
    tests: ModelTests

    async def aclose(self) -> None:
        await self.service.catalog.aclose()
        await self.tests.aclose()
        await self.models.aclose()


def build_models(base: Base) -> ModelParts:
    settings = base.settings
    setting = settings.model if "model" in settings.model_fields_set else None
    catalog = ModelCatalog(base.store, base.device_key, settings.models, setting)
    models = Models(
        settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_api_key is None else settings.model_api_key.get_secret_value(),
        clock=base.clock,
        window=settings.context_window,
        catalog=catalog,
    )
    tests = ModelTests(models)
    client = ModelRequests(models, tests, settings.local_model_ports)
    service = ModelService(base.store, base.clock, base.device_key, catalog, client)
    return ModelParts(models=models, service=service, tests=tests)


def build_briefings(base: Base, services: Services) -> Briefings:
    data = DatabasePrompt(services.data.files, base.clock)
    return Briefings(base.store, base.clock, data.show_views, data.describe)


def build_loop(
    base: Base, services: Services, briefings: Briefings, models: Models, tools: Tools, tracing: Tracing
) -> AgentLoop:
    return AgentLoop(
        briefings,
        models,
        tools,
        base.clock,
        base.workspace_of,
        services.approvals,
        services.instructions,
        services.data.files,
        services.notices,
        services.metrics,
        HookPayloads(base.store, services.data.files, base.workspace_of),
        subagents=SubagentLimits(depth=base.settings.subagent_depth, per_run=base.settings.subagents_per_run),
        small_window=base.settings.small_window,
        asks_for_promises=base.settings.promise_reminders,
        tracing=tracing,
    )
