"""A model answers typed rows in the form that it was trained on, stays open for the next question, and makes room for a run."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from backend.contract.errors import InputError
from backend.contract.places import cache_folder
from backend.contract.resources import resource
from backend.contract.rpc.generation import GenerationSettings, GenerationStopped
from backend.engines.torch.engine import TorchEngine
from backend.hardware import claims
from backend.inference import feedback_file, interactive, predict
from backend.tasks.question_answering import QuestionAnswering
from backend.tasks.token_classification import TokenClassification
from tests import in_process

CHANGES = ["task.rows=instructions", "task.template='Q {{ messages[0].content }} A'", "task.max_new_tokens=2"]

MODEL = str(resource("demo", "bert-tiny"))


@pytest.fixture(scope="module")
def answerer() -> interactive.InteractivePredictor:
    """The demo's encoder with a head that was drawn by chance."""
    return interactive.InteractivePredictor(
        MODEL, "text_classification", ['task.labels=["no","yes"]', "hardware.device=cpu"]
    )


def test_answer_has_the_columns_of_a_predictions_file(answerer: interactive.InteractivePredictor) -> None:
    row = answerer.answer([{"text": "a good film"}]).rows[0]

    assert list(row) == ["text", "prediction", "probability_no", "probability_yes"]
    assert row["probability_no"] + row["probability_yes"] == pytest.approx(1)


def test_untrained_head_is_said(answerer: interactive.InteractivePredictor) -> None:
    assert "its new head is random" in answerer.answer([{"text": "film"}]).note


def test_typed_label_is_the_actual_value(answerer: interactive.InteractivePredictor) -> None:
    assert answerer.answer([{"text": "film", "label": "yes"}]).rows[0]["actual"] == "yes"


def test_several_rows_are_answered_in_their_order(answerer: interactive.InteractivePredictor) -> None:
    texts = ["a much longer text about films", "short"]

    assert [row["text"] for row in answerer.answer([{"text": text} for text in texts]).rows] == texts


