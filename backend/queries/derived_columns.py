"""Owns what people sort predictions by though no file has it: how sure, how far off, how many tags wrong."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

PROBABILITY = "probability_"


def with_column(table: "pa.Table", name: str) -> "pa.Table":
    """The table with a derived column where its name is asked for, no column bears it, and it can be computed."""
    derive = _DERIVED.get(name)
    column = derive(table) if derive and name not in table.column_names else None
    return table if column is None else table.append_column(name, column)


def _confidence(table: "pa.Table") -> Any:
    """The largest probability of each row."""
    import pyarrow.compute as compute

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    return compute.max_element_wise(*[table[name] for name in names]) if names else None


def _error(table: "pa.Table") -> Any:
    """How far a predicted number is from the actual one; none where either is no number."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        return None
    try:
        predicted, actual = (compute.cast(table[name], pa.float64()) for name in ("prediction", "actual"))
    except pa.ArrowInvalid:
        return None
    return compute.call_function("abs", [compute.call_function("subtract", [predicted, actual])])


def _wrong_tags(table: "pa.Table") -> Any:
    """How many of a row's space-joined tags are not the actual ones; none where nothing is known."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        return None
    lists = [compute.split_pattern(compute.cast(table[name], pa.string()), " ") for name in ("prediction", "actual")]
    lengths = [compute.fill_null(compute.list_value_length(one), 0).to_numpy() for one in lists]
    if not (lengths[0] == lengths[1]).all():
        return pa.array(
            [_differing(*pair) for pair in zip(*(one.to_pylist() for one in lists), strict=True)], pa.int64()
        )
    flat = [compute.list_flatten(one) for one in lists]
    differs = compute.fill_null(compute.call_function("not_equal", flat), True).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(differs)])[np.concatenate([[0], np.cumsum(lengths[0])])]
    known = compute.call_function("is_valid", [table["actual"]]).to_numpy()
    return pa.array(np.diff(ends), pa.int64(), mask=~known)


def _differing(predicted: list[str] | None, actual: list[str] | None) -> int | None:
    if predicted is None or actual is None:
        return None
    same = sum(one == other for one, other in zip(predicted, actual, strict=False))
    return max(len(predicted), len(actual)) - same


_DERIVED = {"confidence": _confidence, "error": _error, "wrong_tags": _wrong_tags}
