"""Tests that the helper answers in whatever order, one question never delays or breaks another, and it leaves nothing."""

import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from backend import process_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="stops and looks at processes")


def stopped_worker(helper, until) -> int:
    """The worker that waits for the first question, put to sleep: whatever it is asked now is slow."""
    until(lambda: len(helper.workers()) == 1)
    (worker,) = helper.workers()
    os.kill(worker, signal.SIGSTOP)
    return worker


def test_catalog_is_answered(shared_helper) -> None:
    assert {task["name"] for task in shared_helper.answer("catalog")["tasks"]} >= {"text_classification", "causal_lm"}


def test_workers_let_the_window_go_first(shared_helper) -> None:
    shared_helper.answer("catalog")

    assert all(psutil.Process(worker).nice() > psutil.Process().nice() for worker in shared_helper.workers())


def test_tokens_and_text_go_there_and_back(in_process_helper, tokenizer: str) -> None:
    found = in_process_helper.answer("tokenize", tokenizer=tokenizer, text="Hello, world")
    pieces = [found["pieces"][place] for place in found["columns"]["piece"]]

    assert [piece[1] for piece in pieces] == ["[CLS]", "hello", ",", "world", "[SEP]"]
    ids = [piece[0] for piece in pieces]
    decoded = in_process_helper.answer("decode", tokenizer=tokenizer, ids=ids)
    assert decoded["rows"][0]["without_special"] == "hello, world"


def test_slow_question_delays_no_other(helper, until) -> None:
    stopped_worker(helper, until)
    slow = helper.ask("catalog")

    assert helper.answer("catalog")["tasks"]

    helper.cancel(slow)
    assert helper.reply(slow)["error"]["message"] == "cancelled"


def test_cancelled_question_takes_its_process_along(helper, until) -> None:
    worker = stopped_worker(helper, until)
    slow = helper.ask("catalog")
    helper.cancel(slow)
    helper.reply(slow)

    until(lambda: worker not in {process.pid for process in process_tree.processes()})


def test_killed_worker_costs_one_answer(helper, until) -> None:
    worker = stopped_worker(helper, until)
    lost = helper.ask("catalog")
    # The helper has handed the question out once a later one is answered.
    helper.mistake("nonsense")
    os.kill(worker, signal.SIGKILL)

    assert "killed by signal 9" in helper.reply(lost)["error"]["message"]
    assert helper.answer("catalog")["tasks"]


