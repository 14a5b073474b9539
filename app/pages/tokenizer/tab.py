"""Owns what every side of the Tokenizer page offers to the page."""

from typing import Protocol

from PySide6.QtCore import SignalInstance


class Side(Protocol):
    """A widget that shows one thing about the chosen tokenizer. A side may also have the signal `settings_chosen`:
    spec keys and values for the run that is being set up; or `tokenizer_made`: a folder
    that the page opens, together with `made_changed`: other ones are remembered."""

    message: SignalInstance
    """Kind and text of a toast."""

    tokenizer: str
    """The one that is shown; empty before `use`."""

    def use(self, tokenizer: str) -> None:
        """Another tokenizer was chosen: a folder, file or hub id."""
        ...

    def shown(self) -> None:
        """The side came into view, for the first time or again."""
        ...
