"""Imports a Determined experiment (YAML) from its transformers model hub."""

from typing import Any

from backend.contract.errors import InputError
from backend.importing.foreign import ForeignConfig, ImportedSpec, glue_columns, hub_data, task_of_glue

TASKS = {
    "sequence-classification": "text_classification",
    "token-classification": "token_classification",
    "question-answering": "question_answering",
    "multiple-choice": "multiple_choice",
    "causal-lm": "causal_lm",
    "masked-lm": "masked_lm",
    "seq2seq-lm": "seq2seq_lm",
}
METRICS = {
    "accuracy": "accuracy", "accuracy_score": "accuracy", "f1": "f1", "exact_match": "exact_match", "exact": "exact_match",
    "precision": "precision", "recall": "recall", "matthews_correlation": "matthews", "pearson": "pearson",
    "spearmanr": "spearman", "combined_score": "combined", "perplexity": "perplexity", "loss": "loss",
    "eval_loss": "loss", "validation_loss": "loss", "bleu": "bleu", "rouge1": "rouge1", "rougeL": "rougeL",
}  # fmt: skip
_MACHINES = ("environment", "bind_mounts", "entrypoint", "workspace", "project", "labels", "checkpoint_storage", "debug",
             "scheduling_unit", "max_restarts", "checkpoint_policy", "profiling", "data_layer", "internal", "security")  # fmt: skip


def recognises(values: dict[str, Any]) -> bool:
    """Whether this is such an experiment."""
    return isinstance(values.get("hyperparameters"), dict) and bool({"searcher", "entrypoint", "data"} & values.keys())


def import_config(values: dict[str, Any]) -> ImportedSpec:
    """The experiment as a spec. Raises InputError if its kind of model cannot be trained here."""
    experiment, result = ForeignConfig(values), ImportedSpec()
    constants, searched = _constants(values["hyperparameters"])
    experiment.take("hyperparameters")
    hyper, data = ForeignConfig(constants, "hyperparameters."), experiment.section("data")
    result.unmatched += [
        f"hyperparameters.{name}: a range to search (a run trains one value; set it)" for name in searched
    ]
    configuration = data.take("dataset_config_name")
    task = _task(hyper, configuration, result)
    _data(data, configuration, task, result)
    _model(hyper, result)
    per_batch, batches = _training(hyper, experiment, result)
    _length(experiment, per_batch, batches, result)
    _measuring(experiment, per_batch, batches, result)
    _settings_of_task(task, data, result)
    experiment.skip(*_MACHINES)
    result.add(name=_name(experiment))
    result.unmatched += [*hyper.unused(), *data.unused(), *experiment.unused()]
    return result


