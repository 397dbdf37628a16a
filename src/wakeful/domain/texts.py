"""Texts that people and models hand in: what can be kept and shown."""

from typing import NoReturn

from wakeful.domain.errors import Invalid

_SHOWN = 80
_TITLE = 60


def check_text(
    field: str, value: object, most: int, *, is_one_line: bool = False, refuse: type[Invalid] = Invalid
) -> str:
    """Return a text that can be kept and shown, or say what is wrong with it."""
    if not isinstance(value, str) or not value.strip():
        say_no(field, value, f"a text of 1 to {most:,} characters, and not only blanks", refuse)
    return check_note(field, value, most, is_one_line=is_one_line, refuse=refuse)


def check_note(field: str, value: str, most: int, *, is_one_line: bool = False, refuse: type[Invalid] = Invalid) -> str:
    """Do the same for a text that may be empty."""
    if len(value) > most:
        raise refuse(
            f"`{field}` has {len(value):,} characters; {most:,} is the most. Put the details into a file and name it.",
            field=field,
        )
    # One of the databases cannot keep NUL, and neither of them half a character.
    if "\x00" in value or any("\ud800" <= each <= "\udfff" for each in value):
        say_no(field, value, "a text without NUL or half characters, which cannot be kept", refuse)
    if is_one_line and not value.isprintable():
        say_no(field, value, "one line without control characters", refuse)
    return value


def first_words(text: str) -> str:
    """Return the beginning of a text as a title: one line, cut between words."""
    words = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return words if len(words) <= _TITLE else words[: _TITLE - 1].rsplit(" ", 1)[0] + "…"


def say_no(field: str, value: object, accepted: str, refuse: type[Invalid] = Invalid) -> NoReturn:
    """Refuse a value: which field, what it was, what would do."""
    raise refuse(f"`{field}` must be {accepted}, got {show(value)}.", field=field)


def show(value: object) -> str:
    """Write a value so that it can be recognised; what cannot be sent, such as half a character, comes out escaped."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
