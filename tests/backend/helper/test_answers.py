"""Tests the questions of the window that need a model, a spec or a look at the machine, answered as a worker does."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from backend.contract.resources import resource
from backend.preflight import resolve


def demo_spec(**training: Any) -> dict[str, Any]:
    values = resolve.read_spec(resource("demo", "sentiment.yaml")).model_dump(mode="json")
    values["training"] |= training
    return values


def test_plan_says_what_a_spec_will_cost(in_process_helper) -> None:
    plan = in_process_helper.answer("plan", spec=demo_spec(batch_size=16, max_steps=40))

    assert (plan["total_steps"], plan["batch_size"], plan["fits"]) == (40, 16, True)
    assert plan["memory_mb"] == pytest.approx(sum(part["megabytes"] for part in plan["memory"]))


def test_plan_names_the_setting_that_it_cannot_use(in_process_helper) -> None:
    reply = in_process_helper.reply("plan", spec=demo_spec(batch_size=0))

    assert reply["error"]["field"] == "training.batch_size"


def test_doctor_tells_each_finding_as_it_is_made(in_process_helper) -> None:
    findings = in_process_helper.answer("doctor")["findings"]

    assert findings[0]["text"].startswith("Python 3")
    assert [one["progress"]["text"] for one in in_process_helper.progress] == [one["text"] for one in findings]


def test_text_is_told_piece_by_piece(in_process_helper, writer: Path) -> None:
    settings = {"max_new_tokens": 6, "sample": True, "seed": 3}

    text = in_process_helper.answer("generate", target=str(writer), prompt="the film", settings=settings)["text"]

    assert "".join(one["progress"]["text"] for one in in_process_helper.progress) == text
    assert len(in_process_helper.progress) > 1


def test_classifier_continues_no_text(in_process_helper) -> None:
    message = in_process_helper.mistake("generate", target=str(resource("demo", "bert-tiny")), prompt="the film")

    assert "bert model is an encoder" in message


def test_weights_are_converted_with_consent_alone(
    in_process_helper, writer: Path, tmp_path: Path, converter_environments
) -> None:
    weights = load_file(writer / "model.safetensors")
    for path in writer.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    torch.save(weights, tmp_path / "pytorch_model.bin")

    assert "approval" in in_process_helper.mistake("convert_model", name_or_path=str(tmp_path))
    assert in_process_helper.answer("describe_model", name_or_path=str(tmp_path))["needs_conversion"]
    converted = in_process_helper.answer("convert_model", name_or_path=str(tmp_path), consent=True)

    assert (converted["name"], converted["found"], converted["needs_conversion"]) == (str(tmp_path), "converted", False)
    assert converted["safe"]
    assert list(tmp_path.glob("*.safetensors")) == []
