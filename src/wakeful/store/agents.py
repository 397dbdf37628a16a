"""Users, agents and pauses in the store."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson

from wakeful.core.errors import NotFound
from wakeful.core.events import AgentChanged, RunQueued
from wakeful.core.types import Agent, Pause, User
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import AGENTS, PAUSES, USERS, to_micros


class NoSuchAgent(NotFound):
    code = "no_such_agent"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"There is no agent {agent_id!r}. `wakeful agent ls` and GET /agents list yours.")


class AgentRows:
    """Statements about users, agents and pauses, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_user(self, user: User) -> None:
        await self._statements.fetch("add_user", USERS.write(user))

    async def user(self, user_id: str) -> User | None:
        return USERS.read_first(await self._statements.fetch("user_by_id", {"id": user_id}))

    async def delete_user(self, user_id: str, now: datetime) -> bool:
        return bool(await self._statements.fetch("delete_user", {"id": user_id, "now": to_micros(now)}))

    async def add(self, agent: Agent) -> None:
        await self._statements.fetch("add_agent", AGENTS.write(agent))
        self._announce(agent)

    async def add_first(self, agent: Agent) -> bool:
        """Add an agent for a user who has never had one. False if there is one."""
        is_added = bool(await self._statements.fetch_many("add_first_agent", [AGENTS.write(agent)]))
        if is_added:
            self._announce(agent)
        return is_added

    async def delete(self, agent_id: str, now: datetime) -> None:
        for row in await self._statements.fetch("delete_agent", {"id": agent_id, "now": to_micros(now)}):
            self._statements.news.append(AgentChanged(agent_id, row["user_id"]))

    async def ended(self) -> list[str]:
        """Return the ids of those that were deleted."""
        return [str(row["id"]) for row in await self._statements.fetch("ended_agents", {})]

    async def save_changelog_head(self, agent_id: str, entry: int, digest: str) -> None:
        await self._statements.fetch("save_changelog_head", {"agent_id": agent_id, "entry": entry, "hash": digest})

    async def changelog_head(self, agent_id: str) -> tuple[int, str] | None:
        """Return the last entry of an agent's changelog that is known of, and its hash."""
        rows = await self._statements.fetch("changelog_head", {"agent_id": agent_id})
        return (rows[0]["entry"], rows[0]["hash"]) if rows else None

    async def forget_changelog_head(self, agent_id: str) -> None:
        await self._statements.fetch("forget_changelog_head", {"agent_id": agent_id})

    async def of_anyone(self, agent_id: str) -> Agent:
        """Return an agent, for the host's own work."""
        return _one(await self._statements.fetch("agent_by_id", {"id": agent_id}), agent_id)

    async def get(self, agent_id: str, user_id: str) -> Agent:
        return _one(await self._statements.fetch("agent_of_user", {"id": agent_id, "user_id": user_id}), agent_id)

    async def lock(self, agent_id: str, user_id: str) -> Agent:
        """Read an agent in order to change it."""
        return _one(await self._statements.fetch("lock_agent_of_user", {"id": agent_id, "user_id": user_id}), agent_id)

    async def of_user(self, user_id: str) -> list[Agent]:
        return AGENTS.read_all(await self._statements.fetch("agents_of_user", {"user_id": user_id}))

    async def save(self, agent: Agent) -> None:
        if not await self._statements.fetch("save_agent", AGENTS.write(agent)):
            raise NoSuchAgent(agent.id)
        self._announce(agent)

    async def add_pause(self, pause: Pause) -> None:
        await self._statements.fetch("add_pause", PAUSES.write(pause))
        await self._announce_pause(pause.user_id, pause.agent_id)

    async def end_pauses(self, user_id: str, agent_id: str | None, now: datetime) -> int:
        """Lift an agent's own pauses; without an agent, those of everything."""
        params = {"user_id": user_id, "agent_id": agent_id, "now": to_micros(now)}
        ended = await self._statements.fetch("end_pauses", params)
        if ended:
            self._statements.news.append(RunQueued())  # what had queued before the pause is free to start
            await self._announce_pause(user_id, agent_id)
        return len(ended)

    async def pauses_made_after(self, at: datetime) -> list[Pause]:
        """Return the pauses that begin after an instant: a wrong clock made them."""
        return PAUSES.read_all(await self._statements.fetch("pauses_made_after", {"at": to_micros(at)}))

    async def move_pause(self, pause: Pause) -> None:
        await self._statements.fetch("move_pause", PAUSES.write(pause))
        await self._announce_pause(pause.user_id, pause.agent_id)

    async def pauses_since(self, since: datetime) -> list[Pause]:
        return PAUSES.read_all(await self._statements.fetch("pauses_since", {"since": to_micros(since)}))

    async def all_pauses_of(self, user_id: str, since: datetime) -> list[Pause]:
        """Return the pauses of all agents of a user, and those of everything."""
        params = {"user_id": user_id, "since": to_micros(since)}
        return PAUSES.read_all(await self._statements.fetch("pauses_of_user", params))

    async def pauses_of(self, user_id: str, agent_id: str | None, since: datetime) -> list[Pause]:
        """Return the pauses of an agent and those of everything; without an agent, only the latter."""
        params = {"user_id": user_id, "agent_id": agent_id, "since": to_micros(since)}
        return PAUSES.read_all(await self._statements.fetch("pauses_of_agent", params))

    def _announce(self, agent: Agent) -> None:
        self._statements.news.append(AgentChanged(agent.id, agent.user_id))

    async def _announce_pause(self, user_id: str, agent_id: str | None) -> None:
        if agent_id is not None:
            self._statements.news.append(AgentChanged(agent_id, user_id))
        else:
            await announce_agents_of(self._statements, user_id)


