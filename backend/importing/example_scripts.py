"""Imports the arguments of a `transformers` example script: a command line, or its JSON file."""

import json
import shlex
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.importing import accelerate_config
from backend.importing.foreign import ForeignConfig, ImportedSpec, glue_columns, hub_data, task_of_glue

SCRIPTS = {
    "run_glue": "text_classification", "run_classification": "text_classification", "run_xnli": "text_classification",
    "run_ner": "token_classification", "run_qa": "question_answering", "run_qa_beam_search": "question_answering",
    "run_seq2seq_qa": "seq2seq_lm", "run_translation": "seq2seq_lm", "run_summarization": "seq2seq_lm",
    "run_clm": "causal_lm", "run_mlm": "masked_lm", "run_swag": "multiple_choice",
}  # fmt: skip
_TOLD_BY = (
    ("doc_stride", "run_qa"), ("mlm_probability", "run_mlm"), ("source_lang", "run_translation"),
    ("summary_column", "run_summarization"), ("label_all_tokens", "run_ner"), ("task_name", "run_glue"),
    ("block_size", "run_clm"),
)  # fmt: skip
_PERMUTATION = "run_plm"
_OPTIMIZERS = {
    "adamw_torch": "adamw", "adamw_hf": "adamw", "adamw_torch_fused": "adamw", "adamw_apex_fused": "adamw",
    "adafactor": "adafactor", "sgd": "sgd", "lion_32bit": "lion", "adamw_8bit": "adamw_8bit", "adamw_bnb_8bit": "adamw_8bit",
    "paged_adamw": "paged_adamw", "paged_adamw_32bit": "paged_adamw", "paged_adamw_8bit": "paged_adamw_8bit",
}  # fmt: skip
_SCHEDULES = {"constant_with_warmup", "constant", "linear", "cosine", "cosine_with_restarts", "polynomial"}
_METRICS = {
    "matthews_correlation": "matthews",
    "spearmanr": "spearman",
    "combined_score": "combined",
    "exact": "exact_match",
}
_WITH_LANGUAGE_TOKENS = ("mbart", "nllb", "m2m", "madlad", "plbart")
_OF_NO_MATTER = (
    "output_dir", "overwrite_output_dir", "do_train", "do_eval", "do_predict", "logging_dir", "logging_steps", "logging_strategy",
    "logging_first_step", "report_to", "run_name", "cache_dir", "overwrite_cache", "preprocessing_num_workers",
    "dataloader_num_workers", "disable_tqdm", "use_auth_token", "token", "hub_token", "log_level", "pad_to_max_length",
    "eval_accumulation_steps", "remove_unused_columns", "save_safetensors", "no_cuda", "use_cpu", "trust_remote_code",
)  # fmt: skip


def from_command(command: str) -> tuple[dict[str, Any], str | None]:
    """The arguments on a command line, and the script's name. Raises InputError if it names none."""
    try:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError(f"the command line cannot be read ({error}); check its quotes") from None
    place = next((number for number, word in enumerate(words) if word.endswith(".py")), None)
    script = Path(words[place]).stem if place is not None else None
    return _arguments(words[(place + 1) if place is not None else 0 :]), script


