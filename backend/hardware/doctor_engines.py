"""The engine checks of `burnish doctor`: which are installed, what they see, conflicts, and fixes."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from backend import registry
from backend.catalog_building import engine_entry
from backend.contract.catalog import EngineEntry
from backend.contract.messages import message
from backend.contract.rpc.plan import DeviceList
from backend.hardware.devices import query_devices

State = Literal["fine", "note", "missing"]
_BUILDS = {"cuda": "jax[cuda13]", "tpu": "jax[tpu]"}
"""Kind of device → the build of JAX that sees it."""
_NVIDIA, _AMD = "0x10de", "0x1002"
_DISPLAYS = ("0x03", "0x12")
"""Prefixes of the PCI classes of graphics cards and other accelerators."""
_GOOGLE, _NETWORK = "0x1ae0", "0x0042"
"""The PCI vendor of TPUs, and its network card, which is not a TPU."""
_OF_JAX = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "torch")


class Finding(msgspec.Struct, frozen=True):
    """The result of one check; `mend` is a command or a sentence if something can be done."""

    state: State
    text: str
    mend: str = ""
    about: Literal["", "device", "display"] = ""
    """`device` for what says which devices can train: the window shows that first, and nothing of its own display."""


def engines() -> list[EngineEntry]:
    """Every engine with what it is missing; imports no framework."""
    return [engine_entry(name, one) for name, one in registry.all_of("engine").items()]


def libraries() -> Iterator[Finding]:
    """The engines' own libraries. One engine is enough to train."""
    installed = engines()
    usable = [engine for engine in installed if not engine.missing]
    for engine in installed:
        versions = ", ".join(f"{name} {version_of(name)}" for name in _own_requirements(engine) if version_of(name))
        if not engine.missing:
            yield Finding(
                "fine", message("the {title} engine is ready: {versions}", title=engine.title, versions=versions)
            )
        elif usable:
            text = message(
                "the {title} engine is not installed; it is optional because {title_2} is installed",
                title=engine.title,
                title_2=usable[0].title,
            )
            yield Finding("note" if versions else "fine", text, pip(engine.name) if versions else "")
        else:
            yield Finding(
                "missing",
                message("the {title} engine is not installed; training requires an engine", title=engine.title),
                pip(engine.name),
            )
    if version_of("jax"):
        yield from clashes({name: version_of(name) for name in _OF_JAX}, os.environ)