async def announce_agents_of(statements: Statements, user_id: str) -> None:
    """Leave the news that something changed which concerns every agent of a user."""
    rows = await statements.fetch("agent_ids_of_user", {"user_id": user_id})
    statements.news.extend(AgentChanged(row["id"], user_id) for row in rows)


def _one(rows: Sequence[Row], agent_id: str) -> Agent:
    if not rows:
        raise NoSuchAgent(agent_id)
    return AGENTS.read(rows[0])


# In the store: which contents of the files that instruct an agent were accepted by a person.


class InstructionFileRows:
    """Statements about accepted contents, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def accept(self, agent_id: str, path: str, digest: str, now: datetime) -> None:
        params = {"agent_id": agent_id, "path": path, "digest": digest, "now": to_micros(now)}
        await self._statements.fetch("accept_file", params)

    async def accepted(self, agent_id: str) -> set[tuple[str, str]]:
        """Return path and digest of every accepted content of an agent's files."""
        rows = await self._statements.fetch("accepted_files", {"agent_id": agent_id})
        return {(row["path"], row["digest"]) for row in rows}

    async def agents_to_compare(self) -> list[str]:
        """Return the agents of an earlier version whose present files count as accepted."""
        return [row["id"] for row in await self._statements.fetch("agents_without_compared_files", {})]

    async def mark_compared(self, agent_id: str) -> None:
        await self._statements.fetch("mark_files_compared", {"agent_id": agent_id})


# MCP servers in the store: those whose programs run unconfined, and the tools that each had at its last start.


_ALL = "*"  # set by the migration: the names that the settings file has at the next start


class UnconfinedMcpServers:
    """Statements about programs from before they could be confined, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def names(self) -> frozenset[str]:
        rows = await self._statements.fetch("unconfined_mcp_servers", {})
        return frozenset(row["name"] for row in rows) - {_ALL}

    async def claim_upgrade(self) -> bool:
        """Check whether this is the first start after the upgrade; true on one node only."""
        return bool(await self._statements.fetch("drop_unconfined_mcp_server", {"name": _ALL}))

    async def add(self, name: str) -> None:
        await self._statements.fetch("add_unconfined_mcp_server", {"name": name})

    async def drop(self, name: str) -> None:
        await self._statements.fetch("drop_unconfined_mcp_server", {"name": name})


class McpTools:
    """Statements about the tools of MCP servers, and stored names of tools, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def of(self, server: str) -> dict[str, str] | None:
        """Return the fingerprints of the tools that a server had at its last start; None: it was never started."""
        rows = await self._statements.fetch("tools_of_mcp_server", {"server": server})
        return orjson.loads(rows[0]["tools"]) if rows else None

    async def save(self, server: str, tools: Mapping[str, str]) -> None:
        await self._statements.fetch("save_mcp_tools", {"server": server, "tools": orjson.dumps(tools).decode()})

    async def claim_upgrade(self) -> bool:
        """Check whether this is the first start after the upgrade; true on one node only."""
        return bool(await self._statements.fetch("drop_mcp_tools", {"server": _ALL}))

    async def agents_with_servers(self) -> list[str]:
        return [row["id"] for row in await self._statements.fetch("agents_with_mcp_servers", {})]

    async def drop_name(self, agent_id: str, tool: str) -> set[str]:
        """Drop a tool's name from limits of an agent's wakes, sessions and hooks, and from what people have allowed it.

        Returns the places where it was.
        """
        quoted = {"agent_id": agent_id, "quoted": f'"{tool}"'}
        named = {"agent_id": agent_id, "tool": tool}
        places: set[str] = set()
        for name, params in (
            ("drop_tool_of_wakes", quoted),
            ("drop_tool_of_sessions", quoted),
            ("drop_tool_of_hooks", quoted),
            ("drop_tool_of_allowances", named),
            ("drop_tool_of_approvals", named),
        ):
            places |= {row["place"] for row in await self._statements.fetch(name, params)}
        for row in await self._statements.fetch("session_configs_with", quoted):
            config = orjson.loads(row["session_config"])
            if tool in config.get("tool_ids", ()):
                config["tool_ids"].remove(tool)
                saved = {"id": row["id"], "session_config": orjson.dumps(config).decode()}
                await self._statements.fetch("save_session_config", saved)
                places.add("scheduled sessions")
        return places
