"""Names of spans and attributes: OpenTelemetry's conventions for generative AI, which still change, and our own.

Every name stands here alone. Checked against version 1.37 of the conventions.
"""

from collections.abc import Mapping

from wakeful.domain.types import ClaimedRun

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"

Attributes = Mapping[str, "str | int | float | bool | list[str]"]

OPERATION = "gen_ai.operation.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

# With content only.
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# Ours.
RUN_ID = "wakeful.run.id"
WAKE_ID = "wakeful.wake.id"
TRIGGER = "wakeful.run.trigger"
ATTEMPT = "wakeful.run.attempt"
STATUS = "wakeful.run.status"
REASON = "wakeful.run.reason"
COST = "wakeful.cost_dollars"
LINK = "wakeful.link"  # of a link: what the linked span is to this one

UNKNOWN_TOOL = "unknown"  # a model can make up names
_MAX_NAME = 100

# Providers whose name in the conventions is not ours.
_PROVIDERS = {
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "openai-chat": "openai",
}


def agent_span(name: str) -> str:
    return f"invoke_agent {name[:_MAX_NAME]}".rstrip()


def chat_span(model: str) -> str:
    return f"chat {model[:_MAX_NAME]}"


def tool_span(name: str) -> str:
    return f"execute_tool {name[:_MAX_NAME]}"


def of_attempt(run: ClaimedRun) -> Attributes:
    """Return the attributes of an attempt at a run that are known when it starts."""
    found: dict[str, str | int | float | bool | list[str]] = {
        OPERATION: "invoke_agent",
        AGENT_ID: run.agent_id,
        CONVERSATION: run.session_id,
        RUN_ID: run.id,
        TRIGGER: run.trigger,
        ATTEMPT: run.attempt,
    }
    return found if run.wake_id is None else {**found, WAKE_ID: run.wake_id}


def of_chat(provider_string: str) -> Attributes:
    """Return the attributes of a request to a model, from PROVIDER:MODEL."""
    provider, _, model = provider_string.partition(":")
    # A name without a provider, as `demo`, is both.
    return {OPERATION: "chat", PROVIDER: _PROVIDERS.get(provider, provider), REQUEST_MODEL: model or provider}


def of_tool(name: str, call_id: str) -> Attributes:
    return {OPERATION: "execute_tool", TOOL_NAME: name[:_MAX_NAME], TOOL_TYPE: "function", TOOL_CALL_ID: call_id}