def clashes(versions: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps JAX from an accelerator, by the installed versions (empty: not installed) and the environment."""
    jax = versions["jax"]
    plugins = [name for name in ("jax-cuda12-plugin", "jax-cuda13-plugin") if versions[name]]
    if versions["jaxlib"] and versions["jaxlib"] != jax:
        text = message("jax {jax} and jaxlib {versions} are not compatible", jax=jax, versions=versions["jaxlib"])
        yield Finding("missing", text, pip(f"jax=={jax}", f"jaxlib=={jax}"))
    for name in plugins:
        if versions[name] != jax:
            text = message(
                "{name} {versions} is not compatible with jax {jax}, so JAX does not detect GPUs",
                name=name,
                versions=versions[name],
                jax=jax,
            )
            yield Finding("note", text, pip(f"jax[{name.split('-')[1]}]=={jax}"))
    if len(plugins) > 1:
        yield Finding(
            "note",
            message("{plugins} conflict; keep one of them", plugins=" and ".join(plugins)),
            f"pip uninstall {plugins[0]}",
        )
    if plugins and versions["libtpu"]:
        yield Finding(
            "note", message("JAX is installed for both GPUs and TPUs; keep one of them"), "pip uninstall libtpu"
        )
    if plugins and "+cpu" not in versions["torch"] and versions["torch"]:
        text = message("PyTorch and JAX both include CUDA libraries, and may need different versions of them")
        yield Finding(
            "note", text, message("if either one stops detecting the GPU, install JAX in a separate environment")
        )
    platforms = environment.get("JAX_PLATFORMS", "")
    if platforms and not {"tpu", "cuda", "gpu"} & set(platforms.split(",")):
        yield Finding(
            "note",
            message("JAX_PLATFORMS is {platforms}, so JAX ignores all other devices", platforms=platforms),
            "unset JAX_PLATFORMS",
        )


def devices() -> Iterator[Finding]:
    """What each installed engine sees, queried in short-lived child processes."""
    for engine in engines():
        if not engine.missing:
            found = query_devices(engine.name)
            yield from visible_devices(engine, found)
            if engine.name == "jax":
                yield from hidden_devices(found, present(Path("/")), version_of("jax"))
            if engine.name == "torch" and all(device.kind == "cpu" for device in found.devices):
                yield missing_gpu(Path("/"), torch_builds(), os.environ)


def visible_devices(engine: EngineEntry, found: DeviceList) -> Iterator[Finding]:
    """The devices of one engine."""
    if found.note:
        yield Finding("note", found.note)
    for device in found.devices:
        text = message(
            "{title} detected {kind} {index}: {name}, {free_mb:.1f} GB free",
            title=engine.title,
            kind=device.kind,
            index=device.index,
            name=device.name,
            free_mb=device.free_mb / 1000,
        )
        words = message("{text}, {precisions}", text=text, precisions=", ".join(device.precisions))
        yield Finding("fine", words, about="device")


def hidden_devices(found: DeviceList, kinds: set[str], version: str) -> Iterator[Finding]:
    """Kinds of accelerator that are present but that JAX does not see, with how to fix that."""
    for kind in sorted(kinds - {device.kind for device in found.devices}):
        name = {"cuda": message("an NVIDIA GPU"), "tpu": "a TPU"}[kind]
        fix = pip(f"{_BUILDS[kind]}=={version}")
        if kind == "tpu":
            fix = message(
                "{command}, or stop the process that is using it, because a TPU allows only one process", command=fix
            )
        text = message("this computer has {name}, but JAX does not detect it", name=name)
        yield Finding("note", text, fix, "device")


def torch_builds() -> set[str]:
    """`cuda` and `rocm`, if the installed PyTorch was built for them; PyTorch is not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return set()
    libraries = Path(found.origin).parent / "lib"
    names = {path.name.removeprefix("lib").partition(".")[0] for path in libraries.glob("*torch_*")}
    return {kind for kind, name in (("cuda", "torch_cuda"), ("rocm", "torch_hip")) if name in names}


def missing_gpu(root: Path, builds: set[str], environment: Mapping[str, str]) -> Finding:
    """Why PyTorch sees no GPU, and what would change that, by the system's files under `root` (Linux)."""
    cards = [card for card in (root / "sys" / "bus" / "pci" / "devices").glob("*") if _is_graphics_card(card)]
    vendors = {_read(card / "vendor") for card in cards}
    node = next((path for name in ("nvidiactl", "dxg") if (path := root / "dev" / name).exists()), None)
    hidden = environment.get("CUDA_VISIBLE_DEVICES")
    if _NVIDIA in vendors and node is None:
        reason = message("this computer has an NVIDIA GPU, but its driver is not running")
        fix = message("install NVIDIA's driver for your system, then restart the computer")
    elif node is not None and not os.access(node, os.R_OK | os.W_OK):
        reason = message("you do not have permission to use {node}", node=node)
        fix = message("ask an administrator to add you to the group that owns {node}, then log in again", node=node)
    elif node is not None and hidden is not None and hidden.strip() in ("", "-1"):
        reason, fix = message("CUDA_VISIBLE_DEVICES hides every GPU"), "unset CUDA_VISIBLE_DEVICES"
    elif node is not None and "cuda" not in builds:
        reason = message("the installed PyTorch was built for CPUs only")
        fix = message("install a CUDA build of PyTorch: see pytorch.org/get-started")
    elif node is not None:
        reason = message("PyTorch cannot use the NVIDIA driver, which may be too old for it")
        fix = message("update NVIDIA's driver, then restart the computer")
    elif _AMD in vendors and "rocm" not in builds:
        reason = message("this computer has an AMD GPU, but the installed PyTorch was not built for ROCm")
        fix = message("install a ROCm build of PyTorch: see pytorch.org/get-started")
    else:
        reason = message("this computer has none that PyTorch can use, so it trains on the CPU")
        fix = message("small models train well on a CPU; for larger ones, use a computer with an NVIDIA GPU")
    return Finding("note", message("No GPU found: {reason}", reason=reason), fix, "device")


def _is_graphics_card(card: Path) -> bool:
    return _read(card / "class").startswith(_DISPLAYS)


def present(root: Path) -> set[str]:
    """`cuda` and `tpu`, if the system's files under `root` show one (Linux)."""
    found = set()
    if any((root / "dev" / name).exists() for name in ("nvidiactl", "dxg")):
        found.add("cuda")
    cards = (root / "sys" / "bus" / "pci" / "devices").glob("*")
    if any(_read(card / "vendor") == _GOOGLE and _read(card / "device") != _NETWORK for card in cards):
        found.add("tpu")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _own_requirements(engine: EngineEntry) -> list[str]:
    """What an engine requires besides the common requirements."""
    shared = {"transformers", "safetensors"}
    return [name for name in registry.find("engine", engine.name, "hardware.engine").requires if name not in shared]


def version_of(distribution: str) -> str:
    """The installed version; empty if there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def pip(*wanted: str) -> str:
    """The command that installs extras of Burnish, or whole requirements such as `jax[tpu]`, in this environment."""
    named = [one if "[" in one or "=" in one else f"burnish[{one}]" for one in wanted]
    return f"{sys.executable} -m pip install {' '.join(repr(one) for one in named)}"