def _arguments(words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    key = ""
    for word in words:
        if word.startswith("--"):
            key, _, value = word[2:].partition("=")
            values[key] = _value(value) if value else True
        elif key:
            values[key] = _value(word) if values[key] is True else f"{values[key]} {word}"
    return values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def recognises(values: dict[str, Any]) -> bool:
    """Whether these are such arguments."""
    return "model_name_or_path" in values or "config_name" in values or "tokenizer_name" in values


def import_arguments(
    values: dict[str, Any], script: str | None = None, launcher: ImportedSpec | None = None
) -> ImportedSpec:
    """The arguments as a spec; `launcher` is what was read from a file of `accelerate config`.

    Raises InputError if the script has no counterpart or is unknown.
    """
    arguments, result = ForeignConfig(values), launcher or ImportedSpec()
    script = (
        (script or next((name for key, name in _TOLD_BY if key in values), ""))
        .removesuffix("_no_trainer")
        .removesuffix("_flax")
    )
    if script == _PERMUTATION or script not in SCRIPTS:
        what = "permutation language modeling has" if script == _PERMUTATION else f"{script or 'this file'} has"
        raise InputError(f"--script: {what} no counterpart; name one of {', '.join(SCRIPTS)}", "script")
    name = arguments.take("task_name")
    task = task_of_glue(name) or SCRIPTS[script]
    if task == "text_classification" and arguments.take("do_regression", False):
        task = "text_regression"
    result.add(name=f"{script.removeprefix('run_')}{f'-{name}' if name else ''}", task={"type": task})
    _model(arguments, result)
    _data(arguments, script, name, result)
    _task(arguments, task, script, result)
    _batch(arguments, result)
    _steps(arguments, result)
    _optimizer(arguments, result)
    _convert_intervals(arguments, result)
    arguments.skip(*_OF_NO_MATTER)
    result.unmatched += arguments.unused()
    return result


def _model(arguments: ForeignConfig, result: ImportedSpec) -> None:
    model, config = arguments.take("model_name_or_path"), arguments.take("config_name")
    result.add(
        model={
            "name_or_path": model or config or arguments.take("tokenizer_name"),
            "initialise": None if model else "from_config",
            "tokenizer": arguments.take("tokenizer_name"),
            "revision": arguments.take("model_revision"),
            "tokenizer_options": None if arguments.take("use_fast_tokenizer", True) else {"use_fast": False},
        }
    )
    if not model:
        result.unmatched += arguments.refuse("model_type", "give model.name_or_path a folder with a config.json")
    overrides = arguments.take("config_overrides")
    if overrides:
        pairs = (pair.split("=", 1) for pair in str(overrides).split(","))
        result.add(model={"config": {key: _value(value) for key, value in pairs}})


def _data(arguments: ForeignConfig, script: str, name: str | None, result: ImportedSpec) -> None:
    dataset, configuration = arguments.take("dataset_name"), arguments.take("dataset_config_name")
    files = {split: arguments.take(f"{split}_file") for split in ("train", "validation", "test")}
    if files["train"] or files["validation"]:
        result.add(data={"source": "files", **files})
    elif name or dataset or script in ("run_xnli", "run_swag"):
        result.add(data=_of_hub(arguments, script, name, dataset, configuration))
    percentage = arguments.take("validation_split_percentage", 0)
    if percentage and files["train"] and not files["validation"]:
        result.add(data={"validation": percentage / 100})
    trained, measured = (arguments.take(f"max_{split}_samples") for split in ("train", "eval"))
    result.add(data={"max_rows": trained}, evaluation={"max_rows": measured})
    if trained:
        result.notes.append("max_train_samples left the other splits whole there; data.max_rows cuts every split.")
    given = {role: arguments.take(key) for role, key in _COLUMNS.get(script, {}).items()}
    result.add(data={"columns": {role: value for role, value in given.items() if value} or None})


_COLUMNS = {
    "run_ner": {"tokens": "text_column_name", "tags": "label_column_name"},
    "run_summarization": {"source": "text_column", "target": "summary_column"},
    "run_seq2seq_qa": {"source": "question_column", "target": "answer_column"},
    "run_classification": {"text": "text_column_names", "label": "label_column_name"},
}


def _of_hub(
    arguments: ForeignConfig, script: str, name: str | None, dataset: str | None, configuration: str | None
) -> dict[str, Any]:
    if script == "run_xnli":
        language = arguments.take("language")
        return hub_data("xnli", arguments.take("train_language") or language) | {"columns": glue_columns("xnli")}
    if name:
        return hub_data("glue", name) | {"columns": glue_columns(name)}
    return hub_data(
        dataset or {"run_swag": "swag"}[script], configuration or ("regular" if script == "run_swag" else None)
    )


def _task(arguments: ForeignConfig, task: str, script: str, result: ImportedSpec) -> None:
    settings = {"max_length": arguments.take("max_seq_length") or arguments.take("block_size")}
    if task == "question_answering":
        settings |= {
            "doc_stride": arguments.take("doc_stride"),
            "n_best": arguments.take("n_best_size"),
            "max_answer_length": arguments.take("max_answer_length"),
            "version_2_with_negative": arguments.take("version_2_with_negative"),
            "null_threshold": arguments.take("null_score_diff_threshold"),
            "head": "beam" if script == "run_qa_beam_search" else None,
        }
        beams = {name: arguments.take(name) for name in ("start_n_top", "end_n_top")}
        result.add(model={"config": {name: value for name, value in beams.items() if value} or None})
    elif task == "seq2seq_lm":
        settings |= {
            "max_length": arguments.take("max_source_length"),
            "max_target_length": arguments.take("max_target_length"),
            "prefix": arguments.take("source_prefix"),
            "num_beams": arguments.take("num_beams") or arguments.take("generation_num_beams"),
            "max_new_tokens": arguments.take("val_max_target_length") or arguments.take("generation_max_length"),
        } | _languages(arguments, result)
        if script == "run_translation":
            result.notes.append(
                "The scripts read pairs from one column `translation`; here source and target are separate columns."
            )
        settings["max_length"] = settings["max_length"] or 1024
        arguments.skip(
            "predict_with_generate", "ignore_pad_token_for_loss", "val_max_target_length", "generation_max_length"
        )
    elif task in ("masked_lm", "causal_lm"):
        lines = arguments.take("line_by_line")
        settings["rows"] = None if lines is None else "examples" if lines else "blocks"
        if task == "masked_lm":
            settings["mask_probability"] = arguments.take("mlm_probability")
    elif task == "token_classification":
        settings["label_all_tokens"] = arguments.take("label_all_tokens")
    result.add(task=settings)


def _languages(arguments: ForeignConfig, result: ImportedSpec) -> dict[str, Any]:
    """The languages as settings if the model's tokenizer has tokens for them; otherwise they only named columns."""
    names = {"source_language": arguments.take("source_lang"), "target_language": arguments.take("target_lang")}
    model = str(result.spec["model"]["name_or_path"]).lower()
    return names if any(family in model for family in _WITH_LANGUAGE_TOKENS) else {}


def _batch(arguments: ForeignConfig, result: ImportedSpec) -> None:
    per_device = arguments.take("per_device_train_batch_size", 0) or arguments.take("per_gpu_train_batch_size", 8)
    accumulation, processes = arguments.take("gradient_accumulation_steps", 1), _count_processes(result)
    splits = _splits_batches(arguments, result)
    replicas = 1 if splits else processes
    rows, evaluated = per_device * replicas, arguments.take("per_device_eval_batch_size")
    result.add(
        training={"batch_size": rows * accumulation},
        evaluation={"batch_size": evaluated and evaluated * replicas},
        hardware={
            "micro_batch_size": max(1, rows // processes) if accumulation > 1 else None,
            "precision": "bfloat16"
            if arguments.take("bf16", False)
            else "float16"
            if arguments.take("fp16", False)
            else None,
        },
    )
    if processes == 1 and not splits:
        result.notes.append(
            "training.batch_size counts the rows of one device; on n devices there it was n times as large."
        )
    elif processes > 1:
        result.notes.append(f"training.batch_size counts the rows of all {processes} processes.")


def _count_processes(result: ImportedSpec) -> int:
    """Those of a launcher."""
    return accelerate_config.count_processes(result.spec.get("hardware", {}))


def _splits_batches(arguments: ForeignConfig, result: ImportedSpec) -> bool:
    """Whether a batch there was divided among the processes, as here, and not one for each of them."""
    given = arguments.take("accelerator_config", {})
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    if not isinstance(given, dict):
        result.unmatched.append("accelerator_config: its file is not read; give its values as a mapping")
        return False
    accelerator = ForeignConfig(given, "accelerator_config.")
    accelerator.skip("even_batches", "dispatch_batches", "use_seedable_sampler", "non_blocking", "use_configured_state")
    splits = bool(accelerator.take("split_batches", False))
    if splits:
        result.notes.append("split_batches: a batch is always divided among the processes here.")
    result.unmatched += accelerator.unused()
    return splits


def _steps(arguments: ForeignConfig, result: ImportedSpec) -> None:
    steps, ratio, warmup = (
        arguments.take("max_steps", 0),
        arguments.take("warmup_ratio"),
        arguments.take("warmup_steps"),
    )
    result.add(
        training={
            "epochs": arguments.take("num_train_epochs") or arguments.take("num_epochs") or 3,
            "max_steps": steps if steps > 0 else None,
            "warmup": warmup or ratio,
            "seed": arguments.take("seed"),
        }
    )


def _optimizer(arguments: ForeignConfig, result: ImportedSpec) -> None:
    optimizer, schedule = arguments.take("optim", "adamw_torch"), arguments.take("lr_scheduler_type", "linear")
    if arguments.take("adafactor", False):
        optimizer = "adafactor"
    if optimizer not in _OPTIMIZERS:
        result.unmatched.append(f"optim: {optimizer} (AdamW is used)")
    inverse = {"inverse_sqrt": "inverse_sqrt"}
    if schedule not in _SCHEDULES | inverse.keys():
        result.unmatched.append(f"lr_scheduler_type: {schedule} (the linear one is used)")
        schedule = "linear"
    clipping = arguments.take("max_grad_norm", 1.0)
    result.add(
        training={
            "optimizer": _OPTIMIZERS.get(optimizer, "adamw"),
            "learning_rate": float(arguments.take("learning_rate", 5e-5)),
            "schedule": schedule,
            "weight_decay": float(arguments.take("weight_decay", 0.0)),
            "adam_beta1": arguments.take("adam_beta1"),
            "adam_beta2": arguments.take("adam_beta2"),
            "adam_epsilon": arguments.take("adam_epsilon"),
            "label_smoothing": arguments.take("label_smoothing_factor"),
            "gradient_checkpointing": arguments.take("gradient_checkpointing"),
            "length_buckets": bool(arguments.take("group_by_length", False)),
            "max_gradient_norm": clipping or None,
        }
    )
    if not clipping:
        result.spec["training"]["max_gradient_norm"] = None


def _convert_intervals(arguments: ForeignConfig, result: ImportedSpec) -> None:
    evaluates = str(arguments.take("eval_strategy") or arguments.take("evaluation_strategy") or "no")
    saves, metric = str(arguments.take("save_strategy", "steps")), arguments.take("metric_for_best_model")
    steps = {name: arguments.take(f"{name}_steps", 500) for name in ("eval", "save")}
    result.add(
        evaluation={"every": {"no": "epoch", "epoch": "epoch", "steps": steps["eval"]}.get(evaluates, "epoch")},
        training={
            "checkpoint_every": {"no": "never", "epoch": "epoch", "steps": steps["save"]}.get(saves, "epoch"),
            "keep_checkpoints": arguments.take("save_total_limit"),
        },
    )
    if arguments.take("load_best_model_at_end", False):
        name = str(metric or "loss").removeprefix("eval_")
        result.add(evaluation={"best_metric": _METRICS.get(name, name)})
    arguments.skip("greater_is_better")
