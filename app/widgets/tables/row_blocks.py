"""Owns the texts and colours of the lines around those in view, fetched a block at a time, so that a paint only looks them up."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

BLOCK = 32
"""Lines that are fetched together, about as many as are in view."""
KEPT = 24
"""Blocks in memory."""


@dataclass(frozen=True)
class Block:
    """`texts[column][line]`, and colour tokens likewise (empty for the usual colour)."""

    texts: list[list[str]]
    tokens: list[list[str]]


class RowBlocks:
    """Makes a block when one of its lines is first asked for and forgets those that were not looked at for long."""

    def __init__(self, make: Callable[[range], Block]) -> None:
        self._make = make
        self._blocks: OrderedDict[int, Block] = OrderedDict()

    def clear(self) -> None:
        """The lines hold something else now."""
        self._blocks.clear()

    def at(self, line: int) -> tuple[Block, int]:
        """The block of a line, and the line's place in it."""
        number, place = divmod(line, BLOCK)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._make(range(number * BLOCK, (number + 1) * BLOCK))
            if len(self._blocks) > KEPT:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(number)
        return block, place
