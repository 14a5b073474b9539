"""Scores the demo models that Burnish trained, and n-grams and copying: `python -m docs.results --demo-models`.

They are made by

    burnish train resources/recipes/austen.yaml --run-folder austen
    burnish export austen --model resources/demo/austen-gpt2 --dtype float16
    burnish train resources/recipes/eng-spa.yaml --run-folder eng-spa
    burnish export eng-spa --model resources/demo/eng-spa-marian --dtype float16
    python -m docs.results.curves austen eng-spa

and measured as they are shipped.
"""

import json
import math
import subprocess
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from backend.contract.processes import python_command
from docs.results.baselines import KneserNey

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "resources" / "demo"
NOVELS = ("emma", "mansfieldpark", "northangerabbey", "prideprejudice", "sensesensibility")
ORDERS = (2, 3, 4)


def measured() -> dict[str, dict[str, float]]:
    """Scores by model."""
    return {"austen-gpt2": _language_model(), "eng-spa-marian": _translator()}


def section(figures: dict[str, dict[str, float]]) -> list[str]:
    """The lines of the page."""
    novels, verses = figures["austen-gpt2"], figures["eng-spa-marian"]
    n_grams = ", ".join(f"{order}-grams {novels[f'{order}-gram']:.1f}" for order in ORDERS)
    return [
        "## The demo models",
        "",
        "Trained from scratch with `resources/recipes`, including their tokenizers, and measured as shipped, in float16 files",
        "under 10 MB. The n-grams (interpolated Kneser-Ney) use the same tokens and the same five novels.",
        "",
        "| model | data | score | trivial rule |",
        "|---|---|---|---|",
        f"| austen-gpt2, {novels['parameters'] / 1e6:.2f} M parameters | *Persuasion*, after the other five novels | "
        f"perplexity **{novels['perplexity']:.1f}** | {n_grams} |",
        f"| eng-spa-marian, {verses['parameters'] / 1e6:.2f} M parameters | {verses['rows']:.0f} Bible verses, English to Spanish | "
        f"BLEU **{verses['bleu']:.1f}**, chrF **{verses['chrf']:.1f}** | the English itself: BLEU {verses['copied_bleu']:.1f}, "
        f"chrF {verses['copied_chrf']:.1f} |",
        "",
        "![Loss of the language model](results/austen.svg)",
        "![Loss of the translator](results/eng-spa.svg)",
        "",
        "For the commands, see `docs/results/demo_models.py`. The verses are those of Mark, James and Ruth. Mark shares many",
        "verses with Matthew and Luke, which are in the training data, so the translator scores better than it would on an",
        "independent book.",
    ]


def _language_model() -> dict[str, float]:
    from transformers import AutoTokenizer  # heavy

    tokenizer = AutoTokenizer.from_pretrained(DEMO / "austen-gpt2", local_files_only=True)

    def tokens(novel: str) -> list[int]:
        lines = (DEMO / "austen" / f"{novel}.txt").read_text(encoding="utf-8").split("\n")
        return list(chain.from_iterable(tokenizer([f"{line}\n" for line in lines])["input_ids"]))

    train, test = list(chain.from_iterable(map(tokens, NOVELS))), tokens("persuasion")
    found = _evaluated("austen-gpt2", DEMO / "austen" / "persuasion.txt")
    n_grams = {f"{order}-gram": KneserNey(train, len(tokenizer), order).perplexity(test) for order in ORDERS}
    return {"perplexity": found["perplexity"], "parameters": _parameters("austen-gpt2"), **n_grams}


def _translator() -> dict[str, float]:
    found = _evaluated("eng-spa-marian", DEMO / "eng-spa" / "test.src", "data.source=parallel")
    english, spanish = ((DEMO / "eng-spa" / f"test.{side}").read_text(encoding="utf-8") for side in ("src", "trg"))
    return {
        "bleu": found["bleu"],
        "chrf": found["chrf"],
        "parameters": _parameters("eng-spa-marian"),
        "rows": len(spanish.splitlines()),
        **_copied(english.splitlines(), spanish.splitlines()),
    }


def _copied(sources: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    from sacrebleu import BLEU, CHRF  # heavy

    return {
        "copied_bleu": BLEU().corpus_score(sources, [references]).score,
        "copied_chrf": CHRF().corpus_score(sources, [references]).score,
    }


def _evaluated(model: str, data: Path, *changes: str) -> dict[str, Any]:
    command = python_command("backend", "evaluate", str(DEMO / model), "--data", str(data), "--json")
    done = subprocess.run(
        [*command, *chain.from_iterable(("--set", change) for change in changes)],
        cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])["metrics"]


def _parameters(model: str) -> int:
    from safetensors import safe_open  # heavy

    with safe_open(DEMO / model / "model.safetensors", "np") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (no mapping)
