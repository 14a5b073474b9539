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
        """Raises InputError if the file's weights do not have the modules that the settings name."""
        ...

    @staticmethod
    def count_trainable(settings: Any, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> int:
        """Approximate number of trained parameters, from the shapes of the weights in the file."""
        ...
