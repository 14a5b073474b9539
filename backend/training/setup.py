"""Sets up an attempt: loads data, tokenizer and model, and restores the last checkpoint."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.compute as pc

from backend import registry
from backend.contract.catalog import Device
from backend.contract.messages import message
from backend.contract.run.events import AnyEvent, ModelLoaded, PlanMade
from backend.contract.run.folder import RunFolder
from backend.contract.run.queue import choosing_devices
from backend.contract.spec import RunSpec
from backend.data.batches import longest_sequence
from backend.data.features import Features
from backend.data.order import DataOrder
from backend.data.rows import Rows
from backend.engines.engine import LoadRequest, Split
from backend.engines.weight_formats import QUANTIZED
from backend.hardware import claims, devices, planner, run_sizes
from backend.models.location import ModelLocation
from backend.models.saved_model import BASE, base_fact
from backend.preflight import model_options, task_facts
from backend.preflight.checks import locate_model
from backend.preflight.cost import model_to_plan
from backend.preflight.datasets import Splits, load_splits
from backend.preflight.engine_choice import check_compile
from backend.preflight.messages import truncation_notes
from backend.preflight.metrics import MetricDirections
from backend.preflight.sample_lengths import sample_rows
from backend.preflight.session import FeatureSession, new_tokens, open_session
from backend.preflight.steps import total_steps, training_order
from backend.tasks.task import draws, label_counts, learned_scores, trains_apart, trivial_scores
from backend.tokenizers.added_tokens import rows_needed
from backend.training import resume, spec_change
from backend.training.checkpoints import Checkpoints
from backend.training.early_stopping import BestEvaluation, evaluations
from backend.training.event_log import EventLog
from backend.training.hosts import Hosts
from backend.training.stages import StageReporter

TRIAL_BATCHES = 4
"""A trial has rows for at least this many whole batches, because smaller ones would take less time."""


@dataclass(frozen=True)
class RunSetup:
    """An attempt that is ready for its next step."""

    hosts: Hosts
    checkpoints: Checkpoints
    session: FeatureSession
    rows: dict[str, Rows]
    features: dict[str, Features]
    evaluated: dict[str, tuple[Rows, Features]]
    """What is measured during training: `validation`, at most `evaluation.max_rows`, and `train` rows if asked for."""
    order: DataOrder
    plan: PlanMade
    best: BestEvaluation
    from_step: int
    is_evaluated: bool
    """Whether an earlier attempt has measured `from_step`."""
    evaluation_batch_size: int
    model_folder: Path
    device: str
    precision: str
    is_trial: bool = False
    """Whether its rows are a sample, on which it only measures how long a run takes."""

    @property
    def rows_per_pass(self) -> int:
        """Rows of a micro-batch, on all devices together."""
        return self.plan.micro_batch_size * self.plan.replicas

    @property
    def held_out(self) -> str:
        """The split whose rows tell how long evaluations take; empty if there is none."""
        return next((split for split in ("validation", "test") if split in self.rows), "")

    @cached_property
    def note(self) -> dict[str, Any]:
        """What inference needs to know about the model's task and, for an adapter, its base model."""
        session = self.session
        note: dict[str, Any] = {"task": session.spec.task, "facts": session.facts, "columns": dict(session.columns)}
        if session.spec.adapter is not None:
            weights = run_sizes.weight_format(session.spec, self.model_folder, self.precision)
            if weights in QUANTIZED and run_sizes.adapter_copies(session.spec) > 1:
                weights = "bfloat16"  # what it learned is added to the weights in the file, not to quantized ones
            note[BASE] = base_fact(self.model_folder, session.spec.model.name_or_path, weights)
        return note

    def numbers(self, split: str) -> np.ndarray:
        """The evaluated rows' numbers in their split."""
        return _sample_rows(len(self.rows[split]), len(self.evaluated[split][0]), self.session.spec.training.seed)


