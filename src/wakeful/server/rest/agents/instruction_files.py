"""Routes for the files that instruct an agent: list, save and accept them."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from wakeful.domain.agents.instruction_files import MAX_FILE
from wakeful.server.auth import Admin, Reader
from wakeful.server.rest.shapes import PathId, RequestBody, Shape, Text
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["agents"])

FilePath = Annotated[str, Path(max_length=200, description="`AGENTS.md`, or `skills/NAME.md`.")]


class InstructionFileShape(Shape):
    """A file that instructs an agent, as it is on disk now."""

    path: str
    size: int
    digest: str  # SHA-256 of the text, which accepting it names
    # False: no person has saved or accepted this content, so prompts leave it out.
    accepted: bool = Field(validation_alias="is_accepted")
    text: str


class InstructionFileList(Shape):
    files: list[InstructionFileShape]


class NewText(RequestBody):
    text: Annotated[Text, Field(max_length=MAX_FILE)]


class Seen(RequestBody):
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@router.get("/agents/{agent_id}/instructions")
async def list_instructions(caller: Reader, services: ServicesDep, agent_id: PathId) -> InstructionFileList:
    """List the files that instruct an agent (`AGENTS.md`, its skills), and whether each is accepted."""
    found = await services.instructions.list(agent_id, caller.user.id)
    return InstructionFileList(files=[InstructionFileShape.model_validate(file) for file in found])


@router.post("/agents/{agent_id}/instructions/{path:path}/accept")
async def accept_instructions(
    caller: Admin, services: ServicesDep, agent_id: PathId, path: FilePath, asked: Seen
) -> InstructionFileShape:
    """Accept a file as it is, named by its digest, so that prompts use it."""
    return InstructionFileShape.model_validate(
        await services.instructions.accept(agent_id, caller.user.id, path, asked.digest)
    )


@router.put("/agents/{agent_id}/instructions/{path:path}")
async def save_instructions(
    caller: Admin, services: ServicesDep, agent_id: PathId, path: FilePath, asked: NewText
) -> InstructionFileShape:
    """Write a file that instructs an agent. What a person saves is accepted."""
    return InstructionFileShape.model_validate(
        await services.instructions.save(agent_id, caller.user.id, path, asked.text)
    )
