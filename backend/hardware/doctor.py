"""The checks of `burnish doctor`: what is needed, what is installed, and the exact command that fixes it."""

import ctypes
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from backend import registry
from backend.contract.messages import message
from backend.contract.places import cache_folder, runs_folder
from backend.contract.redaction import TOKEN_VARIABLES, token_file
from backend.hardware import doctor_engines
from backend.hardware.display import has_display
from backend.hardware.doctor_engines import Finding, State, pip, version_of

OLDEST_PYTHON = (3, 11)
QT_PIN = "6.10.3"
FREE_DISK_GB = 5.0
FREE_MEMORY_GB = 2.0
GB = 1e9
TRAINING = ("transformers", "tokenizers", "datasets")
"""What training needs with any engine."""
_QT_ALWAYS = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
}
"""Needed by every Qt window, even an offscreen one."""
_QT_X11 = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
_QT_WAYLAND = {"libwayland-cursor.so.0": "libwayland-cursor0", "libwayland-egl.so.1": "libwayland-egl1"}


def check_up(ask_devices: bool = True) -> Iterator[Finding]:
    """All checks, in display order; devices take seconds and come last."""
    yield _python()
    yield from _training_libraries()
    yield from doctor_engines.libraries()
    yield from _plugins()
    yield from _window()
    yield _display()
    yield from _caches()
    yield _login()
    yield _runs()
    yield from _check_disk_space()
    if ask_devices:
        yield from doctor_engines.devices()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Finding(
            "missing", message("Python {version} is too old", version=version), message("install Python 3.11 or newer")
        )
    return Finding("fine", message("Python {version} ({executable})", version=version, executable=sys.executable))


def _training_libraries() -> Iterator[Finding]:
    for name in TRAINING:
        version = version_of(name)
        if version:
            yield Finding("fine", f"{name} {version}")
        else:
            yield Finding("missing", message("{name} is not installed; training requires it", name=name), pip("torch"))


def _plugins() -> Iterator[Finding]:
    for problem in registry.problems():
        yield Finding("note", problem, message("repair or uninstall that package"))


def _window() -> Iterator[Finding]:
    # Without a display the window is not needed.
    lacking: State = "missing" if has_display() else "note"
    version = version_of("PySide6_Essentials")
    if importlib.util.find_spec("PySide6") is None:
        yield Finding(lacking, message("PySide6 is not installed; the window requires it"), pip("window"))
        return
    if version and version != QT_PIN:
        text = message(
            "PySide6 {version} is installed; Burnish is tested with {qt_pin}, and some other versions crash",
            version=version,
            qt_pin=QT_PIN,
        )
        yield Finding("note", text, f"{sys.executable} -m pip install PySide6-Essentials=={QT_PIN}")
    else:
        yield Finding("fine", f"PySide6 {version or ''}".strip())
    if version_of("pyqtgraph"):
        yield Finding("fine", message("pyqtgraph {value}", value=version_of("pyqtgraph")))
    else:
        yield Finding(lacking, message("pyqtgraph is not installed; the window requires it"), pip("window"))
    yield _qt_libraries()


def _qt_libraries() -> Finding:
    needed = _absent(_QT_ALWAYS)
    if os.environ.get("WAYLAND_DISPLAY"):
        for_display = _absent(_QT_WAYLAND)
    else:
        for_display = _absent(_QT_X11)
    if not needed and not for_display:
        return Finding("fine", message("the system libraries required by Qt are installed"))
    text = message("system libraries required by Qt are missing: {value}", value=", ".join([*needed, *for_display]))
    if not has_display():
        text = message("{text}; only the window needs them", text=text)
    return Finding("missing" if has_display() else "note", text, _install_command([*needed, *for_display]))


def _absent(libraries: dict[str, str]) -> list[str]:
    """The packages whose library the loader does not find; none on systems other than Linux."""
    if sys.platform != "linux":
        return []
    return [package for library, package in libraries.items() if not _loads(library)]


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _install_command(packages: list[str]) -> str:
    """The command that installs these packages on Debian and Ubuntu."""
    return f"sudo apt-get install --no-install-recommends {' '.join(packages)}"


def _display() -> Finding:
    if has_display():
        return Finding("fine", message("a display is available"))
    words = message("no display is available: the window cannot open, but every command works")
    return Finding("note", words, about="display")


def _caches() -> Iterator[Finding]:
    path, variable = hub_cache()
    yield Finding(
        "fine", message("models from the Hub are stored in {path} ({variable})", path=path, variable=variable)
    )
    for name in ("TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "PYTORCH_PRETRAINED_BERT_CACHE"):
        if os.environ.get(name):
            text = message("{name} is set, but it is no longer used; models are stored in {path}", name=name, path=path)
            yield Finding("note", text, f"unset {name}; export HF_HUB_CACHE={os.environ[name]}")
    yield Finding("fine", message("tables and features are stored in {cache_folder}", cache_folder=cache_folder()))


def hub_cache() -> tuple[Path, str]:
    """Where the hub library keeps models, and the variable that sets it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser(), message("set by {name}", name=name)
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub", message("set by HF_HOME")
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).expanduser() / "huggingface" / "hub", message("set by XDG_CACHE_HOME")
    return Path("~/.cache/huggingface/hub").expanduser(), message(
        "the default; set HF_HUB_CACHE or HF_HOME to change it"
    )


def _login() -> Finding:
    # Only whether there is one: the token itself is never read into a message.
    by_variable = next((name for name in TOKEN_VARIABLES if os.environ.get(name)), "")
    stored = token_file()
    if by_variable:
        return Finding("fine", message("{by_variable} contains a Hub token", by_variable=by_variable))
    if stored.is_file():
        return Finding("fine", message("you are signed in to the Hub ({stored})", stored=stored))
    return Finding(
        "fine", message("not signed in to the Hub; only needed for private and gated models (hf auth login)")
    )


def _runs() -> Finding:
    path = runs_folder()
    try:
        with tempfile.TemporaryFile(dir=_existing(path)):
            pass
    except OSError as error:
        fix = message("set BURNISH_RUNS to a folder that you can write to")
        return Finding(
            "missing", message("runs cannot be written to {path}: {strerror}", path=path, strerror=error.strerror), fix
        )
    by = message(" (set by BURNISH_RUNS)") if os.environ.get("BURNISH_RUNS") else ""
    return Finding("fine", message("runs are stored in {path}{by}", path=path, by=by))


def _check_disk_space() -> Iterator[Finding]:
    for title, path in (("runs", runs_folder()), (message("the Hub's models"), hub_cache()[0])):
        free = shutil.disk_usage(_existing(path)).free / GB
        state: State = "fine" if free >= FREE_DISK_GB else "note"
        yield Finding(
            state,
            message("{free:.1f} GB of disk space is free for {title}", free=free, title=title),
            "" if state == "fine" else message("free up some space"),
        )
    memory = psutil.virtual_memory()
    free = memory.available / GB
    text = message("{free:.1f} of {total:.1f} GB of memory is free", free=free, total=memory.total / GB)
    yield Finding("fine", text) if free >= FREE_MEMORY_GB else Finding("note", text, message("close other programs"))


def _existing(path: Path) -> Path:
    return next(parent for parent in (path, *path.absolute().parents) if parent.exists())
