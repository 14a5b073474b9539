"""Every lock is whole: pinned, hashed, within what pyproject.toml asks for, and free of traces of where it was made."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = {"cpu": ["torch"], "cuda": ["torch"], "tpu": ["jax"]}
"""Accelerator → the extras that its lock must satisfy."""
LINE = re.compile(r"[a-z0-9-]+==[^\s=]+( --hash=sha256:[0-9a-f]{64})+")


def lines(accelerator: str) -> list[str]:
    text = (ROOT / "packaging" / f"requirements-{accelerator}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def locked(accelerator: str) -> dict[str, Version]:
    requirements = [Requirement(line.split(" ")[0]) for line in lines(accelerator)]
    return {canonicalize_name(it.name): Version(next(iter(it.specifier)).version) for it in requirements}


@pytest.mark.parametrize("accelerator", LOCKS)
def test_every_line_is_one_version_with_hashes(accelerator: str):
    assert len(lines(accelerator)) > 40
    assert [line for line in lines(accelerator) if not LINE.fullmatch(line)] == []


@pytest.mark.parametrize("accelerator", LOCKS)
def test_lock_satisfies_the_project(accelerator: str):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (line for extra in LOCKS[accelerator] for line in project["optional-dependencies"][extra])
    versions = locked(accelerator)
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not locked"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: locked is {version}"


@pytest.mark.parametrize("accelerator", ["cpu", "tpu"])
def test_what_locked_packages_need_is_locked_too(accelerator: str):
    """By the metadata of what is installed here, where that is the locked version."""
    versions = locked(accelerator)
    missing = [
        f"{name} needs {needed}"
        for name, version in versions.items()
        for needed in _needs(name, version)
        if canonicalize_name(needed.name) not in versions
    ]
    assert missing == []


def test_processor_lock_brings_no_accelerator():
    names = locked("cpu")
    assert names["torch"].local == "cpu"
    assert [name for name in names if name.startswith(("nvidia", "triton", "libtpu"))] == []


def test_accelerator_locks_bring_theirs():
    assert any(name.startswith("nvidia-") for name in locked("cuda"))
    assert "libtpu" in locked("tpu")


def _needs(name: str, version: Version) -> list[Requirement]:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return []
    if Version(found.version) != version:
        return []
    needed = map(Requirement, found.requires or [])
    return [it for it in needed if not it.marker or it.marker.evaluate({"extra": "", "platform_system": "Linux"})]
