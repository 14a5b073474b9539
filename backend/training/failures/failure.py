"""Owns what a recogniser is: it knows one kind of failure by the exception that a library raises, and what helps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from backend.contract.run.fixes import Mend
from backend.training.failure_context import Situation


@dataclass(frozen=True)
class Failure:
    """What a person is told of a failure: a sentence, the way out in words, and the way out as data."""

    message: str
    hint: str = ""
    mend: Mend | None = None


class Recogniser(Protocol):
    """Each file of this folder exports one as FAILURE."""

    def __call__(self, error: BaseException, situation: Situation) -> Failure | None:
        """The failure, or None where the exception is of another kind."""
        ...


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it came from, newest first; also those that `from None` keeps out of sight."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def kinds(error: BaseException) -> set[str]:
    """The names of an exception's classes, by which a library's exception is known without importing the library."""
    return {kind.__name__ for kind in type(error).__mro__}
