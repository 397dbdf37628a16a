"""`session_config` of a schedule: its keys, their validation, and their effect on the agent."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, cast, get_args

from wakeful.core.errors import Invalid
from wakeful.core.labels import may_be_of
from wakeful.core.records import Skill, missing
from wakeful.core.texts import check_size, check_text, quote_block, quote_line, refuse_value, show
from wakeful.core.types import Agent, ScheduledBy, ThinkingLevel
from wakeful.core.values import replace
from wakeful.timing.when import BadTime, read_instant

MAX_NAME = 200  # characters of a name
MAX_PROMPT = 32_000
MAX_SKILLS = 50
MAX_PRELOADED = 50
MAX_PRELOADED_BYTES = 64 * 1024
CACHING_PROVIDERS = ("anthropic", "bedrock")  # accept breakpoints, also through the gateway; others cache by themselves

_BREAKPOINTS = ("system", "tools", "messages")
_COMPONENTS = ("base", "tools", "schema", "skills", "preamble")
_SKILL = re.compile(r"[\w-][\w. -]{0,199}")
_MESSAGE = '{"role": "user", "content": "…"}'
_PART = 'a text, or parts such as {"type": "text", "text": "…"}'


class BadSessionConfig(Invalid):
    code = "bad_session_config"


def check_config(
    asked: object, *, models: Collection[str], tools: Collection[str], skills: Sequence[Skill] = ()
) -> dict[str, Any]:
    """Return a session's configuration in the form that is stored, or refuse it, naming the key.

    `models` are those that the owner allows, `tools` those of the run that books, `skills` those that the agent has.
    """
    given = _object("session_config", asked, "a JSON object")
    unknown = sorted(set(given) - set(_CHECKS))
    if unknown:
        raise BadSessionConfig(
            f"session_config has no key {', '.join(map(show, unknown))}. Its keys: {', '.join(_CHECKS)}.",
            field=f"session_config.{unknown[0]}",
        )
    allowed: dict[str, Collection[str]] = {
        "model": models,
        "tool_ids": sorted(tools),
        "cache_breakpoints": _BREAKPOINTS,
        "prompt_component_selection": _COMPONENTS,
    }
    checked = {
        key: _CHECKS[key](f"session_config.{key}", value, allowed.get(key, ()))
        for key, value in given.items()
        if value is not None
    }
    _check_skills(checked.get("skills", ()), skills)
    return checked


def names_skills(asked: object) -> bool:
    """Return whether a configuration names skills, so that the agent's skills have to be read."""
    return isinstance(asked, Mapping) and bool(cast("Mapping[str, object]", asked).get("skills"))


def names_tool_of(agent: Agent, asked: object) -> bool:
    """Return whether a configuration may name a tool of one of the agent's MCP servers."""
    named: object = cast("Mapping[str, object]", asked).get("tool_ids") if isinstance(asked, Mapping) else None
    names = cast("list[object]", named) if isinstance(named, list) else []
    return any(isinstance(name, str) and may_be_of(agent.mcp_servers, name) for name in names)


