"""The whole window in another language: nothing is left in English, and nothing is cut off at 1280×800 and 800×600. Each walk is a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.window_walk import unmarked

ROOT = Path(__file__).parents[2]

ALLOWED = (
    r"/\S+",
    r"[\w·:|, .\-/()%…→\u202f]*(csv|sentiment|reviews|bert-tiny|BertModel|gpt2|apache-2\.0|float(16|32)|cpu)[\w·:|, .\-/()%…→⏎\n\u202f]*",
    r"[a-z]+: [\d\u202f]+( · [a-z]+: [\d\u202f]+)*", r"[A-Z][a-z]+ \([\d\u202f]+\)", r"(Ctrl|Alt)\S+(, (Ctrl)?\S+)*", r"Probability \w+",
    r"torch .*", r"WordPiece.*", r"<span.*", r"Export\.\.\.", r".*:\s*(Ctrl\S+|Del)(, Ctrl\S+)*", r"English|Deutsch|Restart Burnish",
    r"unset \w+", r"burnish train .*", r"The device ran out of memory at step 313 .*", r"Burnish switches to English .*",
    r"imdb|Del|[a-z]+(_[a-z]+)+", r"text · .+…", r"(text|label|source)[ \d,.:%]*", r".* · 2026-\S+",
)  # fmt: skip
"""What stands outside a catalogue by right: names, values, versions, keys, and what no backend says any more; told by
patterns of the whole text."""
CHOICES = ("QuietComboBox.item", "RowTable.header", "TextTable.header", "QAction")
"""Where one word may be a value of a spec, or a column of data."""


def walked(mode: str, home: Path, *more: str) -> dict[str, str]:
    """Text → where, of one walk."""
    command = [sys.executable, "-m", "tests.app.window_walk", mode, str(home), *more]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def is_allowed(text: str, where: str) -> bool:
    """Whether a text is not the window's own."""
    rest = unmarked(text).strip(" \n·;:,.")
    if where.startswith("settings: QLabel") and re.fullmatch(r"[\w-]+|([\w-]+ )?\d\S*", rest):
        return True  # packages and their versions
    if where.endswith(CHOICES) and re.fullmatch(r"[\w.+-]+", rest):
        return True
    return any(re.fullmatch(pattern, rest, re.DOTALL) for pattern in ALLOWED)


@pytest.mark.slow
def test_every_text_of_the_window_is_looked_up(tmp_path: Path):
    found = walked("marked", tmp_path)
    assert len(found) > 50, "the walk sees names and values at least"
    assert {text: where for text, where in found.items() if not is_allowed(text, where)} == {}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["cut", "cut-en"], ids=["German", "English"])
def test_no_words_are_cut_off(tmp_path: Path, mode: str):
    assert walked(mode, tmp_path) == {}
