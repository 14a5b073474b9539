"""A model is asked for text in the form that it was trained on, by the command line and by Try alike."""

from pathlib import Path
from typing import Any

import pytest

from backend.contract.rpc.generation import GenerationSettings
from backend.engines.torch.engine import TorchEngine
from backend.inference import interactive, predict

CHANGES = ["task.rows=instructions", "task.template='Q {{ messages[0].content }} A'", "task.max_new_tokens=2"]


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
    answerer = interactive.Answerer(str(writer), "causal_lm", changes)
    answerer.answer([{"prompt": "red"}])
    list(predict.generate(str(writer), "red", changes))

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["q red a"] * 2


def test_a_text_to_be_continued_is_given_as_it_stands(writer: Path, given: list[list[int]]) -> None:
    list(predict.generate(str(writer), "the film"))
    answerer = interactive.Answerer(str(writer), "causal_lm")
    answerer.answer([{"text": "the film"}])

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["[CLS] the film"] * 2


def test_plain_text_typed_where_a_chat_is_wanted_is_what_the_user_says(writer: Path, given: list[list[int]]) -> None:
    answerer = interactive.Answerer(
        str(writer), "causal_lm", [CHANGES[0].replace("instructions", "chat"), *CHANGES[1:]]
    )
    answerer.answer([{"messages": "red"}, {"messages": '[{"role": "user", "content": "blue"}]'}])

    assert [answerer._session.tokenizer.decode(ids) for ids in given] == ["q red a", "q blue a"]
