import numpy as np
import pytest

from app.widgets.plots.min_max_pyramid import MinMaxPyramid

rng = np.random.default_rng(0)


def filled(count: int, chunk: int) -> tuple[MinMaxPyramid, np.ndarray]:
    ys = rng.normal(size=count)
    pyramid = MinMaxPyramid()
    for begin in range(0, count, chunk):
        stop = min(count, begin + chunk)
        pyramid.append(np.arange(begin, stop), ys[begin:stop])
    return pyramid, ys


@pytest.mark.parametrize(("count", "chunk"), [(1, 1), (7, 2), (1600, 13), (10_007, 17), (200_000, 997)])
def test_extremes_survive_any_reduction(count: int, chunk: int):
    pyramid, ys = filled(count, chunk)
    _, reduced = pyramid.reduce()
    assert (reduced.min(), reduced.max()) == (ys.min(), ys.max())


@pytest.mark.parametrize("points", [200, 800, 1600])
def test_never_more_points_than_asked(points: int):
    pyramid, _ = filled(123_457, 1000)
    for first, last in [(-np.inf, np.inf), (0, 5000), (77_777, 123_456), (123_400, 1e9)]:
        assert len(pyramid.reduce(first, last, points)[0]) <= points


def test_a_short_range_is_exact_with_one_neighbour_at_each_end():
    pyramid, ys = filled(50_000, 1000)
    xs, reduced = pyramid.reduce(1000, 1100)
    assert (xs == np.arange(999, 1102)).all()
    assert (reduced == ys[999:1102]).all()


def test_a_long_range_keeps_to_its_ends():
    pyramid, ys = filled(100_000, 1000)
    xs, reduced = pyramid.reduce(20_000, 80_000)
    assert xs[0] >= 20_000 - 512
    assert xs[-1] == 80_001
    assert reduced.max() >= ys[20_000:80_001].max()
    assert (np.diff(xs) >= 0).all()


def test_the_last_point_is_always_drawn():
    pyramid, ys = filled(8191, 50)
    xs, reduced = pyramid.reduce()
    assert xs[-1] == 8190
    assert ys[-1] >= reduced[-2:].min()


def test_dropping_the_end_and_going_on_equals_never_having_had_it():
    pyramid, ys = filled(30_000, 700)
    pyramid.truncate_after(12_345)
    pyramid.append(np.arange(12_346, 30_000), ys[12_346:])
    straight = MinMaxPyramid()
    straight.append(np.arange(30_000), ys)
    for mine, other in zip(pyramid.reduce(), straight.reduce(), strict=True):
        assert (mine == other).all()


def test_not_a_number_is_a_gap_and_spoils_no_extreme():
    ys = np.sin(np.arange(20_000) / 100)
    ys[5000] = np.nan
    pyramid = MinMaxPyramid()
    pyramid.append(np.arange(20_000), ys)
    assert pyramid.bounds() == (np.nanmin(ys), np.nanmax(ys))


def test_an_empty_series_has_no_bounds():
    assert MinMaxPyramid().bounds() is None
    assert len(MinMaxPyramid().reduce()[0]) == 0


def test_appending_one_by_one_touches_few_entries():
    pyramid = MinMaxPyramid()
    for step in range(5000):
        pyramid.append(np.array([step]), np.array([float(step)]))
    assert sum(level.count for level in pyramid._levels) < 5000 * 1.2
