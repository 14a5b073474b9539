"""Measures tokenizing beside the tokenizers library: many rows, one text of 100,000 tokens, and texts of many megabytes.

    python tests/benchmarks/tokenizer_speed.py [TOKENIZER …] [--pairs 3] [--megabytes 10] [--json]

Rows: `tokenizers.encode_batch` of all lines with ids, masks and offsets read out, against ours, alternated, each side in
a process of its own with the same cores; the ratio of the medians counts, and ours writes an Arrow file besides. Memory is
what a process's peak grows by, for a file and for one four times as long. Text: what an answer costs beyond the call of
the tokenizer, and what the window takes to read it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

DEMO = ROOT / "resources" / "demo"
TOKENIZERS = ("bert-tiny", "austen-gpt2", "eng-spa-marian")
LIMITS = {"ratio": 0.9, "beyond_ms": 100.0, "load_ms": 100.0}
TOKENS = 100_000
LONGER = 4


def main() -> int:
    """Print one line per tokenizer; returns 1 where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", nargs="*", default=list(TOKENIZERS), metavar="TOKENIZER")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(SIDES[options.side](options.tokenizers[0], options.file)))
        return 0
    with tempfile.TemporaryDirectory(prefix="burnish-tokens-") as folder:
        small, large = Path(folder) / "small.txt", Path(folder) / "large.txt"
        write(small, int(options.megabytes * 1e6))
        write(large, int(options.megabytes * LONGER * 1e6))
        results = {name: measured(name, small, large, options.pairs) for name in options.tokenizers}
    broken = [
        f"{name}: {key} {found[key]}" for name, found in results.items() for key in LIMITS if is_broken(found, key)
    ]
    if options.json:
        print(json.dumps({**results, "broken": broken}))
    else:
        for name, found in results.items():
            print(f"{name:18}", "  ".join(f"{key} {value}" for key, value in found.items()))
        print("\n".join(broken) or "every limit holds")
    return 1 if broken else 0


def is_broken(found: dict[str, float], key: str) -> bool:
    """A ratio is to be at least its limit, a time below it."""
    return found[key] < LIMITS[key] if key == "ratio" else found[key] >= LIMITS[key]


def measured(name: str, small: Path, large: Path, pairs: int) -> dict[str, float]:
    rounds = [(child("library", name, small), child("ours", name, small)) for _ in range(pairs)]
    library = statistics.median(one["seconds"] for one, _ in rounds)
    ours = statistics.median(one["seconds"] for _, one in rounds)
    longer, text = child("ours", name, large), child("text", name, small)
    return {
        "ratio": round(library / ours, 2),
        "tokens_per_second": round(rounds[0][1]["tokens"] / ours),
        "memory_mb": round(statistics.median(one["memory_mb"] for _, one in rounds), 1),
        "memory_mb_of_a_longer_file": round(longer["memory_mb"], 1),
        "library_memory_mb": round(statistics.median(one["memory_mb"] for one, _ in rounds), 1),
        **text,
        **{f"blocks_{key}": value for key, value in child("blocks", name, small).items()},
    }


def child(side: str, name: str, file: Path) -> dict[str, float]:
    """One side's numbers, from a process of its own."""
    command = [sys.executable, __file__, name, "--side", side, "--file", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write(path: Path, size: int) -> None:
    """Novels, as often as it takes."""
    texts = [one.read_text(encoding="utf-8") for one in sorted((DEMO / "austen").glob("*.txt"))]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            for text in texts:
                file.write(text)
        file.truncate(size)


# The sides


def opened(name: str) -> Any:
    from backend.tokenizers.loading import open_tokenizer

    return open_tokenizer(str(DEMO / name) if (DEMO / name).is_dir() else name)


def library(name: str, file: Path) -> dict[str, float]:
    tokenizer = opened(name).backend_tokenizer
    tokenizer.encode_batch(["warm up"] * 4)
    with Watch() as watch:
        lines = file.read_text(encoding="utf-8", errors="ignore").splitlines()
        told = [(one.ids, one.attention_mask, one.offsets) for one in tokenizer.encode_batch(lines)]
    return {"seconds": watch.seconds, "memory_mb": watch.memory_mb, "tokens": sum(len(ids) for ids, _, _ in told)}


def ours(name: str, file: Path) -> dict[str, float]:
    from backend.contract.tokens.options import TokenOptions
    from backend.tokenizers import tokenize_file

    tokenizer = opened(name)
    tokenizer.backend_tokenizer.encode_batch(["warm up"] * 4)
    with tempfile.TemporaryDirectory() as folder, Watch() as watch:
        _, tokens = tokenize_file.write(tokenizer, file, Path(folder) / "tokens.arrow", TokenOptions(), lambda *_: None)
    return {"seconds": watch.seconds, "memory_mb": watch.memory_mb, "tokens": tokens}


def text(name: str, file: Path) -> dict[str, float]:
    from app.services.backend_client import ArrowAnswer
    from app.services.token_answers import token_table
    from backend.contract.tokens.tokens import TokenizeQuestion
    from backend.tokenizers import answers

    tokenizer = opened(name)
    whole = file.read_text(encoding="utf-8", errors="ignore")[: TOKENS * 8]
    end = next(one for one in tokenizer.backend_tokenizer.encode(whole).offsets[TOKENS::-1] if one[1])[1]
    part, calls, answered, load = whole[:end], [], [], []
    for _ in range(5):
        with Watch() as call:
            tokenizer.backend_tokenizer.encode(part)
        with Watch() as all_of_it:
            answer = answers.answer_tokenize(tokenizer, TokenizeQuestion(tokenizer=name, text=part), lambda *_: None)
        assert isinstance(answer, dict)
        with Watch() as reading:
            table = token_table(ArrowAnswer(answer["arrow"]))
            assert len(table.ids) == len(table)
        calls.append(1000 * call.seconds)
        answered.append(1000 * all_of_it.seconds)
        load.append(1000 * reading.seconds)
    return {"beyond_ms": round(min(answered) - min(calls), 1), "load_ms": round(min(load), 1)}


def blocks(name: str, file: Path) -> dict[str, float]:
    from backend.tokenizers.long_text import Stream
    from backend.tokenizers.text import File

    tokenizer = opened(name)
    with Watch() as watch:
        stream = Stream(tokenizer, File(str(file)), True)
        for _ in stream.arrays(lambda *_: None):
            pass
    return {"seconds": round(watch.seconds, 2), "memory_mb": round(watch.memory_mb, 1)}


class Watch:
    """Seconds, and the megabytes by which the process's peak grew."""

    def __enter__(self) -> "Watch":
        self._peak, self._start = self._megabytes(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.memory_mb = self._megabytes() - self._peak

    def _megabytes(self) -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


SIDES = {"library": library, "ours": ours, "text": text, "blocks": blocks}

if __name__ == "__main__":
    sys.exit(main())
