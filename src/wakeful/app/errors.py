"""The base class of errors that commands show. Commands may import it from here, but not from `domain`."""

from wakeful.domain.errors import WakefulError as StartError

__all__ = ["StartError"]