def test_worker_that_dies_idle_does_not_end_the_helper(helper, until) -> None:
    helper.answer("catalog")
    (worker,) = helper.workers()
    # While the helper sleeps, the worker dies and a question comes, which may be handed to the dead one first.
    os.kill(helper.process.pid, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    until(lambda: worker not in {process.pid for process in process_tree.processes()})
    asked = helper.ask("catalog")
    os.kill(helper.process.pid, signal.SIGCONT)

    assert helper.reply(asked)
    assert helper.answer("catalog")["tasks"]


def test_same_tokenizer_is_asked_in_the_same_worker(shared_helper) -> None:
    shared_helper.mistake("tokenize", tokenizer="/nowhere/at/all", text="one")
    before = shared_helper.workers()

    shared_helper.mistake("tokenize", tokenizer="/nowhere/at/all", text="two")

    assert shared_helper.workers() == before


def test_mistake_names_the_field(in_process_helper) -> None:
    reply = in_process_helper.reply("tokenize", tokenizer="/nowhere/at/all", text="x")

    assert reply["error"]["field"] == "model.tokenizer"
    assert "/nowhere/at/all" in reply["error"]["message"]


def test_unknown_question_is_refused(shared_helper) -> None:
    assert "nonsense" in shared_helper.mistake("nonsense")


def test_missing_argument_is_named(in_process_helper) -> None:
    assert "'text'" in in_process_helper.mistake("tokenize", tokenizer="x")


def test_large_answer_is_an_arrow_file(in_process_helper, tokenizer: str) -> None:
    import pyarrow as pa

    answer = in_process_helper.answer("tokenize", tokenizer=tokenizer, text="good morning " * 20_000)

    with pa.memory_map(answer["arrow"]) as source:
        reader = pa.ipc.open_file(source)
        table = reader.read_all()
        last = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
        assert table.num_rows == 40_002
        assert {"piece", "sequence", "start", "end"} <= set(table.column_names)
        assert json.loads(last.custom_metadata[b"answer"])["tokens"] == 40_002
    os.unlink(answer["arrow"])  # noqa: PTH108


def test_large_comparison_is_one_line(shared_helper, tokenizer: str) -> None:
    text = "Hello, world\n" * 4_000
    found = shared_helper.answer("compare_text", tokenizers=[tokenizer, tokenizer], text=text)

    assert len(json.dumps(found)) > 1_000_000, "more than fits into a pipe at once"
    assert [len(found["tokens"]), found["lines"]] == [2 * (3 * 4_000 + 2), 4_001]


def test_closed_stdin_ends_the_helper_and_its_workers(helper, until) -> None:
    worker = stopped_worker(helper, until)
    helper.ask("catalog")

    assert helper.close() == 0
    assert worker not in {process.pid for process in process_tree.processes()}


def test_killed_helper_leaves_no_worker(helper, until) -> None:
    until(helper.workers)
    workers = helper.workers()

    helper.process.kill()
    helper.process.wait()

    until(lambda: not workers & {process.pid for process in process_tree.processes()})


def test_question_that_cannot_be_read_is_refused_by_its_number(helper) -> None:
    helper.process.stdin.write(b'{"id": 7, "query": 5, "arguments": {"text": "\xff"}}\n{"id": 8, "que\n')
    helper.process.stdin.write(b'{"id": 9, "query": "plan", "arguments": {"spec": ' + b"[" * 100_000 + b"\n")
    helper.process.stdin.write(b'{"id": 10, "query": "\xff"}\n')
    helper.process.stdin.flush()

    assert "cannot be read" in helper.reply(7)["error"]["message"]
    assert "cannot be read" in helper.reply(8)["error"]["message"]
    assert "cannot be read" in helper.reply(9)["error"]["message"]
    assert "cannot be read" in helper.reply(10)["error"]["message"]


@pytest.mark.parametrize("line", [b"what?\n", b'{"query": "catalog"}\n'])
def test_question_without_a_number_ends_the_helper_so_that_the_window_asks_again(helper, line: bytes) -> None:
    helper.process.stdin.write(line)
    helper.process.stdin.flush()

    assert helper.process.wait(timeout=60) == 0
    assert b"a question that cannot be read" in helper.process.stderr.read()


def test_worker_that_says_what_cannot_be_read_costs_one_answer(helper) -> None:
    for line in (b'{"id": NUMBER, "answ\n', b"\x00\xff\n", b'{"id": 99, "answer": 1}\n', b"[1]\n"):
        helper.answer("catalog")
        (worker,) = helper.workers()
        os.kill(worker, signal.SIGSTOP)
        lost = helper.ask("catalog")
        helper.mistake("nonsense")  # by now the question is handed out
        with answers_of(worker).open("wb", buffering=0) as pipe:
            pipe.write(line.replace(b"NUMBER", str(lost).encode()))

        assert "cannot be read" in helper.reply(lost)["error"]["message"]

    assert helper.answer("catalog")["tasks"]


def answers_of(worker: int) -> Path:
    """The pipe into which a worker writes: what is called its stdout by now is its stderr."""
    folder = Path(f"/proc/{worker}")
    known = {os.readlink(folder / "fd" / name) for name in ("0", "2")}  # noqa: PTH115 (a pipe's name is no path)
    return next(
        path
        for path in (folder / "fd").iterdir()
        if (name := os.readlink(path)).startswith("pipe:")  # noqa: PTH115
        and name not in known
        and int((folder / "fdinfo" / path.name).read_text().split()[3], 8) & os.O_ACCMODE == os.O_WRONLY
    )
