"""The cache of features: a hit encodes nothing, damage is mended, an interruption leaves nothing."""

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.errors import InputError
from backend.data.features import features


class Encoder:
    """Makes features of known content and counts how often it was asked."""

    def __init__(self, rows: int, fails_at: int | None = None) -> None:
        self.rows, self.fails_at, self.calls = rows, fails_at, 0

    def __call__(self):
        self.calls += 1
        return self._batches()

    def _batches(self):
        for start in range(0, self.rows, 1000):
            if self.fails_at is not None and start >= self.fails_at:
                raise RuntimeError("the tokenizer broke")
            numbers = list(range(start, min(start + 1000, self.rows)))
            yield pa.RecordBatch.from_pydict(
                {
                    "row": pa.array(numbers),
                    "part": pa.array([0] * len(numbers)),
                    "input_ids": pa.array([[number] * (number % 7) for number in numbers], pa.list_(pa.int64())),
                    "labels": pa.array([number % 3 for number in numbers]),
                }
            )


def quiet(done: int, total: int, unit: str) -> None:
    pass


def test_features_come_back_as_they_were_made(tmp_path):
    found = features(Encoder(2500), {"a": 1}, tmp_path, quiet, 2500)
    assert len(found) == 2500
    assert found.lengths.tolist() == [number % 7 for number in range(2500)]
    assert found.table["input_ids"].to_pylist()[2499] == [2499] * (2499 % 7)
    assert found.table.schema.field("input_ids").type == pa.list_(pa.int32())
    assert (found.lengths.dtype, found.table.schema.field("row").type) == (np.int32, pa.int32())


def test_a_hit_costs_no_encoding(tmp_path):
    encoder = Encoder(10)
    first = features(encoder, {"data": "x", "task": {"b": 1, "a": 2}}, tmp_path, quiet, 10)
    second = features(encoder, {"task": {"a": 2, "b": 1}, "data": "x"}, tmp_path, quiet, 10)
    assert encoder.calls == 1
    assert first.fingerprint == second.fingerprint


def test_another_key_is_another_encoding(tmp_path):
    encoder = Encoder(10)
    prints = {features(encoder, {"length": length}, tmp_path, quiet, 10).fingerprint for length in (1, 2, "1")}
    assert (len(prints), encoder.calls) == (3, 3)


@pytest.mark.parametrize("name", ["table.arrow", "lengths.bin", "facts.json"])
@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_a_damaged_entry_is_encoded_again(tmp_path, name, damage):
    encoder = Encoder(10)
    name_of_entry = features(encoder, {}, tmp_path, quiet, 10).fingerprint
    damaged = tmp_path / name_of_entry / name
    damaged.unlink()  # and not cut short in place: a mapping of the old file may still be alive
    damaged.write_bytes(damage)
    assert features(encoder, {}, tmp_path, quiet, 10).lengths.tolist() == [number % 7 for number in range(10)]
    assert encoder.calls == 2


def test_an_interrupted_encoding_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="the tokenizer broke"):
        features(Encoder(5000, fails_at=3000), {}, tmp_path, quiet, 5000)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_progress_counts_rows(tmp_path):
    told = []
    features(Encoder(2500), {}, tmp_path, lambda *one: told.append(one), 2500)
    assert told == [(1000, 2500, "rows"), (2000, 2500, "rows"), (2500, 2500, "rows")]


def test_data_without_any_token_is_refused(tmp_path):
    with pytest.raises(InputError, match="the data contains no text"):
        features(Encoder(0), {}, tmp_path, quiet, 0)


def test_lists_are_found_across_many_batches_without_copies(tmp_path):
    found = features(Encoder(200_000), {}, tmp_path, quiet, 200_000)
    assert found.table["input_ids"].num_chunks > 1
    chosen = np.array([0, 5, 65_535, 65_536, 66_001, 131_999, 199_999])
    lists = found.lists["input_ids"].take(chosen)
    assert [one.tolist() for one in lists] == [[number] * (number % 7) for number in chosen.tolist()]
    assert not any(one.flags.owndata for one in lists)


def test_a_second_start_says_that_it_was_cached(tmp_path):
    def encode():
        yield pa.RecordBatch.from_pydict({"row": [0], "part": [0], "input_ids": pa.array([[1, 2]])})

    first, again, other = (
        features(encode, {"max_length": length}, tmp_path, lambda done, total, unit: None, 1) for length in (8, 8, 9)
    )
    assert (first.cached, again.cached, other.cached) == (False, True, False)
