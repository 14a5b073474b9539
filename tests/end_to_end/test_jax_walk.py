"""The walk of docs/jax.md: its files and commands, word by word, with the first pages of the novels."""

import json
import re
import shlex
from pathlib import Path

import pytest
from end_to_end.burnish_process import ROOT, Burnish, events_of

from backend.contract.resources import resource
from backend.contract.run.events import EvaluationFinished, ProgramCompiled, RunFinished
from backend.contract.run.folder import RunFolder

PAGE = ROOT / "docs" / "jax.md"
CHARACTERS = 40_000
"""Of each novel; the walk itself has all of them."""


def blocks(kind: str) -> list[str]:
    walk = PAGE.read_text(encoding="utf-8").partition("## Tutorial: train a small OPT")[2].partition("\n## ")[0]
    return re.findall(rf"```{kind}\n(.*?)```", walk, re.DOTALL)


def commands() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]


def perplexities(folder: Path) -> list[float]:
    found = [event for event in events_of(RunFolder(folder)) if isinstance(event, EvaluationFinished)]
    return [event.metrics["perplexity"] or 0 for event in found if event.split == "validation"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_walk_leads_where_it_says(burnish: Burnish):
    home = burnish.home
    (home / "novels").mkdir()
    for novel in resource("demo", "austen").glob("*.txt"):
        (home / "novels" / novel.name).write_text(novel.read_text(encoding="utf-8")[:CHARACTERS], encoding="utf-8")
    (home / "opt.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    said = []
    for program, *arguments in commands():
        assert program == "burnish"
        done = burnish(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        said.append((arguments, done.stdout))
        if arguments[:2] == ["tokenizer", "train"]:
            (home / "opt-small" / "config.json").write_text(blocks("json")[0], encoding="utf-8")

    by_jax, by_torch = perplexities(home / "opt-run"), perplexities(home / "opt-torch")
    assert by_jax[0] == pytest.approx(by_torch[0], rel=1e-4)  # the same weights, before any dropout
    assert by_jax[-1] < 0.6 * by_jax[0]
    assert by_jax[-1] == pytest.approx(by_torch[-1], rel=0.05)
    events = events_of(RunFolder(home / "opt-run"))
    assert any(isinstance(event, ProgramCompiled) for event in events)
    assert isinstance(events[-1], RunFinished)
    assert (home / "opt-run" / "predictions_test.csv").is_file()

    written = next(text for arguments, text in said if arguments[0] == "generate")
    assert len(written) > 100
    scored = [json.loads(text) for arguments, text in said if arguments[0] == "evaluate" and "--json" in arguments]
    assert scored[0]["metrics"]["perplexity"] == pytest.approx(scored[1]["metrics"]["perplexity"], rel=1e-4)
    assert scored[0]["rows"] == scored[1]["rows"] > 50
    assert scored[0]["timing"]["compile_seconds"] > 0
    assert scored[1]["timing"]["compile_seconds"] == 0
    assert all(one["timing"]["tokens_per_second"] > one["timing"]["rows_per_second"] > 0 for one in scored)
    words = next(text for arguments, text in said if arguments[0] == "evaluate")
    assert re.search(r"rows in .* s, .* rows/s, .* tokens/s; start-up .* s, compiling .* s", words)
    assert re.search(r"jax cpu 0", next(text for arguments, text in said if arguments[0] == "describe"))


def test_the_walk_has_its_steps():
    verbs = [arguments[1] for arguments in commands()]
    assert verbs == ["tokenizer", "describe", "plan", "train", "generate", "export", *["evaluate"] * 3, "train"]
