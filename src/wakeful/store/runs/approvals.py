"""Calls that people are asked about, in the store."""

from wakeful.domain.news import ApprovalChanged
from wakeful.domain.runs.approvals import Approval
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import APPROVALS


class ApprovalRows:
    """Statements about approvals, in one transaction. A caller that changes one has locked its run first."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, approval: Approval) -> None:
        await self._statements.fetch("save_approval", APPROVALS.write(approval))
        self._statements.news.append(ApprovalChanged(approval.run_id))

    async def of_run(self, run_id: str) -> list[Approval]:
        return APPROVALS.read_all(await self._statements.fetch("approvals_of_run", {"run_id": run_id}))
