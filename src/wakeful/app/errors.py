"""The error that a command shows to a person. Commands import no other room than this one."""

from wakeful.domain.errors import WakefulError as StartError

__all__ = ["StartError"]
