"""Imports scikit-learn without pandas and scipy's statistics: its scores of labels use neither, and both take half its time."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

_STATISTICS, _FRAMES = "scipy.stats", "pandas"


class _LazyStatistics(ModuleType):
    """`scipy.stats` until something of it is used, which loads it in place."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__"):
            raise AttributeError(name)
        assert spec is not None
        assert spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        try:
            spec.loader.exec_module(self)
        except BaseException:
            self.__class__ = _LazyStatistics  # pyright: ignore[reportAttributeAccessIssue]
            raise
        return getattr(self, name)


def install() -> None:
    """Import scikit-learn, unless it is already there."""
    if "sklearn" in sys.modules:
        return
    if _STATISTICS not in sys.modules:
        _stand_in()
    has_frames = _FRAMES in sys.modules
    if not has_frames:
        sys.modules[_FRAMES] = None  # type: ignore[assignment]
    try:
        importlib.import_module("sklearn.metrics")
    finally:
        if not has_frames:
            del sys.modules[_FRAMES]


def _stand_in() -> None:
    spec = importlib.util.find_spec(_STATISTICS)
    assert spec is not None
    module, scipy = importlib.util.module_from_spec(spec), importlib.import_module("scipy")
    module.__class__ = _LazyStatistics
    vars(module)["rankdata"] = _rank  # the one name that scikit-learn takes from it, for a score of rankings
    sys.modules[_STATISTICS] = vars(scipy)["stats"] = module


def _rank(*values: Any, **named: Any) -> Any:
    statistics: Any = sys.modules[_STATISTICS]
    assert statistics.distributions  # loads the module, which replaces this function
    return statistics.rankdata(*values, **named)
