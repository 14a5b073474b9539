"""The arguments of transformers' example scripts become a spec with the same numbers."""

import pytest

from backend.contract.errors import InputError
from backend.importing.example_scripts import from_command, import_arguments

GLUE = """
export TASK=mrpc   # a comment
python examples/pytorch/text-classification/run_glue.py \\
  --model_name_or_path bert-base-cased --task_name mrpc --do_train --do_eval \\
  --max_seq_length 128 --per_device_train_batch_size=32 --learning_rate 2e-5 --num_train_epochs 3 --fp16 \\
  --output_dir "/tmp/my output"
"""


def of(command: str):
    """What a command line becomes."""
    values, script = from_command(command)
    return import_arguments(values, script)


def test_a_command_over_several_lines_is_read():
    result = of(GLUE)
    assert result.spec["training"]["learning_rate"] == 2e-5
    assert result.spec["training"]["batch_size"] == 32
    assert result.spec["data"]["configuration"] == "mrpc"
    assert result.spec["hardware"] == {"precision": "float16"}
    assert result.unmatched == []


def test_defaults_of_the_trainer_are_written_out():
    training = of("python run_ner.py --model_name_or_path m --train_file t.json --validation_file v.json").spec[
        "training"
    ]
    assert (training["learning_rate"], training["batch_size"], training["weight_decay"], training["epochs"]) == (
        5e-5,
        8,
        0.0,
        3,
    )
    assert training["length_buckets"] is False


def test_accumulated_rows_make_one_batch():
    spec = of(
        "python run_qa.py --model_name_or_path m --dataset_name squad --per_device_train_batch_size 4 --gradient_accumulation_steps 3"
    ).spec
    assert spec["training"]["batch_size"] == 12
    assert spec["hardware"]["micro_batch_size"] == 4


def test_beam_search_asks_for_its_head():
    spec = of(
        "python run_qa_beam_search.py --model_name_or_path xlnet --dataset_name squad --doc_stride 128 --n_best_size 20"
    ).spec
    assert spec["task"] == {"type": "question_answering", "doc_stride": 128, "n_best": 20, "head": "beam"}


def test_translation_keeps_lengths_and_beams():
    command = "python run_translation.py --model_name_or_path t5 --train_file a.json --max_source_length 48 --max_target_length 40 --num_beams 2 --source_prefix 'to Spanish: '"  # fmt: skip
    task = of(command).spec["task"]
    assert task == {
        "type": "seq2seq_lm", "max_length": 48, "max_target_length": 40, "prefix": "to Spanish: ", "num_beams": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("model", "kept"), [("facebook/mbart-large-50", "ro_RO"), ("google-t5/t5-small", None)])
def test_languages_are_kept_where_the_tokenizer_has_tokens_for_them(model: str, kept: str | None):
    command = f"python run_translation.py --model_name_or_path {model} --train_file a.json --source_lang en_XX --target_lang ro_RO"
    task = of(command).spec["task"]
    assert task.get("target_language") == kept
    assert task["max_length"] == 1024


def test_the_script_is_told_by_its_arguments():
    assert import_arguments({"model_name_or_path": "m", "mlm_probability": 0.15}).spec["task"]["type"] == "masked_lm"


def test_no_max_steps_is_minus_one():
    assert (
        "max_steps"
        not in import_arguments({"model_name_or_path": "m", "task_name": "rte", "max_steps": -1}).spec["training"]
    )


def test_the_best_model_is_kept_by_its_metric():
    arguments = {
        "model_name_or_path": "m", "task_name": "cola", "load_best_model_at_end": True, "eval_strategy": "steps", "eval_steps": 50,
        "metric_for_best_model": "eval_matthews_correlation",
    }  # fmt: skip
    assert import_arguments(arguments).spec["evaluation"] == {"every": 50, "best_metric": "matthews"}


@pytest.mark.parametrize(
    ("optim", "expected"),
    [("adamw_bnb_8bit", "adamw_8bit"), ("paged_adamw_32bit", "paged_adamw"), ("paged_adamw_8bit", "paged_adamw_8bit")],
)
def test_optimizers_of_bitsandbytes_are_taken_over(optim: str, expected: str):
    result = import_arguments({"model_name_or_path": "m", "task_name": "rte", "optim": optim})
    assert (result.spec["training"]["optimizer"], result.unmatched) == (expected, [])


def test_what_has_no_counterpart_is_named():
    result = import_arguments(
        {"model_name_or_path": "m", "task_name": "rte", "deepspeed": "zero3.json", "optim": "galore_adamw"}
    )
    assert result.unmatched == ["optim: galore_adamw (AdamW is used)", "deepspeed: zero3.json"]


@pytest.mark.parametrize("script", ["run_plm", "run_speech_recognition", None])
def test_a_script_without_counterpart_is_refused(script: str | None):
    with pytest.raises(InputError, match="has no counterpart"):
        import_arguments({"model_name_or_path": "m"}, script)


def test_an_open_quote_is_one_sentence():
    with pytest.raises(InputError, match="check its quotes"):
        from_command("python run_glue.py --x 'open")


def test_fewer_measured_rows_leave_the_training_rows_whole():
    spec = import_arguments({"model_name_or_path": "m", "task_name": "rte", "max_eval_samples": 100}).spec
    assert "max_rows" not in spec["data"]
    assert spec["evaluation"]["max_rows"] == 100


def test_fewer_training_rows_are_so_many_whatever_is_measured():
    arguments = {"model_name_or_path": "m", "task_name": "rte", "max_train_samples": 50, "max_eval_samples": 100}
    result = import_arguments(arguments)
    assert result.spec["data"]["max_rows"] == 50
    assert any("cuts every split" in note for note in result.notes)


def test_a_number_in_quotes_is_a_number():
    arguments = {"model_name_or_path": "m", "task_name": "rte", "per_device_train_batch_size": "4"}
    assert import_arguments(arguments).spec["training"]["batch_size"] == 4


def test_what_is_no_number_is_named():
    with pytest.raises(InputError, match="learning_rate: 'high' is not a number"):
        import_arguments({"model_name_or_path": "m", "task_name": "rte", "learning_rate": "high"})
