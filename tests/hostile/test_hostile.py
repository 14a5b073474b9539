"""Every hostile input gets one sentence and its exit code, in bounded time and memory; the slow test tries all commands."""

import gc
import importlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.tokenizers.loading import open_tokenizer
from tests import in_process
from tests.hostile import data_files, specs
from tests.hostile.case import COMMANDS, MODEL, ROWS, Hostile
from tests.hostile.model_folders import model_folders

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each input is tried in a fork, which has limits of its own"),
]

MODULES = (specs, data_files)
CASES = tuple(case for module in MODULES for case in module.CASES)
FOLDERS = tuple(Hostile(name, "model", make) for name, make in model_folders())
"""Tried once in test_model_folders, and here with every command."""
SECONDS = 60
MEMORY = 2 << 30
"""Bytes of address space beyond what the libraries have taken."""
LIBRARIES = [
    "pyarrow.parquet",
    "transformers",
    "backend.__main__",
    "backend.catalog_building",
    "backend.commands.tokenize_output",
    "backend.hardware.devices",
    "backend.inference.interactive",
    "backend.inference.predict",
    "backend.inspect.batch_preview",
    "backend.inspect.column_texts",
    "backend.inspect.data_report",
    "backend.inspect.pretokenize",
    "backend.inspect.recognition",
    "backend.preflight.cost",
    "backend.tokenizers.compare",
    "backend.tokenizers.train",
]
LASTING = {"a template that loops"}
"""Takes the whole five seconds that a chat may; that they end is shown in one by tests/backend/models/test_chat_rendering.py."""
LONGEST = 1100
"""Characters of the last message: the command line shortens at 1,000, and a run's name may stand before."""
WRONG = ("unexpected", "hang", "memory", "no sentence")


def tried(arguments: list[str], folder: Path, seconds: int = SECONDS) -> tuple[str, int, str]:
    """What a command did: the kind of its outcome, its exit code, and what it said on stderr."""
    said = folder.parent / f"{folder.name}.said"
    child = os.fork()
    if child == 0:
        _run(arguments, folder, said, seconds)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    words = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    return _outcome(code, words), code, words


def _run(arguments: list[str], folder: Path, said: Path, seconds: int) -> None:
    """In the fork: what a command of its own process would do, but that the libraries are loaded already."""
    import resource

    code = 99
    try:
        gc.freeze()  # to look at what other tests have loaded would copy gigabytes
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        used = (
            int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            if sys.platform == "linux"
            else 0
        )
        if used:
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        os.chdir(folder)
        os.environ.update(BURNISH_RUNS=str(folder.parent / "runs"), BURNISH_CACHE=str(folder.parent / "cache"))
        nothing = os.open(os.devnull, os.O_RDWR)
        target = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(nothing, 0), os.dup2(nothing, 1), os.dup2(target, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        from backend.__main__ import main

        code = main(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        sys.stderr.write(f"left main: {error!r}\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _outcome(code: int, words: str) -> str:
    if code == -signal.SIGALRM:
        return "hang"
    if code < 0 or code > 2 or "failed unexpectedly" in words or "Traceback" in words:
        return "unexpected"
    if "not enough memory" in words:
        return "memory"
    if code and not is_sentence(last_message(words)):
        return "no sentence"
    return {0: "accepted", 1: "sentence and 1", 2: "sentence and 2"}[code]


def last_message(words: str) -> str:
    """What a command says at its end, on a line of its own; progress and notes stand before."""
    return words.removesuffix("\n").rsplit("\n", 1)[-1].rsplit("\r", 1)[-1]


def is_sentence(line: str) -> bool:
    """Whether it is whole words of bounded length, from its beginning to its end, and nothing that a program prints of itself."""
    is_whole = line == line.strip() and line.count(" ") >= 3 and line[-1:] not in {":", ",", ";", "…"}
    return is_whole and len(line) < LONGEST and line.replace("\t", " ").isprintable()


def _argv(command: tuple[str, ...], given: str) -> list[str]:
    return [part.replace("{}", given) for part in command]


def _with_spec(folder: Path) -> None:
    """An ordinary spec beside, for commands whose model or setting alone is hostile."""
    from backend.contract import spec_file
    from backend.contract.resources import resource

    values = spec_file.read(resource("demo", "sentiment.yaml"))
    values["model"]["name_or_path"] = str(resource("demo", "bert-tiny"))
    for split in ("train", "validation"):
        values["data"][split] = str(resource("demo", "sentiment", f"{split}.csv"))
    (folder / "spec.yaml").write_text(spec_file.dump(values))


def _made(case: Hostile, tmp_path: Path) -> tuple[Path, str]:
    folder = tmp_path / "input"
    folder.mkdir()
    given = str(case.make(folder))
    if case.kind in ("model", "setting"):
        _with_spec(folder)
    return folder, given


@pytest.fixture(scope="module", autouse=True)
def libraries(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Loaded once, as far as commands load them before they refuse: a fork has them, and would need two seconds for each input."""
    for name in LIBRARIES:
        importlib.import_module(name)
    open_tokenizer(MODEL)
    for command in (("data", "report", "nothing.csv"), ("plan", "nothing.yaml"), ("data", "report", ROWS)):
        in_process.call(list(command), tmp_path_factory.mktemp("here"), os.environ)


def name_of(case: Hostile) -> str:
    """What a test is called by."""
    return f"{case.kind}: {case.name}"[:80].encode("ascii", "replace").decode()


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if case.name in LASTING else []) for case in CASES],
    ids=name_of,
)
def test_likeliest_command_answers_in_one_sentence(case: Hostile, tmp_path: Path):
    folder, given = _made(case, tmp_path)
    outcome, code, words = tried(_argv(case.likeliest, given), folder)
    expected = {0: "accepted", 1: "sentence and 1", 2: "sentence and 2"}[case.code]
    assert outcome == expected, f"{outcome}, exit code {code}: {words[-600:]}"
    assert case.words in words
    assert "\x1b" not in words


@pytest.mark.parametrize(
    "line",
    ["", "x.csv:", "Traceback (most recent call last):", '  File "x.py", line 3, in f', "KeyError", "a b c d " * 200],
)
def test_what_is_no_sentence_is_not_taken_for_one(line: str):
    assert _outcome(2, f"loading the model\n{line}\n") in ("no sentence", "unexpected")


@pytest.fixture(scope="module")
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Outcomes of the full matrix, printed when it is through (by each worker, where there are several)."""
    found: Counter[str] = Counter()
    begun = time.monotonic()
    yield found
    if found:
        table = "".join(f"  {outcome:<16}{count:>6}\n" for outcome, count in sorted(found.items()))
        capture: Any = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            sys.stdout.write(f"\n{found.total()} trials of hostile inputs, {time.monotonic() - begun:.0f} s\n{table}")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", [*CASES, *FOLDERS], ids=name_of)
def test_no_command_fails_on_a_hostile_input(case: Hostile, tmp_path: Path, counts: Counter[str]):
    wrong: list[str] = []
    for name, command in COMMANDS[case.kind].items():
        place = tmp_path / name.replace(" ", "-")
        place.mkdir()
        folder, given = _made(case, place)
        outcome, code, words = tried(_argv(command, given), folder, seconds=120)
        counts[outcome] += 1
        if outcome in WRONG:
            wrong.append(f"{outcome} ({code}): {name} with {case.name}: {words.strip()[-300:]}")
    assert wrong == [], "\n".join(wrong)
