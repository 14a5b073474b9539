"""The window never loads a training framework, and its first paint waits for no plotting or table library."""

import subprocess
import sys
from pathlib import Path

LEFT_TO_THE_BACKEND = {"pydantic"}
"""What checks a spec; it takes 0.15 s to load."""
FRAMEWORKS = {"torch", "transformers", "datasets", "jax", "flax", "accelerate", "sklearn"}
AFTER_FIRST_PAINT = {"numpy", "pyqtgraph", "pyarrow", "pydantic", "jsonschema", "msgspec", "ruamel.yaml"}

WALK = """
import importlib, pkgutil, sys
import app
names = [module.name for module in pkgutil.walk_packages(app.__path__, "app.") if module.name != "app.__main__"]
for name in [*names, "app.__main__"]:
    importlib.import_module(name)
print(len(names))
print(*sorted(name for name in sys.modules if "." not in name))
"""

PAINT = """
import sys
from PySide6.QtWidgets import QApplication
from app import theme
from app.core import preferences
from app.main_window import MainWindow
import app.__main__
application = QApplication([])
theme.apply(application, "system")
window = MainWindow(preferences.load())
window.first_painted.connect(lambda: (print(*sorted(sys.modules)), application.quit()))
window.show()
application.exec()
"""


def last_line(root: Path, code: str) -> tuple[list[str], set[str]]:
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines, set(lines[-1].split())


def test_no_module_of_the_window_loads_a_framework_or_checks_a_spec_itself(root: Path):
    lines, loaded = last_line(root, WALK)
    assert int(lines[0]) > 40
    assert "PySide6" in loaded
    assert loaded & (FRAMEWORKS | LEFT_TO_THE_BACKEND) == set()


def test_first_paint_waits_for_nothing_heavy(root: Path):
    _, loaded = last_line(root, PAINT)
    assert "app.main_window" in loaded
    assert loaded & (AFTER_FIRST_PAINT | FRAMEWORKS) == set()
    assert not {name for name in loaded if name.startswith(("app.pages.", "app.services."))}
