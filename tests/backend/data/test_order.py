"""The order of training as a function: pure, complete, seeded, resumable at any step."""

from itertools import chain

import numpy as np
import pytest

from backend.data.order import DataOrder

LENGTHS = np.random.default_rng(0).integers(1, 100, 1003).astype(np.int32)


def order(lengths=LENGTHS, batch_size=8, seed=1, fingerprint="data", length_buckets=True) -> DataOrder:
    return DataOrder(lengths, batch_size, seed, fingerprint, length_buckets)


def epoch_of(one: DataOrder, epoch: int) -> list[list[int]]:
    first = epoch * one.steps_per_epoch + 1
    return [one.indices(step).tolist() for step in range(first, first + one.steps_per_epoch)]


@pytest.mark.parametrize("buckets", [True, False])
@pytest.mark.parametrize(("rows", "batch_size"), [(1003, 8), (1000, 8), (5, 8), (1, 1), (401, 8), (17, 4)])
def test_every_epoch_holds_every_feature_once(rows, batch_size, buckets):
    one = order(LENGTHS[:rows], batch_size, length_buckets=buckets)
    for epoch in range(3):
        batches = epoch_of(one, epoch)
        assert sorted(chain.from_iterable(batches)) == list(range(rows))
        assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)


def test_a_step_is_the_same_whenever_and_wherever_it_is_asked():
    walked = order()
    story = {step: walked.indices(step).tolist() for step in range(1, 400)}
    for step in (1, 399, 126, 127, 50, 300, 2):
        assert order().indices(step).tolist() == story[step]
        assert walked.indices(step).tolist() == story[step]


@pytest.mark.parametrize("change", [{"seed": 2}, {"fingerprint": "other"}])
def test_seed_and_data_decide(change):
    assert epoch_of(order(), 0) != epoch_of(order(**change), 0)


def test_epochs_differ():
    assert epoch_of(order(), 0) != epoch_of(order(), 1)


def test_buckets_save_most_of_the_padding_and_keep_lengths_mixed_over_time():
    lengths = np.random.default_rng(1).integers(1, 100, 20_000).astype(np.int32)

    def padding(buckets: bool) -> float:
        batches = epoch_of(order(lengths, 16, length_buckets=buckets), 0)
        padded = sum(lengths[batch].max() * len(batch) for batch in batches)
        return 1 - lengths.sum() / padded

    assert padding(True) < 0.05 < 0.4 < padding(False)
    means = [lengths[batch].mean() for batch in epoch_of(order(lengths, 16), 0)]
    halves = np.mean(means[: len(means) // 2]), np.mean(means[len(means) // 2 :])
    assert abs(halves[0] - halves[1]) < 5
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.1


def test_the_smaller_last_batch_is_drawn_at_random():
    lengths = np.arange(1003, dtype=np.int32)
    lasts = [epoch_of(order(lengths), epoch)[-1] for epoch in range(200)]
    assert {len(batch) for batch in lasts} == {3}
    assert 400 < np.mean(lasts) < 600


def test_equal_lengths_are_shuffled_too():
    batches = epoch_of(order(np.full(1000, 5, dtype=np.int32)), 0)
    assert list(chain.from_iterable(batches)) != sorted(chain.from_iterable(batches))
    assert any(batch != sorted(batch) for batch in batches)


def test_epoch_counts_steps_done():
    one = order()
    assert (one.steps_per_epoch, one.epoch(126), one.epoch(63)) == (126, 1.0, 0.5)


def test_batches_handed_out_cannot_change_the_order():
    with pytest.raises(ValueError, match="read-only"):
        order().indices(1)[0] = 7


def test_this_very_order_is_kept_over_versions():
    """Resumed runs rely on it: if this fails, every run in progress would see other data."""
    one = order(np.arange(12, dtype=np.int32) // 6 + 1, 3, 42, "pinned")
    assert [one.indices(step).tolist() for step in (1, 2, 3, 4, 5)] == [
        [3, 5, 2],
        [9, 11, 10],
        [8, 7, 6],
        [0, 1, 4],
        [3, 5, 1],
    ]


def test_dropping_the_last_batch_leaves_whole_ones_of_rows_that_differ_by_epoch():
    one = DataOrder(LENGTHS, 8, 1, "data", True, drop_last=True)
    assert one.steps_per_epoch == 125
    epochs = [list(chain.from_iterable(epoch_of(one, epoch))) for epoch in range(2)]
    assert [len(set(epoch)) for epoch in epochs] == [1000, 1000]
    assert set(epochs[0]) != set(epochs[1])


def test_a_batch_that_is_the_only_one_is_not_dropped():
    assert len(DataOrder(LENGTHS[:5], 8, 1, "data", True, drop_last=True).indices(1)) == 5