def summarise_config(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the compact form; a tool count of None: every tool of the agent."""
    if config is None:
        return None
    return {
        "session_name": config.get("session_name"),
        "model": config.get("model"),
        "thinking_level": config.get("thinking_level"),
        "skill_count": len(config.get("skills", ())),
        "tool_count": len(config["tool_ids"]) if "tool_ids" in config else None,
        "preloaded_message_count": len(config.get("preloaded_messages", ())),
    }


def ignored_keys(config: Mapping[str, Any] | None, model: str) -> list[str]:
    """Return the keys that have no effect with this model."""
    has_breakpoints = bool(config and config.get("cache_breakpoints"))
    return ["cache_breakpoints"] if has_breakpoints and caching_provider(model) is None else []


def caching_provider(model: str) -> str | None:
    """Return the provider of a model if it accepts cache breakpoints."""
    provider = model.partition(":")[0].removeprefix("gateway/")
    return provider if provider in CACHING_PROVIDERS else None


def apply_config(agent: Agent, config: Mapping[str, Any], booked_by: ScheduledBy) -> Agent:
    """Return the agent with the settings of this session. The owner's prompt stays and comes first.

    A model that the owner has taken back since the booking is not used, but the agent's own. Prompts that an agent
    wrote when it booked the session are quoted and attributed to it: only people and the server write plain text in a
    system prompt.
    """
    system, developer = config.get("system_prompt", ""), config.get("developer_prompt", "")
    source = quote_line(config.get("developer_prompt_source", "the schedule that began this session"))
    if booked_by == "agent":
        system = system and f"The agent that booked this session wrote for it:\n{quote_block(system)}"
        developer = (
            developer and f"Developer prompt by the agent that booked it, from {source}:\n{quote_block(developer)}"
        )
    else:
        developer = developer and f"Developer prompt, from {source}:\n{developer}"
    prompts = [agent.system_prompt.strip(), system, developer]
    return replace(
        agent,
        system_prompt="\n\n".join(prompt for prompt in prompts if prompt),
        model=config["model"] if config.get("model") in agent.allowed_models else agent.model,
        thinking_level=config.get("thinking_level", agent.thinking_level),
    )


def frame_preloaded(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the messages that an agent booked a session with as one text, quoted and attributed to it."""
    turns = (
        f"As {each['role']}{', ' + each['timestamp'] if 'timestamp' in each else ''}:\n{quote_block(each['content'])}"
        for each in messages
    )
    head = "The agent that booked this session wrote the turns below for it. They are not from your user."
    return "\n\n".join([head, *turns])


# ── One check per key ───────────────────────────────────────────────────────────────────────────────────────────────


def _name(field: str, value: object, _allowed: Collection[str]) -> str:
    return check_text(field, value, MAX_NAME, is_one_line=True, refuse=BadSessionConfig).strip()


def _prompt(field: str, value: object, _allowed: Collection[str]) -> str:
    return check_text(field, value, MAX_PROMPT, refuse=BadSessionConfig).strip()


def _model(field: str, value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        _refuse(field, value, f"the agent's own model or one that the owner allows: {', '.join(sorted(allowed))}")
    return value


def _thinking(field: str, value: object, _allowed: Collection[str]) -> str:
    levels = get_args(ThinkingLevel)
    if not isinstance(value, str) or value not in levels:
        _refuse(field, value, f"one of: {', '.join(levels)}")
    return value


def _skills(field: str, value: object, _allowed: Collection[str]) -> list[str]:
    names = _texts(field, value)
    check_size(field, len(names), MAX_SKILLS, "names", BadSessionConfig)
    for name in names:
        if not _SKILL.fullmatch(name):
            _refuse(field, name, "the name of a Markdown file in the agent's `skills/`, without a path")
    return names


def _check_skills(names: Collection[str], available: Sequence[Skill]) -> None:
    unknown = missing(available, names)
    if unknown:
        known = ", ".join(sorted(skill.name for skill in available))
        raise BadSessionConfig(
            f"`session_config.skills` names {', '.join(map(repr, unknown))}, which the agent does not have. "
            + (f"Its skills: {known}." if known else "It has no skills: there is no Markdown file in its `skills/`."),
            field="session_config.skills",
        )


def _preloaded(field: str, value: object, _allowed: Collection[str]) -> list[dict[str, str]]:
    given = _list(field, value, f"a list of messages such as {_MESSAGE}")
    check_size(field, len(given), MAX_PRELOADED, "messages", BadSessionConfig)
    messages = [_message(f"{field}.{number}", each) for number, each in enumerate(given)]
    size = sum(len(message["content"].encode()) for message in messages)
    check_size(field, size, MAX_PRELOADED_BYTES, "bytes", BadSessionConfig)
    return messages


def _message(field: str, value: object) -> dict[str, str]:
    given = _object(field, value, f"a message such as {_MESSAGE}")
    unknown = sorted(set(given) - {"role", "content", "timestamp"})
    if unknown:
        _refuse(f"{field}.{unknown[0]}", given[unknown[0]], "left out: a message has role, content and timestamp")
    role = given.get("role")
    if role not in ("user", "assistant"):
        _refuse(f"{field}.role", role, "user or assistant")
    message = {"role": str(role), "content": _content(f"{field}.content", given.get("content"))}
    if given.get("timestamp") is not None:
        timestamp = check_text(
            f"{field}.timestamp", given["timestamp"], MAX_NAME, is_one_line=True, refuse=BadSessionConfig
        )
        try:
            read_instant(timestamp, f"{field}.timestamp", "no timestamp at all")
        except BadTime:
            _refuse(f"{field}.timestamp", timestamp, "an ISO 8601 time with its offset, such as 2026-04-22T12:59:00Z")
        message["timestamp"] = timestamp
    return message


def _content(field: str, value: object) -> str:
    """Return a message's text: given as a text, or in parts as in provider APIs."""
    if isinstance(value, list):
        parts = [_object(field, part, _PART) for part in cast("list[object]", value)]
        if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in parts):
            _refuse(field, parts, _PART)
        value = "\n".join(str(part["text"]) for part in parts)
    return check_text(field, value, MAX_PRELOADED_BYTES, refuse=BadSessionConfig)


def _some_of(field: str, value: object, known: Collection[str]) -> list[str]:
    names = _texts(field, value)
    for name in names:
        if name not in known:
            _refuse(field, name, f"one of: {', '.join(known) or 'none'}")
    return names


def _texts(field: str, value: object) -> list[str]:
    names = [name for name in _list(field, value, "a list of names") if isinstance(name, str)]
    if len(names) != len(cast("list[object]", value)):
        _refuse(field, value, "a list of names")
    return list(dict.fromkeys(names))


def _list(field: str, value: object, accepted: str) -> list[object]:
    if not isinstance(value, list):
        _refuse(field, value, accepted)
    return cast("list[object]", value)


def _object(field: str, value: object, accepted: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        _refuse(field, value, accepted)
    return cast("Mapping[str, object]", value)


def _refuse(field: str, value: object, accepted: str) -> NoReturn:
    refuse_value(field, value, accepted, BadSessionConfig)


_CHECKS: Mapping[str, Callable[[str, object, Collection[str]], Any]] = {
    "session_name": _name,
    "system_prompt": _prompt,
    "model": _model,
    "thinking_level": _thinking,
    "skills": _skills,
    "tool_ids": _some_of,
    "developer_prompt": _prompt,
    "developer_prompt_source": _name,
    "preloaded_messages": _preloaded,
    "cache_breakpoints": _some_of,
    "prompt_component_selection": _some_of,
}
KEYS = tuple(_CHECKS)
