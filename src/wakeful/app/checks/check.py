"""The result of a check."""

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "warning", "wrong", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the doctor: what was found, and what to do if that is wrong."""

    name: str
    status: CheckStatus = "ok"
    found: str
    advice: str | None = None


def wrong(name: str, found: str, advice: str) -> Check:
    return Check(name=name, status="wrong", found=found, advice=advice)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name=name, status="warning", found=found, advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, status="skipped", found=found)
