"""The versions of the contract and of spec files (another major one is rejected), and of installed packages."""

import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata

CONTRACT_VERSION = "1.0"
SPEC_VERSION = 1
PACKAGES_OF_A_RUN = (
    "burnish", "torch", "transformers", "tokenizers", "accelerate", "numpy", "pyarrow", "jax", "jaxlib", "flax", "optax",
    "orbax-checkpoint",
)  # fmt: skip
"""Whose versions a run keeps."""


def same_major(other: str) -> bool:
    """Whether a catalog, run or helper of version `other` can be understood."""
    return other.split(".")[0] == CONTRACT_VERSION.split(".")[0]


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of each distribution that is installed; others are left out."""
    found = {name: _installed_version(name) for name in names}
    return {"python": platform.python_version(), **{name: one for name, one in found.items() if one is not None}}


def _installed_version(name: str) -> str | None:
    try:
        return _read_version(name)
    except metadata.PackageNotFoundError:
        return None  # an extra that is not installed


@cache
def _read_version(name: str) -> str:
    """Parses all of the distribution's metadata, and every configuration that is opened asks for transformers'."""
    return metadata.version(name)
