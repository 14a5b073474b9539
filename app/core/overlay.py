"""Owns a preset that lies over a draft and can be taken off again."""

from collections.abc import Mapping
from typing import Any

from app.core.draft import Draft, flat


class Overlay:
    """At most one fragment of a spec lies over the draft; what a person changed since stays changed."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._laid: dict[str, tuple[Any, bool, Any]] = {}
        """Key → value that was laid, whether there was one before, and which."""

    def lay(self, fragment: Mapping[str, Any]) -> None:
        """Lay a fragment over the draft, in the place of the one before."""
        self.take_off()
        for key, value in flat(dict(fragment)):
            self._laid[key] = (value, self._draft.has(key), self._draft.get(key))
            self._draft.set(key, value)

    def take_off(self) -> None:
        """Give back what was there before."""
        for key, (laid, had, before) in self._laid.items():
            if self._draft.get(key) != laid:
                continue
            if had:
                self._draft.set(key, before)
            else:
                self._draft.unset(key)
        self.forget()

    def forget(self) -> None:
        """What lies there belongs to the draft from now on."""
        self._laid = {}
