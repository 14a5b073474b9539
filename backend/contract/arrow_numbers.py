"""Reads plain Arrow arrays as numpy arrays; pyarrow's own conversion loads pandas, which takes half a second."""

from typing import TYPE_CHECKING, Any

from backend.contract.messages import message

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_TYPES = {name: name for name in ("int64", "uint64", "int32", "int8", "uint8")} | {
    "double": "float64",
    "float": "float32",
}


def numbers(column: "pa.Array | pa.ChunkedArray") -> "np.ndarray":
    """Integers, floats or booleans, without a copy if there is one chunk; a null float is NaN.

    Raises ValueError for other types.
    """
    import numpy as np

    parts = [_numbers(chunk) for chunk in getattr(column, "chunks", [column])]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)


def _numbers(array: Any) -> "np.ndarray":
    import numpy as np

    name = str(array.type)
    valid, data = array.buffers()
    if name == "bool":
        return _bits(data, array.offset, len(array)) & _bits(valid, array.offset, len(array))
    if name not in _TYPES:
        raise ValueError(message("{name} is not a plain number", name=name))
    values = (
        np.frombuffer(data, _TYPES[name])[array.offset : array.offset + len(array)]
        if data
        else np.zeros(0, _TYPES[name])
    )
    if array.null_count and name in ("double", "float"):
        values = np.where(_bits(valid, array.offset, len(array)), values, np.nan)
    return values


def _bits(buffer: Any, offset: int, count: int) -> "np.ndarray":
    import numpy as np

    if buffer is None:
        return np.ones(count, dtype=bool)
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")[offset : offset + count].astype(bool)


def whole_numbers(values: "np.ndarray") -> "pa.Array":
    """An Arrow array of 64-bit integers, without a copy."""
    import numpy as np
    import pyarrow as pa

    plain = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(plain), [None, pa.py_buffer(plain)])
