"""The versions of the contract and of spec files, of which another major one is refused, and those of installed packages, from their metadata."""

import platform
from collections.abc import Iterable
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
    """Python's version and that of every distribution that is installed; the others are left out."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed has no version
    return found