def set_up_run(
    folder: RunFolder, spec: RunSpec, log: EventLog, stages: StageReporter, hosts: Hosts, *, is_trial: bool = False
) -> RunSetup:
    """Prepare a run for its next step; `hosts` are connected. Raises InputError, RunFailed or Interrupted.

    A trial uses a sample of the rows, keeps no features, and has random weights instead of downloading the model's.
    """
    if not spec_change.compare_started(folder, spec) and hosts.is_first:
        spec_change.keep_started(folder, spec)
    earlier = resume.read_earlier(folder, hosts)
    checkpoints = Checkpoints(folder, hosts, spec.hardware.engine)
    checkpoints.clear_leftovers()
    from_step = hosts.agree(lambda: checkpoints.latest() or 0)
    engine_kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    choice = choose_device(folder, spec, engine_kind.devices)
    hosts.require_same(
        [choice.words, choice.precision],
        message("computes on {words} in {precision}", words=choice.words, precision=choice.precision),
    )
    resume.write_first_events(folder, spec, log, stages, earlier, from_step, choice)
    for kind, words in (("devices", choice.warning), ("merged", model_options.describe_merging(spec))):
        if words:
            stages.warn(kind, words)
    stages.start("finding model", unit="bytes")
    model, spec = model_to_plan(spec, stages.report) if is_trial else (locate_model(spec, stages.report), spec)
    model_options.check_new_weights(spec, model.folder)
    model_options.check_weights(spec, model.folder)
    model_options.check_adapter(spec)
    splits = _read(folder, spec, model, earlier, stages, hosts)
    if is_trial:
        few = TRIAL_BATCHES * spec.training.batch_size
        splits = replace(splits, rows={split: sample_rows(rows, few) for split, rows in splits.rows.items()})
    session = open_session(spec, splits, model, engine_kind.create())
    features = _tokenise(session, splits, stages, is_cached=not is_trial)
    hosts.require_same(
        {split: one.fingerprint for split, one in features.items()},
        message("reads different rows, or uses a different tokenizer"),
    )
    stages.start("loading model")
    order = training_order(spec, features["train"])
    split = run_sizes.split(spec, model.folder, len(choice.names))
    work, free_mb = _work(session, model, choice, features, split), run_sizes.available_mb(spec, choice.device)
    micro_batch_size, note = hosts.agree(lambda: resume.rows_of_a_pass(folder, work, choice.words, free_mb))
    if note and from_step:
        stages.warn("other_plan", note)
    plan = _plan(spec, order, micro_batch_size, split.replicas, len(features["train"]), stages)
    evaluated_rows = spec.evaluation.batch_size or work.evaluation_rows(micro_batch_size) * split.replicas
    plan = msgspec.structs.replace(plan, trivial=_trivial_scores(session, splits, features), evaluation_batch_size=evaluated_rows)  # fmt: skip
    log.write(plan)
    log.write(_load(session, spec, model, choice, features, stages))
    if from_step and (left := session.engine.restore(folder.checkpoint(from_step))):
        stages.warn("new_optimizer", left)
    return RunSetup(
        hosts=hosts,
        checkpoints=checkpoints,
        session=session,
        rows=splits.rows,
        features=features,
        evaluated=_sample_evaluated(session, splits, features, spec, stages),
        order=order,
        plan=plan,
        best=resume.best_so_far(spec, earlier, from_step),
        from_step=from_step,
        is_evaluated=any(one.step == from_step for one in evaluations(earlier)),
        evaluation_batch_size=evaluated_rows,
        model_folder=model.folder,
        device=choice.words,
        precision=choice.precision,
        is_trial=is_trial,
    )


def choose_device(folder: RunFolder, spec: RunSpec, list_devices: Callable[[], list[Device]]) -> devices.DeviceChoice:
    """Choose where the run computes, and keep the other runs of its folder from these devices. Raises InputError."""
    if spec.hardware.device != "cpu":
        claims.claim()  # before the free memory is measured: a model that only waits makes room
    available = list_devices()
    has_several = sum(device.kind != "cpu" for device in available) > 1
    is_shared = has_several and folder.job_record() is None  # a cluster gives a job devices of its own
    with choosing_devices(folder) if is_shared else nullcontext(frozenset[str]()) as taken:
        choice = devices.choose(spec, available, taken=taken)
        if choice.hosts == 1:
            folder.claim_devices(dict.fromkeys(choice.names))
    model_options.check_optimizer(spec, choice.device.kind)
    model_options.check_master_weights(spec, choice.precision)
    check_compile(spec, choice.device.kind)
    return choice


def _read(
    folder: RunFolder, spec: RunSpec, model: ModelLocation, earlier: list[AnyEvent], stages: StageReporter, hosts: Hosts
) -> Splits:
    stages.start("loading data")
    kept = task_facts.read_kept(folder)
    splits = load_splits(spec, model.folder, stages.report, kept)
    if hosts.is_first and splits.fitted is not kept:
        task_facts.keep(folder, splits.fitted)
    resume.refuse_other_rows(splits, earlier)
    for note in splits.notes:
        stages.warn("data", note)
    return splits


def _tokenise(
    session: FeatureSession, splits: Splits, stages: StageReporter, *, is_cached: bool
) -> dict[str, Features]:
    stages.start("tokenising")
    make = partial(session.features, report=stages.report) if is_cached else session.sampled_features
    features = {split: make(rows, to_train=split == "train") for split, rows in splits.rows.items()}
    for split, rows in splits.rows.items():
        stages.report_loaded(split, rows, features[split], _label_counts(session, rows))
        for note in truncation_notes(features[split].table.to_batches(), message("{split} rows", split=split)):
            stages.warn("truncation", note)
    return features


def _work(
    session: FeatureSession,
    model: ModelLocation,
    choice: devices.DeviceChoice,
    features: dict[str, Features],
    split: Split,
) -> planner.TrainingLoad:
    return planner.TrainingLoad(
        session.spec,
        model.folder,
        session.task.head,
        length=int(features["train"].lengths.max()),
        parameters=run_sizes.count_parameters(session.spec, model.folder),
        precision=choice.precision,
        split=split,
        on_cpu=choice.device.kind == "cpu",
        counts={name: len(rows) for name, rows in features.items()},
    )


