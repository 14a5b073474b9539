"""Resolves the requirement locks: one file per accelerator, every package at one version with the hashes of its wheels.

`make lock` writes packaging/requirements-{cpu,cuda,tpu}.txt. pip resolves for the oldest Python that Burnish supports;
the wheels of the same versions for the newer ones are looked up after. For 64-bit Intel Linux, where the three
accelerators are rented; elsewhere install from pyproject.toml.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in range(34, 4, -1)), "manylinux2014_x86_64", "linux_x86_64")


@dataclass(frozen=True)
class Accelerator:
    """What is locked for one kind of hardware."""

    name: str
    requirements: tuple[str, ...]
    about: str
    own_index: bool = False
    """Whether pip's own settings (an index of CPU wheels) are heeded, or only the public index."""


ACCELERATORS = (
    Accelerator(
        "cpu", (".[torch]",), "PyTorch without accelerator; torch comes from PyTorch's index of CPU wheels", True
    ),
    Accelerator("cuda", (".[torch]",), "PyTorch for NVIDIA, with the CUDA libraries that its wheel asks for"),
    Accelerator("tpu", (".[jax]", "jax[tpu]"), "JAX with libtpu"),
)

WITHOUT_WHEEL = {"rouge-score": ("absl-py", "nltk", "six>=1.14"), "seqeval": ("scikit-learn",)}
"""Pure Python packages whose authors publish sources alone, with what they need; pip looks for nothing but wheels."""

Hashes = dict[tuple[str, str], set[str]]
"""(name, version) → hashes of its wheels."""


class Unlockable(RuntimeError):
    """pip found no set of packages, or the wrong one."""


def lock(accelerator: Accelerator) -> str:
    """The text of the lock: two lines about it, then `name==version --hash=sha256:…`, sorted by name."""
    found = wheels(accelerator, PYTHONS[0], _with_wheels(accelerator.requirements))
    pins = [f"{name}=={version}" for name, version in found]
    if accelerator.name == "cpu" and not any(name == "torch" and version.endswith("+cpu") for name, version in found):
        raise Unlockable("pip did not find torch's CPU wheel: set PIP_EXTRA_INDEX_URL to PyTorch's index of CPU wheels")
    for python in PYTHONS[1:]:
        _add_wheels(found, accelerator, python, pins)
    found |= _sources()
    lines = [f"# {accelerator.about}. Linux x86_64, Python {PYTHONS[0]} to {PYTHONS[-1]}.", "# Made by `make lock`."]
    lines += [_line(name, version, hashes) for (name, version), hashes in sorted(found.items())]
    return "\n".join(lines) + "\n"


def wheels(accelerator: Accelerator, python: str, requirements: Iterable[str], *options: str) -> Hashes:
    """What pip would install for that Python. Raises Unlockable with pip's own words."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command += ["--only-binary", ":all:", "--target", tempfile.gettempdir(), "--python-version", python, *options]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    done = subprocess.run(
        [*command, *requirements], cwd=ROOT, env=_environment(accelerator), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unlockable(done.stderr.strip())
    report = json.loads(done.stdout)
    return {
        (_normal(item["metadata"]["name"]), item["metadata"]["version"]): {_hash(item)}
        for item in report["install"]
        if "dir_info" not in item["download_info"]
    }


def main() -> int:
    """Write every lock; 1 if one could not be made."""
    for accelerator in ACCELERATORS:
        path = ROOT / "packaging" / f"requirements-{accelerator.name}.txt"
        print(f"{path.name}: resolving …", flush=True)
        try:
            text = lock(accelerator)
        except Unlockable as error:
            print(f"{path.name} stays as it is: {error}", file=sys.stderr)
            return 1
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {text.count('==')} packages")
    return 0


def _with_wheels(requirements: Iterable[str]) -> list[str]:
    """The requirements, those of this project one by one, without the packages that have no wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed: list[str] = [need for needs in WITHOUT_WHEEL.values() for need in needs]
    for requirement in requirements:
        extra = re.fullmatch(r"\.\[(\w+)\]", requirement)
        listed += [*project["dependencies"], *project["optional-dependencies"][extra[1]]] if extra else [requirement]
    return [one for one in listed if re.split(r"[<>=\[]", one)[0] not in WITHOUT_WHEEL]


def _sources() -> Hashes:
    """The packages without wheel, as their sources."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    done = subprocess.run(
        [*command, "--report", "-", "--no-binary", ":all:", *WITHOUT_WHEEL], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unlockable(done.stderr.strip())
    return {
        (_normal(item["metadata"]["name"]), item["metadata"]["version"]): {_hash(item)}
        for item in json.loads(done.stdout)["install"]
    }


def _add_wheels(found: Hashes, accelerator: Accelerator, python: str, pins: list[str]) -> None:
    """The hashes of the same versions for another Python; a package without a wheel for it is said and left out."""
    while True:
        try:
            more = wheels(accelerator, python, pins, "--no-deps")
        except Unlockable as error:
            missing = re.search(r"No matching distribution found for (\S+)", str(error))
            if not missing or missing[1] not in pins:
                raise
            print(f"  {missing[1]} has no wheel for Python {python}", flush=True)
            pins = [pin for pin in pins if pin != missing[1]]
        else:
            break
    for key, hashes in more.items():
        found[key] |= hashes


def _environment(accelerator: Accelerator) -> dict[str, str]:
    if accelerator.own_index:
        return dict(os.environ)
    where_from = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_NO_INDEX")
    kept = {name: value for name, value in os.environ.items() if name not in where_from}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def _hash(item: dict[str, Any]) -> str:
    return item["download_info"]["archive_info"]["hashes"]["sha256"]


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _line(name: str, version: str, hashes: set[str]) -> str:
    return " ".join([f"{name}=={version}", *(f"--hash=sha256:{value}" for value in sorted(hashes))])


if __name__ == "__main__":
    sys.exit(main())
