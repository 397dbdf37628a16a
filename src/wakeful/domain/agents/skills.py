"""Skills: Markdown files with instructions for an agent. Listed by name, read on demand."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAX_SKILLS = 50  # of one agent
MAX_DESCRIPTION = 300  # characters shown in the list

_NAME = re.compile(r"[\w-][\w. -]{0,99}")
_FENCE = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions on how to do something, from a Markdown file."""

    name: str
    description: str
    body: str
    file: str  # its file's name


def is_name(name: str) -> bool:
    """Return whether this can be the name of a skill; a path cannot."""
    return _NAME.fullmatch(name) is not None and not name.startswith(".")


def read(file: str, text: str) -> Skill:
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


def write(name: str, description: str, body: str) -> str:
    """Return the text of a skill's file."""
    return f"{_FENCE}\nname: {name}\ndescription: {' '.join(description.split())}\n{_FENCE}\n\n{body.strip()}\n"


def chosen(skills: Sequence[Skill], names: Collection[str] | None) -> list[Skill]:
    """Return the skills of a session: all, or the ones its configuration names."""
    if names is None:
        return list(skills)
    return [each for each in skills if not {each.name, each.file, each.file.removesuffix(".md")}.isdisjoint(names)]


def missing(skills: Sequence[Skill], names: Collection[str] | None) -> list[str]:
    """Return the names for which there is no skill."""
    return [name for name in names or () if not chosen(skills, [name])]


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
