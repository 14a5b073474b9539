"""Owns which version of a distribution is installed here, from package metadata; imports none of them."""

import platform
from collections.abc import Iterable
from importlib import metadata

PACKAGES_OF_A_RUN = (
    "burnish", "torch", "transformers", "tokenizers", "accelerate", "numpy", "pyarrow", "jax", "jaxlib", "flax", "optax",
    "orbax-checkpoint",
)  # fmt: skip
"""Whose versions a run keeps."""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Python's version and that of every distribution that is installed; the others are left out."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed has no version
    return found