def test_second_text_changes_the_answer(answerer: interactive.InteractivePredictor) -> None:
    alone, pair = answerer.answer([{"text": "film"}]), answerer.answer([{"text": "film", "text_pair": "and book"}])

    assert alone.rows[0]["probability_no"] != pair.rows[0]["probability_no"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"txt": "film"}, "'txt' is not a column of this task; its columns are text, text_pair, label"),
        ({"text_pair": "film"}, "Text is empty; fill it in first"),
        ({"text": "   "}, "no text; enter something else"),
        (
            {"text": ["a", "film"]},
            "the column should contain text but contains lists or mappings, such as .'a', 'film'.; choose",
        ),
    ],
)
def test_row_that_cannot_be_answered_is_refused_in_a_sentence(
    answerer: interactive.InteractivePredictor, row: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        answerer.answer([row])


def test_typed_rows_leave_nothing_on_the_disk(
    answerer: interactive.InteractivePredictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    answerer.answer([{"text": "a text that nobody else asks for"}])

    assert not (cache_folder() / "features").exists()


def test_labels_are_invented_where_nobody_named_them() -> None:
    row = (
        interactive.InteractivePredictor(MODEL, "text_classification", ["hardware.device=cpu"])
        .answer([{"text": "x"}])
        .rows[0]
    )

    assert {"probability_LABEL_0", "probability_LABEL_1"} <= row.keys()


def test_language_model_continues_what_was_typed(writer: Path) -> None:
    pieces: list[str] = []

    answer = interactive.InteractivePredictor(str(writer), "causal_lm", ["hardware.device=cpu"]).answer(
        [{"text": "the film"}], {"max_new_tokens": 5, "sample": True, "seed": 3}, pieces.append
    )

    assert answer.rows[0]["prediction"] == "".join(pieces) != ""
    assert answer.note == ""


def test_decoding_setting_that_cannot_be_is_refused_by_its_name(writer: Path) -> None:
    with pytest.raises(InputError, match=r"task\.top_k"):
        interactive.InteractivePredictor(str(writer), "causal_lm", ["hardware.device=cpu"]).answer(
            [{"text": "film"}], {"top_k": 0}
        )


def test_helper_says_what_is_missing(in_process_helper) -> None:
    reply = in_process_helper.reply("answer", target=MODEL, task="text_classification", rows=[{}])

    assert reply["error"] == {"message": "Text is empty; fill it in first", "field": "text", "line": None, "fix": None}


def test_waiting_model_hears_of_a_run() -> None:
    heard = threading.Event()
    waiting = claims.ClaimWatcher(heard.set)

    claims.claim()

    assert heard.wait(60)
    waiting.stop()


def test_command_line_answers_in_json(burnish_lines, tmp_path: Path) -> None:
    lines, words = burnish_lines(
        "predict",
        MODEL,
        "--task",
        "text_classification",
        "--input",
        '{"text": "good"}',
        "--input",
        '{"text": "bad"}',
        "--append",
        str(tmp_path / "mine.csv"),
    )

    assert [json.loads(line)["text"] for line in lines] == ["good", "bad"]
    assert (tmp_path / "mine.csv").read_text(encoding="utf-8").startswith("text,prediction,label\ngood,")
    assert "its new head is random" in words


@pytest.fixture
def burnish_lines():
    """Runs the command line; what it said on stdout by line, and on stderr."""

    def run(*words: str) -> tuple[list[str], str]:
        done = in_process.call(list(words), Path.cwd(), os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    return run


def test_text_that_is_too_long_is_said_with_where_it_is_cut(answerer: interactive.InteractivePredictor) -> None:
    answer = answerer.answer([{"text": "word " * 200 + "end"}, {"text": "short"}])

    assert answer.cuts == [
        "Row 1 is 203 tokens long, but the model reads only 128: it reads up to “…ord word word "
        "word word word word word word word”."
    ]
    assert answer.memory_mb > 100


def test_answered_row_is_collected_under_its_parts(answerer: interactive.InteractivePredictor, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    row = answerer.answer([{"text": "a good film"}]).rows[0]

    answerer.collect(path, row, "yes")

    assert path.read_text(encoding="utf-8").splitlines() == [
        "text,prediction,label",
        f"a good film,{row['prediction']},yes",
    ]


def test_right_answer_must_stand_in_its_context(tmp_path: Path) -> None:
    roles = QuestionAnswering.columns
    row = {"question": "Who?", "context": "It was Ada.", "prediction": "It"}

    feedback_file.add(tmp_path / "mine.csv", roles, {}, row, "Ada")
    with pytest.raises(InputError, match="does not occur verbatim in the context"):
        feedback_file.add(tmp_path / "mine.csv", roles, {}, row, "Grace")

    assert '"{""text"": [""Ada""], ""answer_start"": [7]}"' in (tmp_path / "mine.csv").read_text(encoding="utf-8")


def test_each_word_needs_its_right_tag(tmp_path: Path) -> None:
    row = {"tokens": "Ada wrote", "prediction": "O O"}

    with pytest.raises(InputError, match="there are 2 words and 1 tags"):
        feedback_file.add(tmp_path / "mine.csv", TokenClassification.columns, {}, row, "B-PER")


def test_answer_that_is_stopped_leaves_the_model_open(writer: Path) -> None:
    answerer = interactive.InteractivePredictor(str(writer), "causal_lm", ["hardware.device=cpu"])
    row, settings, pieces = {"text": "the film"}, {"max_new_tokens": 20, "min_new_tokens": 20}, list[str]()
    whole = answerer.answer([row], settings).rows[0]["prediction"]

    with pytest.raises(GenerationStopped):
        answerer.answer([row], settings, pieces.append, lambda: len(pieces) > 1)

    assert whole.startswith("".join(pieces))
    assert answerer.answer([row], settings).rows[0]["prediction"] == whole


def test_stopped_batch_of_rows_raises_too(answerer: interactive.InteractivePredictor) -> None:
    with pytest.raises(GenerationStopped):
        answerer.answer([{"text": "a good film"}], stop_requested=lambda: True)


@pytest.fixture(scope="module")
def endless(writer: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same language model with room for a text that takes minutes."""
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("endless")
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(writer)
    tokenizer.save_pretrained(folder)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=20_000)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)


def ask_without_end(helper, model: str) -> int:
    """A question whose answer is being written."""
    endless_text = {"max_new_tokens": 10_000, "min_new_tokens": 10_000}
    asked = helper.ask("answer", target=model, task="causal_lm", rows=[{"text": "the film"}], settings=endless_text)
    while '"pieces"' not in helper.process.stdout.readline().decode():
        pass
    return asked


def test_model_stays_open_for_later_questions_and_after_a_stop_until_it_is_let_go(shared_helper, endless: str) -> None:
    question = {"target": endless, "task": "causal_lm", "rows": [{"text": "a"}], "settings": {"max_new_tokens": 3}}
    for target in shared_helper.answer("open_models")["targets"]:
        shared_helper.answer("let_go", target=target)
    assert shared_helper.answer("open_models") == {"targets": []}

    shared_helper.mistake("answer", **question | {"target": "nowhere"})
    first = shared_helper.answer("answer", **question)
    workers = shared_helper.workers()
    assert shared_helper.answer("open_models") == {"targets": [endless]}

    second = shared_helper.answer("answer", **question)
    assert second["rows"] == first["rows"]
    assert first["rows"][0]["prediction"]
    assert shared_helper.workers() <= workers, "the model was opened in another one"
    assert second["seconds"] < 1

    asked = ask_without_end(shared_helper, endless)
    shared_helper.cancel(asked)
    assert shared_helper.reply(asked)["error"]["message"] == "cancelled"
    assert shared_helper.answer("answer", **question)["rows"] == first["rows"]
    assert shared_helper.workers() <= workers, "the stop ended the model"
    assert shared_helper.answer("open_models") == {"targets": [endless]}

    workers = shared_helper.workers()
    assert shared_helper.answer("let_go", target=endless) == {"targets": []}
    assert len(shared_helper.workers()) == len(workers) - 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="puts a process to sleep")
def test_model_that_does_not_stop_in_time_is_ended(helper, endless: str) -> None:
    asked = ask_without_end(helper, endless)
    (worker,) = helper.workers()
    os.kill(worker, signal.SIGSTOP)

    helper.cancel(asked)
    assert helper.reply(asked)["error"]["message"] == "cancelled"
    next_question = {"target": endless, "task": "causal_lm", "rows": [{"text": "a"}], "settings": {"max_new_tokens": 3}}

    assert helper.answer("answer", **next_question)["rows"][0]["prediction"]
    assert worker not in helper.workers()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The prompts that the engine gets."""
    seen: list[list[int]] = []

    def continued(engine: Any, ids: Any, settings: GenerationSettings) -> Any:
        seen.append(list(ids))
        return iter(ids[:1])

    monkeypatch.setattr(TorchEngine, "continue_prompt", continued)
    return seen


@pytest.mark.parametrize("beams", [1, 2])
def test_try_and_generate_write_a_question_by_the_template(writer: Path, given: list[list[int]], beams: int) -> None:
    changes = [*CHANGES, f"task.num_beams={beams}"]
    answerer = interactive.InteractivePredictor(str(writer), "causal_lm", changes)
    answerer.answer([{"prompt": "red"}])
    list(predict.generate(str(writer), "red", changes))

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["q red a"] * 2


def test_a_text_to_be_continued_is_given_as_it_stands(writer: Path, given: list[list[int]]) -> None:
    list(predict.generate(str(writer), "the film"))
    answerer = interactive.InteractivePredictor(str(writer), "causal_lm")
    answerer.answer([{"text": "the film"}])

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["[CLS] the film"] * 2


def test_plain_text_typed_where_a_chat_is_wanted_is_what_the_user_says(writer: Path, given: list[list[int]]) -> None:
    answerer = interactive.InteractivePredictor(
        str(writer), "causal_lm", [CHANGES[0].replace("instructions", "chat"), *CHANGES[1:]]
    )
    answerer.answer([{"messages": "red"}, {"messages": '[{"role": "user", "content": "blue"}]'}])

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["q red a", "q blue a"]
