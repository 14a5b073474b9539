"""The interface of an adapter for the catalog and the planner, without any framework."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from backend.contract.spec import Section


class AdapterEntry(Protocol):
    """What a module of `backend.adapters` exports as `ADAPTER`."""

    title: ClassVar[str]
    description: ClassVar[str]
    Settings: ClassVar[type[Section]]
    """The adapter's own keys of the `adapter` section, `type` among them."""

    @staticmethod
    def check(settings: Any, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> None:
        """Raises InputError where the weights of a file have no place for what the settings ask."""
        ...

    @staticmethod
    def count_trainable(settings: Any, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> int:
        """About how many parameters are trained, from the weights' shapes in the file."""
        ...
