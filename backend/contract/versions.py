"""Owns the version of the contract; another major version is refused in one sentence."""

CONTRACT_VERSION = "1.0"
SPEC_VERSION = 1


def same_major(other: str) -> bool:
    """Whether a catalog, run or helper of version `other` can be understood."""
    return other.split(".")[0] == CONTRACT_VERSION.split(".")[0]
