"""The order of training: which features form the batch of a step, computed and never stored."""

import numpy as np

from backend.data.fingerprint import generator

_BATCHES_SORTED_TOGETHER = 50
"""Rows of so many batches are sorted by length together: little padding, and still a random order."""


class DataOrder:
    """The features of every optimizer step, a pure function of the arguments and the step number.

    Each epoch contains every feature exactly once. Only its last batch may be smaller; its rows are drawn like others.
    With `drop_last` that batch is dropped, unless it is the only one.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_size: int,
        seed: int,
        fingerprint: str,
        length_buckets: bool,
        drop_last: bool = False,
    ) -> None:
        assert len(lengths), "an order of nothing"
        assert batch_size >= 1
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._fingerprint = fingerprint
        self._length_buckets = length_buckets
        self._whole_only = drop_last and len(lengths) >= batch_size
        self._epoch = -1
        self._epoch_order = np.empty(0, dtype=np.int32)

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in one pass over the features, without an incomplete batch if it is dropped."""
        count = len(self._lengths)
        return count // self._batch_size if self._whole_only else -(-count // self._batch_size)

    def epoch(self, step: int) -> float:
        """How many epochs are done after `step` steps."""
        return step / self.steps_per_epoch

    def indices(self, step: int) -> np.ndarray:
        """The features of a step, counted from 1: (batch,) integers, shortest first if batches go by length."""
        epoch, batch = divmod(step - 1, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._epoch_order = epoch, self._order_epoch(epoch)
            self._epoch_order.setflags(write=False)  # what is handed out are views of it
        return self._epoch_order[batch * self._batch_size : (batch + 1) * self._batch_size]

    def _order_epoch(self, epoch: int) -> np.ndarray:
        """All features in the epoch's order, from which batches are cut."""
        rng = generator("order", self._fingerprint, self._seed, epoch)
        kind = np.int32 if len(self._lengths) < 2**31 else np.int64
        order = rng.permutation(np.arange(len(self._lengths), dtype=kind))
        if not self._length_buckets:
            return order
        whole = len(order) // self._batch_size * self._batch_size
        # What is left over stays the random rows that they are, at the end: no batch is odd by its lengths.
        batches = self._sort_by_length(order[:whole]).reshape(-1, self._batch_size)
        return np.concatenate([batches[rng.permutation(len(batches))].reshape(-1), order[whole:]])

    def _sort_by_length(self, order: np.ndarray) -> np.ndarray:
        together = _BATCHES_SORTED_TOGETHER * self._batch_size
        groups = len(order) // together
        grouped, rest = order[: groups * together].reshape(groups, together), order[groups * together :]
        by_length = np.argsort(self._lengths[grouped], axis=1, kind="stable")  # equal lengths keep their random order
        rest_by_length = np.argsort(self._lengths[rest], kind="stable")
        return np.concatenate([np.take_along_axis(grouped, by_length, axis=1).reshape(-1), rest[rest_by_length]])
