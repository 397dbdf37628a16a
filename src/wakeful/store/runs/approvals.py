"""Calls that people are asked about, in the store."""

from wakeful.domain.news import AgentChanged, ApprovalChanged
from wakeful.domain.runs.approvals import Allowance, Approval, NoSuchAllowance
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import ALLOWANCES, APPROVALS


class ApprovalRows:
    """Statements about approvals, in one transaction. A caller that changes one has locked its run first."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, approval: Approval) -> None:
        await self._statements.fetch("save_approval", APPROVALS.write(approval))
        self._statements.news.append(ApprovalChanged(approval.run_id))

    async def of_run(self, run_id: str) -> list[Approval]:
        return APPROVALS.read_all(await self._statements.fetch("approvals_of_run", {"run_id": run_id}))

    async def waiting(self, user_id: str, most: int) -> list[Approval]:
        """Return the calls that wait for a user's answer, the oldest first."""
        params = {"user_id": user_id, "most": most}
        return APPROVALS.read_all(await self._statements.fetch("approvals_waiting", params))

    async def allow(self, allowance: Allowance) -> bool:
        """Save that a tool is allowed in a session; false if it was allowed before."""
        is_new = bool(await self._statements.fetch("add_allowance", ALLOWANCES.write(allowance)))
        self._statements.news.append(AgentChanged(allowance.agent_id, allowance.user_id))
        return is_new

    async def is_allowed(self, session_id: str, agent_id: str, tool: str) -> bool:
        params = {"session_id": session_id, "agent_id": agent_id, "tool": tool}
        return bool(await self._statements.fetch("allowance_in_session", params))

    async def allowances(self, agent_id: str, user_id: str) -> list[Allowance]:
        params = {"agent_id": agent_id, "user_id": user_id}
        return ALLOWANCES.read_all(await self._statements.fetch("allowances_of_agent", params))

    async def revoke(self, allowance_id: str, agent_id: str, user_id: str) -> Allowance:
        params = {"id": allowance_id, "agent_id": agent_id, "user_id": user_id}
        rows = await self._statements.fetch("delete_allowance", params)
        if not rows:
            raise NoSuchAllowance(allowance_id)
        self._statements.news.append(AgentChanged(agent_id, user_id))
        return ALLOWANCES.read(rows[0])
