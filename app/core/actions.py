"""Owns what a person can have done by its name: one list that shortcuts, palette and shortcut sheet are made from.

A page offers its own by one method, `actions() -> Sequence[Action]`. It is asked once after the page is built, for the
shortcuts, and again whenever the palette opens: what comes and goes may be in the list, but not with a shortcut.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from app.core.run_library import RunSummary

WINDOW, PAGE, RUN = "Window", "Page", "Run"
"""Kinds of the window's own actions; a page's bear its title."""
MOST_RUNS = 2000
"""The newest runs that the palette knows by name."""


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Action:
    """Something to be done: `title` begins with a verb, unless it is the name of a thing to be shown."""

    title: str
    do: Callable[[], object]
    shortcut: str = ""
    """As Qt writes it on every system: "Ctrl+Z", "F1", "?"; several are parted by "; "."""
    icon: str = ""
    possible: Callable[[], bool] = _always
    """Whether it can be done now; asked when the palette opens and before a shortcut does it."""
    kind: str = ""
    """What it belongs to, in a word or two; empty: the page that offers it."""
    words: str = ""
    """Other words that find it."""

    def shortcuts(self) -> list[str]:
        """Each way to press it."""
        return [keys for keys in self.shortcut.split("; ") if keys]


@runtime_checkable
class OffersActions(Protocol):
    """A page with actions of its own. Its shortcuts are heard while it is in view."""

    def actions(self) -> Sequence[Action]:
        """What can be done on this page."""
        ...


def page_actions(pages: Iterable[tuple[str, str, str]], show: Callable[[str], object]) -> list[Action]:
    """One action a page; `pages` are (title, icon, name), in the order of their shortcuts."""
    return [
        Action(f"Show {title}", lambda name=name: show(name), f"Ctrl+{number}", icon, kind=PAGE)
        for number, (title, icon, name) in enumerate(pages, start=1)
    ]


def run_actions(runs: Iterable[RunSummary], show: Callable[[str], object]) -> list[Action]:
    """One action a run, the newest first."""
    newest = sorted(runs, key=lambda run: run.started or 0.0, reverse=True)[:MOST_RUNS]
    return [
        Action(run.title, lambda path=str(run.path): show(path), icon="chart", kind=RUN, words=run.path.name)
        for run in newest
    ]
