"""Collecting texts reads the checkout that it is started in, whichever one is installed."""

import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "packaging" / "texts.py"


def test_texts_are_those_of_the_script_s_own_checkout(tmp_path: Path) -> None:
    core = tmp_path / "app" / "core"
    core.mkdir(parents=True)
    for package in (core.parent, core):
        (package / "__init__.py").touch()
    (core / "i18n.py").write_text("raise SystemExit(__file__)")
    (tmp_path / "packaging").mkdir()
    script = shutil.copy(SCRIPT, tmp_path / "packaging")

    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.stderr.strip() == str(core / "i18n.py")
