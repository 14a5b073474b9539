"""Owns the choice between a family of ours and the bridge: the bridge is for what no family computes, and where it is wished."""

from backend.catalogue_building import missing
from backend.contract.errors import InputError
from backend.engines.engine import Loading
from backend.engines.jax import Settings
from backend.engines.jax.bridge import BRIDGE, SETTING
from backend.engines.jax.loading import Opened, open_model
from backend.engines.jax.unknown import Unknown


def open_any(loading: Loading) -> Opened:
    """Raises InputError where neither knows the model, or a setting does not go with it."""
    try:
        return open_model(loading)
    except Unknown:
        if not (isinstance(loading.hardware, Settings) and loading.hardware.bridge):
            raise
    if absent := missing(BRIDGE):
        raise InputError(f"{SETTING}: {BRIDGE.title} cannot be used here: {absent}", SETTING)
    from backend.engines.jax.bridge.loading import open_bridged  # torch, which nothing else of this engine needs

    return open_bridged(loading)
