"""Setting rows aside: the same ones for the same seed, in order, every label in proportion."""

from collections import Counter

import numpy as np
import pytest

from backend.data.split import split_off


@pytest.fixture
def rows(desk):
    labels = ["a"] * 700 + ["b"] * 250 + ["c"] * 47 + ["d"] * 2 + ["e"]
    order = np.random.default_rng(0).permutation(len(labels))
    return desk.read(desk.write("a.csv", "n,label\n" + "".join(f"{n},{labels[k]}\n" for n, k in enumerate(order))))


def numbers(rows) -> list[int]:
    return [int(number) for number in rows.table["n"].to_pylist()]


@pytest.mark.parametrize("by", ["label", "random", "contiguous"])
def test_every_row_is_in_one_part_and_in_order(rows, by):
    stay, aside = split_off(rows, 0.1, 7, by, rows.table["label"])
    assert len(aside) == 100
    assert sorted(numbers(stay) + numbers(aside)) == list(range(1000))
    assert numbers(stay) == sorted(numbers(stay))
    assert numbers(aside) == sorted(numbers(aside))


def test_labels_keep_their_share_and_each_stays_in_training(rows):
    stay, aside = split_off(rows, 0.1, 7, "label", rows.table["label"])
    counts = Counter(aside.table["label"].to_pylist())
    assert (counts["a"], counts["b"]) == (70, 25)
    assert counts["c"] in {4, 5}
    assert counts["e"] == 0
    assert set(stay.table["label"].to_pylist()) == set("abcde")


def test_a_large_fraction_still_leaves_one_of_each_label(rows):
    stay, aside = split_off(rows, 0.999, 7, "label", rows.table["label"])
    assert Counter(stay.table["label"].to_pylist()) == dict.fromkeys("abcde", 1)
    assert len(aside) == 995


def test_the_seed_decides(rows):
    parts = [numbers(split_off(rows, 0.1, seed, "label", rows.table["label"])[1]) for seed in (1, 1, 2)]
    assert parts[0] == parts[1]
    assert parts[0] != parts[2]


def test_contiguous_takes_the_end(rows):
    assert numbers(split_off(rows, 0.1, 7, "contiguous", None)[1]) == list(range(900, 1000))


def test_rows_keep_their_places(rows):
    _, aside = split_off(rows, 0.1, 7, "random", None)
    assert [aside.place(row) for row in range(len(aside))] == [f"a.csv:{number + 2}" for number in numbers(aside)]


def test_fingerprints_differ_by_part_seed_and_way(rows):
    prints = [
        part.fingerprint
        for seed, by in ((1, "label"), (2, "label"), (1, "random"))
        for part in split_off(rows, 0.1, seed, by, rows.table["label"])
    ]
    assert len({*prints, rows.fingerprint}) == 7


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_two_rows_make_one_each(desk, fraction):
    rows = desk.read(desk.write("a.csv", "n\n1\n2\n"))
    assert [len(part) for part in split_off(rows, fraction, 1, "random", None)] == [1, 1]


def test_a_single_row_stays(desk):
    rows = desk.read(desk.write("a.csv", "n\n1\n"))
    assert [len(part) for part in split_off(rows, 0.5, 1, "random", None)] == [1, 0]


def test_skipped_rows_are_told_once(desk):
    rows = desk.read(desk.write("a.csv", "n\n1\n2\n3,4\n"))
    stay, aside = split_off(rows, 0.5, 1, "random", None)
    assert (len(stay.skipped), len(aside.skipped)) == (1, 0)


def test_labels_that_are_null_are_a_label_of_their_own(desk):
    path = desk.write("a.jsonl", '{"l": "a"}\n{"l": null}\n' * 50)
    rows = desk.read(path)
    _, aside = split_off(rows, 0.2, 1, "label", rows.table["l"])
    assert Counter(aside.table["l"].to_pylist()) == {"a": 10, None: 10}


def test_many_chunks_are_split_like_one(desk):
    rows = desk.read(desk.write("a.csv", "n,label\n" + "".join(f"{n},{n % 3}\n" for n in range(30_000))))
    assert rows.table["n"].num_chunks > 1
    stay, aside = split_off(rows, 0.25, 3, "label", rows.table["label"])
    assert Counter(aside.table["label"].to_pylist()) == {"0": 2500, "1": 2500, "2": 2500}
    assert sorted(numbers(stay) + numbers(aside)) == list(range(30_000))
