"""Files that instruct an agent: AGENTS.md in its workspace, and its skills. They steer every later run."""

from dataclasses import dataclass
from hashlib import sha256

from wakeful.domain.agents.skills import is_name
from wakeful.domain.errors import Conflict, Forbidden, Invalid, NotFound

AGENTS_FILE = "AGENTS.md"
SKILLS_FOLDER = "skills"
MAX_FILE = 64_000  # bytes of one file that are read; the rest is never used
MAX_AGENTS_FILE = 16_000  # bytes of AGENTS.md that go into a prompt


class NotAnInstructionFile(NotFound):
    code = "not_an_instruction_file"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path[:200]!r} is not a file that instructs an agent. Those are {AGENTS_FILE!r} and "
            f"'{SKILLS_FOLDER}/NAME.md'."
        )


class FileChangedSince(Conflict):
    code = "file_changed_since"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} has changed or was deleted since you read it. Nothing was accepted. Read it again.")


class InstructionsTooLong(Invalid):
    code = "instructions_too_long"

    def __init__(self, path: str, size: int) -> None:
        super().__init__(
            f"{path!r} must have at most {MAX_FILE:,} bytes, got {size:,}. Nothing was saved.", field="text"
        )


class KeptByOwner(Forbidden):
    code = "kept_by_owner"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path[:200]!r} instructs every run and belongs to your owner, so you can read it but not write it. "
            "Write another file, or ask your user to change it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFile:
    """A file that instructs an agent, as it is on disk now."""

    path: str  # AGENTS.md, or skills/NAME.md
    data: bytes
    size: int  # of the whole file
    is_accepted: bool = False

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def check_path(path: str) -> str:
    """Return the path of an instruction file, or refuse any other."""
    folder, _, name = path.rpartition("/")
    is_skill = folder == SKILLS_FOLDER and name.endswith(".md") and is_name(name)
    if path != AGENTS_FILE and not is_skill:
        raise NotAnInstructionFile(path)
    return path


def is_agents_file(parts: tuple[str, ...]) -> bool:
    """Return whether a path in a workspace is AGENTS.md, also where the file system ignores case."""
    return len(parts) == 1 and parts[0].casefold() == AGENTS_FILE.casefold()
