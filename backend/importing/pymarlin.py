"""Imports a PyMarlin config (YAML) of its sequence classification plugin or its first GLUE example."""

from typing import Any

from backend.contract.errors import InputError
from backend.importing.foreign import ForeignConfig, ImportedSpec, task_of_glue

_LOGS = (
    "stats",
    "wrts",
    "writers",
    "ckpt",
    "chkp",
    "log_level",
    "disable_tqdm",
    "backend",
    "use_gpu",
    "gpu_batch_size_limit",
)
_METRICS = {"acc": "accuracy", "acc_and_f1": "f1_weighted", "mcc": "matthews", "pcc_and_scc": "combined"}


def recognises(values: dict[str, Any]) -> bool:
    """Whether this is such a config."""
    return {"dmod", "tmod"} <= values.keys() or {"data", "module", "trainer"} <= values.keys()


def import_config(values: dict[str, Any]) -> ImportedSpec:
    """The config as a spec. Raises InputError if it names no data."""
    config, result = ForeignConfig(values), ImportedSpec()
    result.add(name="pymarlin", training={"weight_decay": 0.0, "batch_size": 1, "epochs": 1})
    if "tmod" in values:
        _first_example(config, result)
    else:
        _plugin(config, result)
    _trainer(config.section("trainer"), result)
    config.skip(*_LOGS)
    result.unmatched += config.unused()
    return result


def _first_example(config: ForeignConfig, result: ImportedSpec) -> None:
    """`dmod`, `dproc`, `tmod` and `model`: preprocessing in one program, training in another."""
    files, processing, module = config.section("dmod"), config.section("dproc"), config.section("tmod")
    task = (module.take("task") or processing.take("task") or "").lower().replace("-", "")
    kind = task_of_glue("stsb" if task == "stsb" else task) or "text_classification"
    result.add(
        task={"type": kind, "max_length": processing.take("max_seq_len", 128)},
        model={"name_or_path": config.section("model").take("hf_model", "bert-base-uncased")},
        training={
            "learning_rate": module.take("max_lr"), "warmup": module.take("warmup_prop"), "optimizer": "adamw", "adam_epsilon": 1e-8,
        },
    )  # fmt: skip
    folder = files.take("input_dir")
    if not folder:
        raise InputError(
            "dmod.input_dir: the config names no data; write the folder with train.tsv and dev.tsv", "dmod"
        )
    result.add(data={"source": "glue", "folder": folder, "task": task} if task_of_glue(task) else {"train": folder})
    processing.skip("task", "tokenizer", "no_labels", "set_type")
    module.skip("trainpath", "valpath", "output_dir", "no_labels")
    files.skip("output_dir")
    result.notes.append("Data is tokenised when a run starts and kept in the cache; there is no separate step for it.")
    result.unmatched += [*files.unused(), *processing.unused(), *module.unused()]


def _plugin(config: ForeignConfig, result: ImportedSpec) -> None:
    data, module, distill = config.section("data"), config.section("module"), config.section("distill")
    labels = data.take("labels_list")
    data.skip("header", "file_format")  # a file's own form is seen
    columns = {"text": data.take("text_a_col"), "text_pair": data.take("text_b_col"), "label": data.take("label_col")}
    regression = isinstance(labels, list) and len(labels) == 1
    model = (
        module.take("model_name_or_path")
        or ForeignConfig(module.take("encoder", {})).take("hf_model")
        or config.section("model").take("hf_model")
    )
    result.add(
        task={
            "type": "text_regression" if regression else "text_classification",
            "max_length": module.take("max_seq_len", 128),
            "labels": None if regression or not labels else [str(label) for label in labels],
        },
        model={"name_or_path": model, "tokenizer": module.take("tokenizer_path") or module.take("tokenizer")},
        data={"train": data.take("train_filepath"), "validation": data.take("val_filepath"), "columns": columns},
        training={
            "learning_rate": module.take("max_lr", 4e-5), "warmup": module.take("warmup_prop", 0.1), "optimizer": "adamw",
        },
    )  # fmt: skip
    metric = module.take("metric")
    result.add(evaluation={"best_metric": _METRICS.get(str(metric))})
    if distill.take("enable", False):
        result.unmatched.append("distill: distillation has no counterpart")
    module.skip("has_labels", "output_dir", "set_type")
    result.unmatched += [*data.unused(), *module.unused()]


def _trainer(trainer: ForeignConfig, result: ImportedSpec) -> None:
    result.add(
        training={
            "batch_size": trainer.take("train_batch_size", 1),
            "epochs": trainer.take("epochs", 1),
            "seed": trainer.take("seed"),
        },
        evaluation={"batch_size": trainer.take("val_batch_size"), "at_start": True},
    )
    if trainer.take("clip_grads", True):
        result.add(training={"max_gradient_norm": trainer.take("max_grad_norm", 1.0)})
    else:
        result.spec["training"]["max_gradient_norm"] = None
    trainer.skip(*_LOGS, "max_val_steps_per_epoch", "reset_optimizers_schedulers")
    result.unmatched += trainer.unused()
