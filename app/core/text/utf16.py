"""Owns the way between places in a text as Python counts them (characters) and as Qt does (UTF-16 units)."""

import numpy as np


class Places:
    """Both counts of one text; a place within a surrogate pair is that of its character."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        # Places after which the two counts differ by one more.
        self._wide = np.flatnonzero(codes > 0xFFFF)
        self._wide_units = self._wide + np.arange(len(self._wide))

    def units(self, characters: int) -> int:
        """The place in UTF-16 units."""
        return characters + int(np.searchsorted(self._wide, characters, side="left"))

    def characters(self, units: int) -> int:
        """The place in characters."""
        return min(self.length, units - int(np.searchsorted(self._wide_units, units, side="left")))
