"""Saves the user's preferences in one versioned file in the configuration folder, which several windows may share."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from backend.contract import places
from backend.contract.run.folder import write_json
from backend.contract.run.lock import changing

VERSION = 1
RECENT = 12
"""How many recent models are remembered."""


@dataclass
class Preferences:
    """The user's preferences. Change a value with `set` or `change`, which write only that value."""

    theme: str = "system"
    text_size: int = 13
    """Pixels of plain text; one that the theme does not know is not followed."""
    language: str = "system"
    """A code such as `de`, or `system` for that of the desktop."""
    runs_folder: str = ""
    cache_folder: str = ""
    offline: bool = False
    csv_defuse: bool = False
    csv_bom: bool = False
    plot_axis: str = "step"
    plot_smoothing: str = "medium"
    desktop_messages: bool = True
    rows_file: str = ""
    """The CSV file that rows of the Try box are added to."""
    tour_seen: bool = False
    recent_models: list[str] = field(default_factory=list)
    made_tokenizers: list[Any] = field(default_factory=list)
    """Tokenizers that were made in the window; `made_tokenizers.py` says what is kept of each."""
    path: Path | None = None
    damaged: Path | None = None
    """Where an unreadable settings file was put aside, if there was one."""

    def set(self, name: str, value: Any) -> None:
        """Change one value and write it."""
        self.change(name, lambda _: value)

    def change(self, name: str, change: Callable[[Any], Any]) -> None:
        """Write what `change` makes of the value currently in the file; other windows' changes are kept."""
        assert name in _KINDS, name
        path = self.path or default_path()
        own = {name: value for name, value in asdict(self).items() if name in _KINDS}
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with changing(path):
            stored = _read_stored(path)
            value = change({**own, **_usable(stored or {})}[name])
            write_json(path, {**(own if stored is None else stored), "version": VERSION, name: value}, mode=0o600)
        setattr(self, name, value)

    def remember_model(self, name_or_path: str) -> None:
        """Put a model at the top of the recent ones."""
        self.change("recent_models", lambda recent: _first(name_or_path, recent))

    def runs_path(self) -> Path:
        """The runs folder."""
        return Path(self.runs_folder).expanduser() if self.runs_folder else places.runs_folder()

    def cache_path(self) -> Path:
        """The cache folder."""
        return Path(self.cache_folder).expanduser() if self.cache_folder else places.cache_folder()

    def environment(self) -> dict[str, str]:
        """The environment variables for backend processes."""
        known = {"BURNISH_RUNS": str(self.runs_path()), "BURNISH_CACHE": str(self.cache_path())}
        return {**known, "HF_HUB_OFFLINE": "1"} if self.offline else known

    def chosen_environment(self) -> dict[str, str]:
        """Those that differ from what a terminal has."""
        chosen = {"BURNISH_RUNS": self.runs_folder, "BURNISH_CACHE": self.cache_folder}
        known = self.environment()
        offline = {"HF_HUB_OFFLINE": "1"} if self.offline else {}
        return {**offline, **{name: known[name] for name, value in chosen.items() if value}}


def default_path() -> Path:
    """The path of this user's preferences file."""
    return places.config_folder() / "preferences.json"


def load(path: Path | None = None) -> Preferences:
    """The stored settings. A damaged file is moved aside, for the defaults; a value of the wrong type is dropped."""
    path = path or default_path()
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("no mapping")
    except FileNotFoundError:
        return Preferences(path=path)
    except (OSError, ValueError):
        return Preferences(path=path, damaged=_put_aside(path))
    return Preferences(**_usable(values), path=path)


def _read_stored(path: Path) -> dict[str, Any] | None:
    """The file's content, including values from a newer version; None if there is nothing to keep."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def _put_aside(path: Path) -> Path | None:
    aside = path.with_name(f"{path.stem}.damaged-{int(time.time())}{path.suffix}")
    try:
        path.replace(aside)
    except OSError:
        return None
    return aside


def _usable(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name, kind in _KINDS.items() if isinstance(values.get(name), kind)}


def _first(item: str, items: list[str]) -> list[str]:
    return [item, *(other for other in items if other != item)][:RECENT]


_KINDS = {
    one.name: type(getattr(Preferences(), one.name))
    for one in fields(Preferences)
    if one.name not in ("path", "damaged")
}
