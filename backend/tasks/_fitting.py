"""Owns how a prompt and its answer are brought into a length: the prompt gives way on the left, the answer at its end."""

from dataclasses import dataclass

import numpy as np

from backend.contract.heads import IGNORE
from backend.tasks._chat import Tokens

LARGEST_SHARE = 0.75
"""Of the length that an answer may take from its prompt."""


@dataclass(frozen=True)
class Fitted:
    """What is left of a conversation: token ids, which of them are targets, and how many come before the answer."""

    ids: np.ndarray
    labels: np.ndarray
    prompt_length: int


def fitted(tokens: Tokens, length: int, *, answered: bool, room: int | None, on_all: bool) -> Fitted:
    """At most `length` tokens. `room` are kept free for an answer that is written; None for the one that is there.

    The prompt loses its beginning, but never more than an answer of three quarters of the length asks for; then the
    answer loses its end. Of an earlier answer that lost its beginning nothing is learnt.
    """
    count = len(tokens.ids)
    last = int(np.flatnonzero(tokens.turn == tokens.turn.max())[0]) if answered and tokens.turn.any() else count
    wanted = count - last if room is None else room
    most = length - min(wanted, int(length * LARGEST_SHARE))
    first = max(0, last - most)
    prompt_length = last - first
    stop = min(count, last + length - prompt_length)
    ids, turn = tokens.ids[first:stop], tokens.turn[first:stop].copy()
    if first and turn[0] and turn[0] == tokens.turn[first - 1]:
        turn[turn == turn[0]] = 0
    labels = ids if on_all else np.where(turn > 0, ids, IGNORE).astype(np.int32)
    return Fitted(ids, labels, prompt_length)


def least_length(counts: np.ndarray, prompts: np.ndarray, room: int) -> np.ndarray:
    """The smallest length in which `fitted` cuts nothing of `counts` tokens, of which `prompts` come before an answer
    that is given `room`. (conversations,)
    """
    # A prompt may fill the length less the room, but always a quarter of the length, rounded up.
    with_room, by_share = prompts + room, np.maximum(4 * prompts.astype(np.int64) - 3, 1)
    return np.maximum(counts, np.minimum(with_room, by_share))
