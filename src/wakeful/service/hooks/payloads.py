"""Reads the deliveries that a run of a hook is about, and writes long ones to files in the agent's workspace."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from wakeful.domain.errors import WakefulError
from wakeful.domain.hooks import payload as rules
from wakeful.domain.hooks.payload import HookData, Payload
from wakeful.domain.types import ClaimedRun
from wakeful.service.agents.database_files import AgentFiles
from wakeful.service.agents.workspace import Workspace, WorkspaceLimits
from wakeful.store.store import Store

# As for the tools that write files. A body is shorter than any of them.
_LIMITS = WorkspaceLimits(bytes=1_000_000_000, file_bytes=10_000_000, files=10_000)


class HookPayloads:
    def __init__(self, store: Store, agent_files: AgentFiles, workspace_of: Callable[[str], Path]) -> None:
        self._store = store
        self._agent_files = agent_files
        self._workspace_of = workspace_of

    async def of_run(self, run: ClaimedRun) -> HookData | None:
        """Return the deliveries of a run, and write the long ones to files; None if it has none.

        Call it after the agent's files were brought to this node. Doing it again writes the same files.
        """
        wake_id = run.wake_id
        if wake_id is None:
            return None
        found = await self._store.read(lambda tx: tx.hooks.of_wake(wake_id))
        if found is None:
            return None
        name, payloads = found
        long = rules.find_long(payloads)
        unsaved = await asyncio.to_thread(_write, Workspace(self._workspace_of(run.agent_id)), long) if long else {}
        if long:
            await self._agent_files.save_files(run.agent_id, run.id)
        return HookData(hook=name, payloads=payloads, unsaved=unsaved)


def _write(workspace: Workspace, payloads: Sequence[Payload]) -> dict[str, str]:
    """Write bodies to files in place of the oldest, and return why not, by path, where the workspace is full."""
    unsaved: dict[str, str] = {}
    try:
        there = [entry.path for entry in workspace.entries(rules.FOLDER) if entry.kind == "file"]
    except WakefulError:  # there is none yet; what else is wrong with it, the writing below reports
        there = []
    for path in rules.find_old(there, [each.path for each in payloads]):
        workspace.unlink(path)
    for each in payloads:
        try:
            workspace.write(each.path, each.body or b"", append=False, limits=_LIMITS)
        except WakefulError as error:
            unsaved[each.path] = error.message
    return unsaved
