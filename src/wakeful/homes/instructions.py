"""Files that instruct an agent: AGENTS.md in its workspace, and its skills."""

import re
from dataclasses import dataclass
from hashlib import sha256

from wakeful.core.errors import Conflict, Forbidden, Invalid, NotFound
from wakeful.core.records import Skill
from wakeful.core.texts import to_storable

# Files that instruct an agent: AGENTS.md in its workspace, and its skills. They steer every later run.


AGENTS_FILE = "AGENTS.md"
SKILLS_FOLDER = "skills"
MAX_INSTRUCTION_FILE = 64_000  # bytes of one file that are read; the rest is never used
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
            f"{path!r} must have at most {MAX_INSTRUCTION_FILE:,} bytes, got {size:,}. Nothing was saved.", field="text"
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
        return to_storable(self.data.decode(errors="replace"))


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


# Skills: Markdown files with instructions for an agent. Listed by name, read on demand.


MAX_SKILLS = 50  # of one agent
MAX_DESCRIPTION = 300  # characters shown in the list

_NAME = re.compile(r"[\w-][\w. -]{0,99}")
_FENCE = "---"


def is_name(name: str) -> bool:
    """Return whether this can be the name of a skill; a path cannot."""
    return _NAME.fullmatch(name) is not None and not name.startswith(".")


def read_skill(file: str, text: str) -> Skill:
    """Parse a file: optional front matter with name and description, and the body."""
    stem = file.removesuffix(".md")
    fields, body = _front_matter(text)
    name = fields.get("name", "")
    lines = (line.strip("# \t") for line in body.splitlines())
    description = fields.get("description") or next((line for line in lines if line), "")
    return Skill(
        name=name if is_name(name) else stem,
        description=" ".join(description.split())[:MAX_DESCRIPTION],
        body=body.strip(),
        file=file,
    )


def write_skill(name: str, description: str, body: str) -> str:
    """Return the text of a skill's file."""
    return f"{_FENCE}\nname: {name}\ndescription: {' '.join(description.split())}\n{_FENCE}\n\n{body.strip()}\n"


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    lines = text.lstrip("\N{BYTE ORDER MARK}").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return {}, text
    ends = [number for number, line in enumerate(lines) if number and line.strip() == _FENCE]
    if not ends:
        return {}, text
    fields: dict[str, str] = {}
    for line in lines[1 : ends[0]]:
        key, colon, value = line.partition(":")
        if colon and not line.startswith((" ", "\t", "#")):
            fields[key.strip().lower()] = _unquoted(value.strip())
    return fields, "\n".join(lines[ends[0] + 1 :])


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
