"""Owns the check of a spec's open settings by their owners: optimizer, adapter, metrics, configuration, tokenizer."""

from backend import registry
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec, Section, validated


def optimizer_options(spec: RunSpec) -> Section:
    """The optimizer's own settings. Raises InputError that names the option and the valid ones."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    given, known = spec.training.optimizer_options, kind.Settings.model_fields
    for name in given:
        if name not in known:
            key = f"training.optimizer_options.{name}"
            has = f"has {', '.join(known)}" if known else "has no options of its own"
            raise InputError(f"{key}: there is no such option; {spec.training.optimizer} {has}", key)
    return validated(kind.Settings, given, "training.optimizer_options")


def adapter_settings(spec: RunSpec) -> Section | None:
    """The adapter's own settings, complete. Raises InputError."""
    if spec.adapter is None:
        return None
    kind = registry.find("adapter", spec.adapter.get("type", ""), "adapter.type")
    if spec.model.initialise == "from_config":
        raise InputError("adapter: new weights must all be trained; leave the adapter out", "adapter")
    if spec.model.frozen:
        raise InputError("model.frozen: an adapter leaves every weight of the model frozen already", "model.frozen")
    return validated(kind.Settings, spec.adapter, "adapter")
