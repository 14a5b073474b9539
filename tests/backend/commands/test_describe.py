"""Tests that the catalog is whole, loads no framework, and notices when what it lists has changed."""

import json
import os
import subprocess
import sys
from pathlib import Path


def test_catalog_lists_tasks_with_their_settings(burnish) -> None:
    found = json.loads(burnish("describe", "--json", "--no-devices").stdout)

    tasks = {task["name"]: task for task in found["tasks"]}
    assert {"text_classification", "causal_lm"} <= tasks.keys()
    assert "max_length" in tasks["text_classification"]["settings"]["properties"]
    assert "training" in found["spec"]["properties"]
    assert found["devices"] is None


def test_devices_are_part_of_it_when_asked(burnish) -> None:
    found = json.loads(burnish("describe", "--json").stdout)

    assert found["devices"][-1]["kind"] == "cpu"


def test_no_framework_is_loaded(tmp_path: Path) -> None:
    script = (
        "import sys; from backend import catalog\n"
        "for turn in ('made', 'kept'):\n"
        "    found = catalog.catalog()\n"
        "    assert found.tasks and found.engines\n"
        "    print(turn, {'torch', 'jax', 'transformers', 'datasets', 'accelerate', 'flax'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "BURNISH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == ["made set()", "kept set()"]


def test_damaged_catalog_on_disk_is_made_anew(burnish, tmp_path: Path) -> None:
    first = burnish("describe", "--json", "--no-devices", BURNISH_CACHE=str(tmp_path))
    (kept,) = tmp_path.glob("catalog-*.json")
    kept.write_bytes(kept.read_bytes()[:100])

    assert burnish("describe", "--json", "--no-devices", BURNISH_CACHE=str(tmp_path)).stdout == first.stdout


def test_words_list_every_engine(burnish) -> None:
    assert "torch" in burnish("describe", "--no-devices").stdout
