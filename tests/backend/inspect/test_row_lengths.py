"""How long rows are against a limit is what the task's own encoding makes of them, for every task."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.data.features import Features
from backend.data.rows import Rows
from backend.inspect import row_lengths
from backend.inspect.length_report import training_lengths
from backend.inspect.row_lengths import count_tokens
from backend.preflight.datasets import ignore_progress
from backend.tasks.task import encode_features
from tests.backend.inspect.looked_at import looked

CUT: list[tuple[str, dict[str, Any]]] = [
    ("classified", {}),
    ("pairs", {}),
    ("choices", {}),
    ("translated", {"max_target_length": 500}),
    ("examples", {}),
    ("masked", {}),
    ("chats", {}),
    ("chats", {"loss_on": "all"}),
    ("chats", {"generate": True, "max_new_tokens": 8}),
    ("tagged", {"window": False}),
]


LIMITS = (12, 17, 30)
"""Each kind is measured against one of them; all pairs are measured by the slow tests."""


@pytest.mark.parametrize(
    ("limit", "kind", "task"),
    [
        pytest.param(limit, *cut, marks=[] if number % len(LIMITS) == place else [pytest.mark.slow])
        for place, limit in enumerate(LIMITS)
        for number, cut in enumerate(CUT)
    ],
)
def test_rows_beyond_a_limit_are_those_that_the_encoding_cuts(
    own_cache: Path, kind: str, task: dict[str, Any], limit: int
):
    cut = looked(own_cache, kind, max_length=limit, **task)
    session = replace(cut.session, facts={**cut.session.facts, "max_length": 5000})
    whole = session.typed_features(cut.rows)
    loses = _lengths(cut.features) < _lengths(whole)

    counts = count_tokens(cut.session, cut.rows, cut.features, ignore_progress)
    assert loses.any()
    assert np.array_equal(np.asarray(counts.needed[0]) > limit, loses)
    assert training_lengths(cut, lambda name: ignore_progress).measures[0].rows_beyond(limit) == loses.sum()


def _lengths(features: Features) -> np.ndarray:
    return features.lengths.astype(np.int64)


def test_targets_have_a_limit_of_their_own(own_cache: Path):
    found = training_lengths(
        looked(own_cache, "translated", max_length=120, max_target_length=20), lambda name: ignore_progress
    )
    sources, targets = found.measures
    cut = looked(own_cache, "translated", max_length=120, max_target_length=20).features.scalars["cut_target"]
    assert sources.rows_beyond(sources.limit) == 0
    assert targets.setting == "task.max_target_length"
    assert targets.rows_beyond(20) == np.count_nonzero(cut) > 0


@pytest.mark.parametrize(("kind", "task"), [("tagged", {"max_length": 16}), ("asked", {"max_length": 64})])
def test_windows_lose_nothing_and_are_counted(own_cache: Path, kind: str, task: dict[str, Any]):
    look = looked(own_cache, kind, **task)
    [measure] = training_lengths(look, lambda name: ignore_progress).measures
    parts = np.bincount(look.features.scalars["row"])
    assert measure.rows_beyond(measure.limit) == np.count_nonzero(parts > 1) > 0
    assert measure.suggestion is None
    assert "no text is lost" in measure.sentence


def test_rows_of_blocks_are_measured_without_a_second_tokenising(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    look = looked(own_cache, "blocks")
    monkeypatch.setattr(row_lengths, "encode_features", _never)
    counts = count_tokens(look.session, look.rows, look.features, ignore_progress)
    end = look.session.tokenizer.eos_token_id
    texts = look.rows.table["text"].to_pylist()
    assert counts.needed[0].tolist() == [
        len([*look.session.tokenizer(one, add_special_tokens=False)["input_ids"], end]) for one in texts
    ]


def test_what_no_limit_touches_is_not_tokenised_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    look = looked(own_cache, "pairs", max_length=400)
    monkeypatch.setattr(row_lengths, "encode_features", _never)
    assert (
        count_tokens(look.session, look.rows, look.features, ignore_progress).needed[0].tolist()
        == look.features.lengths.tolist()
    )


def test_only_rows_that_are_cut_are_tokenised_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    look = looked(own_cache, "translated", max_length=20, max_target_length=25)
    anew: list[int] = []

    def counting(task: Any, rows: Rows, *arguments: Any, **options: Any) -> Any:
        anew.append(len(rows))
        return encode_features(task, rows, *arguments, **options)

    monkeypatch.setattr(row_lengths, "encode_features", counting)
    count_tokens(look.session, look.rows, look.features, ignore_progress)
    lengths = look.features.lists["labels"].lengths
    assert anew == [np.count_nonzero((look.features.lengths >= 20) | (lengths >= 25))]
    assert 0 < anew[0] < len(look.rows)


def test_another_limit_finds_the_lengths_that_were_measured(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    first = looked(own_cache, "classified", max_length=10)
    assert not count_tokens(first.session, first.rows, first.features, ignore_progress).cached
    other = looked(own_cache, "classified", max_length=14)
    monkeypatch.setattr(row_lengths, "encode_features", _never)
    assert count_tokens(other.session, other.rows, other.features, ignore_progress).cached


def test_interrupted_measuring_leaves_nothing_half_done(own_cache: Path):
    look = looked(own_cache, "classified", max_length=10)

    def stopped(done: int, total: int, unit: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_tokens(look.session, look.rows, look.features, stopped)
    assert not list((own_cache / "cache" / "lengths").glob("*/")) or not list(own_cache.glob("cache/lengths/*.part"))
    assert not count_tokens(look.session, look.rows, look.features, ignore_progress).cached


def _never(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("tokenised again")
