"""JAX with Flax and Optax. The engine itself is imported when it is first used, so that the catalog stays quick."""

from backend import registry
from backend.contract.spec import Section


class Settings(Section):
    """The JAX engine has no keys of its own in the `hardware` section yet."""


class JaxEntry:
    """What the catalog says of this engine, and the door to it."""

    title = "JAX"
    description = "JAX with Flax and Optax, on TPU, GPU and processor."
    Settings = Settings
    requires = ("jax", "flax", "optax", "transformers", "safetensors")
    extra = "jax"
    optimizers = ("adafactor", "adam", "adamw", "lion", "sgd")

    @staticmethod
    def architectures() -> tuple[str, ...]:
        """The modules of `models`, found without importing one."""
        return registry.names("family")

    @staticmethod
    def create():
        """The engine; imports jax."""
        from backend.engines.jax.engine import JaxEngine  # jax takes seconds to import

        return JaxEngine()

    @staticmethod
    def devices():
        """What JAX sees to compute on; imports jax."""
        from backend.engines.jax.devices import devices  # jax takes seconds to import

        return devices()


ENGINE = JaxEntry