def _load(
    session: FeatureSession,
    spec: RunSpec,
    model: ModelLocation,
    choice: devices.DeviceChoice,
    features: dict[str, Features],
    stages: StageReporter,
) -> ModelLoaded:
    request = LoadRequest(
        folder=model.folder,
        head=session.task.head_facts(session.facts),
        model=spec.model,
        training=spec.training,
        devices=choice.names,
        precision=choice.precision,
        vocabulary=rows_needed(session.tokenizer),
        new_tokens=new_tokens(spec, session.tokenizer, model.folder),
        max_length=max(longest_sequence(one) for one in features.values()),
        pad_token_id=session.pad_token_id,
        bos_token_id=session.tokenizer.bos_token_id,
        eos_token_id=session.tokenizer.eos_token_id,
        adapter=model_options.adapter_settings(spec),
        # The other processes would wait for one that is stopped meanwhile.
        compiling=partial(stages.compile, can_stop=devices.count_processes(spec.hardware) == 1),
        hardware=run_sizes.engine_settings(spec),
    )
    loaded = session.engine.load(request)
    if loaded.resized:
        stages.warn("resized", loaded.resized)
    return ModelLoaded(
        time=time.time(),
        architecture=loaded.architecture,
        parameters=loaded.parameters,
        trainable=loaded.trainable,
        new_weights=loaded.new_weights,
        unused_weights=loaded.unused_weights,
    )


def _plan(
    spec: RunSpec, order: DataOrder, micro_batch_size: int, replicas: int, rows: int, stages: StageReporter
) -> PlanMade:
    training = spec.training
    total = total_steps(training, order.steps_per_epoch)
    batch_size = min(training.batch_size, rows)
    if training.batch_size > rows:
        stages.warn(
            "batch_larger_than_data",
            message(
                "training.batch_size is {batch_size}, but there are only {rows} rows; every step uses all of them",
                batch_size=training.batch_size,
                rows=rows,
            ),
        )
    micro = min(micro_batch_size, -(-batch_size // replicas))
    metric, directions = spec.evaluation.best_metric, MetricDirections.of(spec)
    return PlanMade(
        time=time.time(),
        total_steps=total,
        steps_per_epoch=order.steps_per_epoch,
        batch_size=batch_size,
        micro_batch_size=micro,
        accumulation=-(-batch_size // (micro * replicas)),
        replicas=replicas,
        epochs=total / order.steps_per_epoch,
        best_metric=metric,
        greater_is_better=directions.greater_is_better(metric or "loss") is not False,
        metrics={name: better for name, better in directions.known.items() if better is not None},
    )


def _trivial_scores(session: FeatureSession, splits: Splits, features: dict[str, Features]) -> dict[str, float]:
    for split in {"validation", "test"} & splits.rows.keys():
        session.group_column(splits.rows[split])  # says now, not after the training, if it is missing
    rows = splits.rows.get("validation")
    if rows is None:
        return {}
    learned = learned_scores(session.task, features["train"].table, features["validation"].table)
    return {**trivial_scores(session.task, rows, session.columns, session.facts), **learned}


def _sample_evaluated(
    session: FeatureSession, splits: Splits, features: dict[str, Features], spec: RunSpec, stages: StageReporter
) -> dict[str, tuple[Rows, Features]]:
    """The rows evaluated during training, sampled once from the seed if only some are wanted."""
    wanted = {"validation": spec.evaluation.max_rows, "train": spec.evaluation.train_rows}
    found: dict[str, tuple[Rows, Features]] = {}
    apart = draws(session.task) or trains_apart(session.task)
    for split, count in wanted.items():
        if split not in splits.rows or count == 0:
            continue
        rows = splits.rows[split]
        if (count is None or count >= len(rows)) and not (split == "train" and apart):
            found[split] = rows, features[split]
            continue
        chosen = _sample_rows(len(rows), len(rows) if count is None else count, spec.training.seed)
        some = rows.take(chosen, f"{rows.fingerprint}-{count}-{spec.training.seed}")
        found[split] = some, session.features(some, stages.report)
    return found


def _sample_rows(rows: int, count: int, seed: int) -> np.ndarray:
    """The numbers of the evaluated rows, ascending."""
    return np.sort(np.random.default_rng(seed).permutation(rows)[:count]) if count < rows else np.arange(rows)


def _label_counts(session: FeatureSession, rows: Rows) -> dict[str, int]:
    if (several := label_counts(session.task, rows, session.columns)) is not None:
        return dict(several.most_common(100))
    column = session.task.label_column(session.columns)
    if column is None or column not in rows.table.column_names:
        return {}
    counts: Counter[str] = Counter()
    for chunk in rows.table[column].chunks:  # all labels at once may be larger than the memory
        for one in pc.call_function("value_counts", [chunk]).to_pylist():
            counts[str(one["values"])] += one["counts"]
    return dict(counts.most_common(100))
