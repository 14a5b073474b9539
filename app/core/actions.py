"""Actions by name: one list from which shortcuts, the command palette and the shortcut sheet are made.

A page offers its own through `offered_actions() -> Sequence[Action]`. It is called once after the page is built, for
shortcuts, and again whenever the palette opens: temporary actions may be in the list, but without a shortcut. Until the page
is built, those declared in `page_actions.py` stand for them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from app.core.i18n import tr


def _no_obstacle() -> str:
    return ""


def _do_nothing() -> None:
    """Of an action that a page has not bound yet."""


@dataclass(frozen=True)
class Action:
    """Something that the user can do: `title` starts with a verb, unless it names a thing to show."""

    title: str
    do: Callable[[], object] = _do_nothing
    shortcut: str = ""
    """As Qt writes it on every system: "Ctrl+Z", "F1", "?"; several are parted by "; "."""
    icon: str = ""
    obstacle: Callable[[], str] = _no_obstacle
    """Why it cannot be done now, empty if it can; asked when the palette opens and before a shortcut does it."""
    kind: str = ""
    """What it belongs to, in a word or two; empty: the page that offers it."""
    words: str = ""
    """Other words that find it."""

    def bind(self, do: Callable[[], object], obstacle: Callable[[], str] = _no_obstacle) -> "Action":
        """The same action of a page that can do it."""
        return replace(self, do=do, obstacle=obstacle)

    def is_possible(self) -> bool:
        """Whether it can be done now."""
        return not self.obstacle()

    def shortcuts(self) -> list[str]:
        """All of its shortcuts."""
        return [keys for keys in self.shortcut.split("; ") if keys]


@runtime_checkable
class OffersActions(Protocol):
    """A page with its own actions. Its shortcuts work while it is visible."""

    def offered_actions(self) -> Sequence[Action]:
        """The actions available on this page."""
        ...


def page_actions(pages: Iterable[tuple[str, str, str]], show: Callable[[str], object]) -> list[Action]:
    """One action per page; `pages` are (title, icon, name), in shortcut order."""
    return [
        Action(tr("Show {title}", title=title), lambda name=name: show(name), f"Ctrl+{number}", icon, kind=tr("Page"))
        for number, (title, icon, name) in enumerate(pages, start=1)
    ]