def _constants(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    constants, searched = {}, []
    for name, value in given.items():
        if not isinstance(value, dict) or "type" not in value:
            constants[name] = value
        elif value["type"] == "const":
            constants[name] = value.get("val")
        else:
            searched.append(name)
    return constants, searched


def _name(experiment: ForeignConfig) -> str:
    name, description = experiment.take("name"), experiment.take("description")
    return str(name or description or "determined")[:100]


def _task(hyper: ForeignConfig, configuration: str | None, result: ImportedSpec) -> str:
    mode, tuned_for = hyper.take("model_mode"), hyper.take("finetuning_task")
    if mode is not None and mode not in TASKS:
        raise InputError(
            f"hyperparameters.model_mode: {mode!r} has no counterpart; there are {', '.join(TASKS)}", "model_mode"
        )
    task = task_of_glue(configuration or tuned_for) or TASKS.get(mode or "")
    if task is None:
        raise InputError(
            "hyperparameters.model_mode: the experiment does not say what it trains; add it, "
            f"one of {', '.join(TASKS)}",
            "model_mode",
        )
    result.add(task={"type": task})
    return task


def _data(data: ForeignConfig, configuration: str | None, task: str, result: ImportedSpec) -> None:
    name, train_file, validation_file = (data.take(key) for key in ("dataset_name", "train_file", "validation_file"))
    percentage = data.take("validation_split_percentage", 0)
    if name:
        result.add(data=hub_data(name, configuration))
    else:
        result.add(data={"source": "files", "train": train_file, "validation": validation_file})
    if percentage and (
        name is None or name not in ("wikitext", "squad", "squad_v2", "glue", "xnli", "swag", "conll2003")
    ):
        if validation_file is None:
            result.add(data={"validation": percentage / 100})
        result.notes.append(
            f"validation_split_percentage {percentage} takes the first rows there and the last or random ones here."
        )
    if task in ("text_classification", "text_regression"):
        result.add(data={"columns": glue_columns(configuration if name == "glue" else name)})
    language, train_language = data.take("language"), data.take("train_language")
    if language:
        result.add(data={"configuration": train_language or language})
        if train_language and train_language != language:
            result.unmatched.append(
                f"data.language: {language} (rows of one language are read; name a file for validation)"
            )
    data.skip(
        "cache_dir", "overwrite_cache", "preprocessing_num_workers", "output_dir", "pad_to_max_length", "use_auth_token"
    )


def _model(hyper: ForeignConfig, result: ImportedSpec) -> None:
    shared, model = hyper.take("pretrained_model_name_or_path"), hyper.take("model_name")
    pretrained = hyper.take("use_pretrained_weights", True)
    options = {
        "do_lower_case": hyper.take("do_lower_case"),
        "use_fast": None if hyper.take("use_fast", True) else False,
    }
    result.add(
        model={
            "name_or_path": model or shared,
            "revision": hyper.take("revision"),
            "tokenizer": hyper.take("tokenizer_name"),
            "initialise": None if pretrained else "from_config",
            "tokenizer_options": {key: value for key, value in options.items() if value is not None} or None,
        }
    )
    result.unmatched += hyper.refuse("config_name", "a run has one model; change its keys by model.config")
    hyper.skip("cache_dir", "use_auth_token", "num_labels")


def _training(hyper: ForeignConfig, experiment: ForeignConfig, result: ImportedSpec) -> tuple[int, int]:
    """Rows per batch there, and batches per optimizer step."""
    per_step = hyper.take("global_batch_size")
    if not isinstance(per_step, int):
        raise InputError("hyperparameters.global_batch_size: it is missing or not a whole number; add it", "batch_size")
    optimizations = experiment.section("optimizations")
    aggregation = optimizations.take("aggregation_frequency", 1)
    if aggregation > 1:
        result.notes.append(
            f"{aggregation} batches of {per_step} made one step there; here training.batch_size is their {aggregation * per_step} rows."
        )
        if not optimizations.take("average_aggregated_gradients", True):
            result.unmatched.append(
                "optimizations.average_aggregated_gradients: False (a step is a mean over its targets)"
            )
    optimizations.skip(
        "average_aggregated_gradients", "average_training_metrics", "gradient_compression", "auto_tune_tensor_fusion"
    )
    if hyper.take("use_apex_amp", False) or optimizations.take("mixed_precision", "O0") not in ("O0", "null"):
        result.notes.append("Mixed precision was on; hardware.precision auto uses what the device computes well.")
    clipping = hyper.take("max_grad_norm", 1.0)
    result.add(
        training={
            "batch_size": per_step * aggregation,
            "learning_rate": float(hyper.take("learning_rate", 5e-5)),
            "weight_decay": float(hyper.take("weight_decay", 0)),
            "adam_beta1": hyper.take("adam_beta1"),
            "adam_beta2": hyper.take("adam_beta2"),
            "adam_epsilon": hyper.take("adam_epsilon"),
            "schedule": hyper.take("lr_scheduler_type", "linear"),
            "warmup": -(-hyper.take("num_warmup_steps", 0) // aggregation) or None,
            "drop_last": True,
        }
    )
    if not clipping:
        result.spec["training"]["max_gradient_norm"] = None
    elif clipping != 1.0:
        result.add(training={"max_gradient_norm": clipping})
    if hyper.take("adafactor", False):
        keys = ("scale_parameter", "relative_step")
        result.add(
            training={"optimizer": "adafactor", "optimizer_options": {key: hyper.take(key, False) for key in keys}}
        )
    hyper.skip("scale_parameter", "relative_step", "num_training_steps")
    result.notes.append("Rows were not shuffled there; here every epoch has its own seeded order.")
    result.unmatched += optimizations.unused()
    return per_step, aggregation


def _length(experiment: ForeignConfig, per_batch: int, batches: int, result: ImportedSpec) -> None:
    searcher = experiment.section("searcher")
    given, records = searcher.take("max_length", {}), experiment.take("records_per_epoch", 0)
    length = ForeignConfig(given if isinstance(given, dict) else {"batches": given}, "searcher.max_length.")
    if epochs := length.take("epochs", 0):
        result.add(training={"epochs": epochs})
        if records:
            steps = epochs * (records // per_batch) // batches
            result.notes.append(f"{epochs} epochs of {records} records were {steps} steps there.")
    elif rows := length.take("records", 0):
        result.add(training={"max_records": rows})
    elif steps := length.take("batches", 0):
        result.add(training={"max_steps": max(1, steps // batches)})
    metric = METRICS.get(str(searcher.take("metric")))
    name = searcher.take("name", "single")
    smaller = searcher.take("smaller_is_better", True)
    if metric is None:
        result.unmatched += [f"searcher.metric: {name}"] if name != "single" else []
    else:
        result.add(evaluation={"best_metric": metric})
        if smaller is not (metric in ("loss", "perplexity")):
            result.notes.append(f"smaller_is_better was {smaller} for {metric}; here the better direction is known.")
    if name != "single":
        result.unmatched.append(f"searcher.name: {name} (Burnish trains one configuration at a time)")
    searcher.skip("source_trial_id", "source_checkpoint_uuid")
    result.unmatched += searcher.unused()


def _measuring(experiment: ForeignConfig, per_batch: int, batches: int, result: ImportedSpec) -> None:
    every, saved = (
        _steps(experiment, f"min_{what}_period", per_batch, batches) for what in ("validation", "checkpoint")
    )
    result.add(
        evaluation={"every": every, "at_start": experiment.take("perform_initial_validation") or None},
        training={"checkpoint_every": saved},
    )
    seed = experiment.section("reproducibility").take("experiment_seed")
    result.add(training={"seed": seed, "keep_checkpoints": experiment.take("save_trial_latest")})
    slots = experiment.section("resources").take("slots_per_trial", 1)
    if slots > 1:
        result.notes.append(f"{slots} devices shared a batch there; the batch is the same here, on one.")
    experiment.skip("save_experiment_best", "save_trial_best")


def _steps(experiment: ForeignConfig, key: str, per_batch: int, batches: int) -> int | str | None:
    given = experiment.take(key, {})
    period = ForeignConfig(given if isinstance(given, dict) else {"batches": given}, f"{key}.")
    count = period.take("batches", 0) or period.take("records", 0) // per_batch
    if count:
        return max(1, int(count) // batches)
    return "epoch" if period.take("epochs") else None


def _settings_of_task(task: str, data: ForeignConfig, result: ImportedSpec) -> None:
    length = data.take("max_seq_length")
    names = {
        "question_answering": {
            "doc_stride": "doc_stride", "n_best_size": "n_best", "max_answer_length": "max_answer_length",
            "version_2_with_negative": "version_2_with_negative", "null_score_diff_threshold": "null_threshold",
        },
        "token_classification": {"label_all_tokens": "label_all_tokens"},
        "masked_lm": {"mlm_probability": "mask_probability"},
    }.get(task, {})  # fmt: skip
    settings = {ours: data.take(theirs) for theirs, ours in names.items()}
    lines = data.take("line_by_line")
    if task in ("masked_lm", "causal_lm") and lines is not None:
        settings["rows"] = "examples" if lines else "blocks"
    result.add(task={"max_length": length, **settings})
    if data.take("plm_probability") or data.take("max_span_length"):
        result.unmatched.append(
            "data.plm_probability, max_span_length: permutation language modeling has no counterpart"
        )
