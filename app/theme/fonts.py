"""Owns the two bundled typefaces."""

from PySide6.QtGui import QFontDatabase

from backend.contract.resources import resource

SANS = "Inter"
MONO = "JetBrains Mono"
_loaded: list[str] = []


def load_fonts() -> None:
    """Make the bundled fonts known to Qt, once a process; a file that Qt refuses leaves the system's font."""
    if _loaded:
        return
    for path in sorted(resource("fonts").glob("*.[ot]tf")):
        QFontDatabase.addApplicationFont(str(path))
        _loaded.append(path.name)
