"""The interface of an optimizer: its settings for the catalog, and how to create torch's object."""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from backend.contract.spec import Section, TrainingSection

if TYPE_CHECKING:
    from torch.optim import Optimizer

Groups = list[dict[str, Any]]
"""Parameter groups as torch takes them: `params`, `weight_decay`, `rate` (what the learning rate is multiplied by), and the
parameters' `names`."""

FUSED = {"cpu", "cuda", "xpu", "mps"}
"""Kinds of device on which torch has one kernel for the whole step."""


class OptimizerEntry(Protocol):
    """What a module here exports as `OPTIMIZER`, or an installed package as an entry point of `burnish.optimizers`.

    It may also have `requires`, a package that must be installed, `devices`, the kinds that it runs on (else any), `paged`,
    whether its state leaves the device when that is full, `elementwise`, whether it updates each number of a weight by
    itself (else its weights cannot be sharded), and `state_of(name, shape, options)`, the float32 values that are
    stored for one parameter.
    """

    title: ClassVar[str]
    description: ClassVar[str]
    Settings: ClassVar[type[Section]]
    """The keys of `training.optimizer_options`."""

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """Float32 values stored per trained weight, for the memory plan."""
        ...

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> "Optimizer":
        """The optimizer; imports torch. Before each step the loop sets its learning rate in the groups' `lr`."""
        ...


def has_fused(groups: Groups) -> bool:
    """Whether torch's fused kernel is available on the parameters' device."""
    return groups[0]["params"][0].device.type in FUSED
