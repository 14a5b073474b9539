"""A small real helper process: the real catalog, and fixed answers about one data file and three models."""

import csv
import functools
import json
import shutil
import sys
import time
from pathlib import Path

import msgspec

from backend import catalog
from backend.contract.catalog import Device
from backend.contract.errors import Fix, InputError
from backend.contract.resources import resource
from backend.contract.rpc import data, interactive, models, protocol
from backend.contract.rpc import predictions as contract
from backend.contract.rpc.data import (
    ColumnReport,
    DataPreview,
    DataReport,
    GuessedColumn,
    LabelShare,
    NumberSummary,
    SplitReport,
)
from backend.contract.rpc.interactive import Answer
from backend.contract.rpc.models import CachedModel, CachedModels, ModelCode, ModelDescription
from backend.contract.rpc.plan import DeviceList, DiskPart, DiskPlan, DiskVolume, PlanPart, RunPlan
from backend.contract.run import cost
from backend.contract.run.cost import MemoryFix, TimePart
from backend.contract.run.folder import RunFolder
from backend.helper.queries import (
    inference,
    machines,
    prediction_filter,
    prediction_statistics,
    predictions,
    runs,
    trackers,
)

REAL = {
    query.name: query.answer
    for module in (machines, prediction_filter, prediction_statistics, predictions, runs, trackers)
    for query in module.QUERIES
}

DEMO = {
    "version": 1,
    "name": "sentiment",
    "task": {"type": "text_classification", "max_length": 128},
    "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
    "data": {
        "source": "files",
        "train": str(resource("demo", "sentiment", "train.csv")),
        "validation": str(resource("demo", "sentiment", "validation.csv")),
        "columns": {"text": "text", "label": "label"},
    },
    "training": {"epochs": 4, "batch_size": 16, "learning_rate": 3e-4, "warmup": 0.06, "seed": 42},
    "evaluation": {"best_metric": "accuracy"},
    "hardware": {"engine": "torch", "device": "auto"},
}


RTE = DataPreview(
    columns=["index", "sentence1", "sentence2", "label"],
    rows=[["0", "No apples were sold in the market today.", "Apples were sold.", "not_entailment"]],
    row_count=12,
    guessed_columns={"text": "sentence1", "text_pair": "sentence2", "label": "label"},
    label_counts={"not_entailment": 6, "entailment": 6},
)


GLANCE = data.DataSummary(
    splits=[
        data.SplitSummary(
            split="train",
            rows=2158,
            unusable=2,
            reasons={"no text": 2},
            first_unusable=[
                data.UnusableRow("train.csv", 118, "no text"),
                data.UnusableRow("train.csv", 902, "no text"),
            ],
            repeated=11,
        ),
        data.SplitSummary(split="validation", rows=240, in_train=7),
    ],
    lengths=data.LengthSummary(
        unit="tokens",
        rows=2000,
        spread=NumberSummary(count=2000, mean=17.2, std=9, min=3, p50=15, p95=35, p99=50, p99_9=68.2, max=91),
        limit=64,
        over=6,
        counts=[500, 900, 400, 190, 4, 6],
        width=13.0,
    ),
    warnings=["7 of 240 validation rows (2.9%) also occur in the training data, so scores on them mean little."],
)


known_catalog = functools.cache(catalog.catalog)


def load() -> None:
    """What the answers need, so that forks have it; pyarrow loads pandas with its first array."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from backend.data import csv_file  # noqa: F401
    from backend.inference import predictions_file  # noqa: F401

    known_catalog()


def recognise(paths: list[str], split: str | None) -> object:
    """What the backend itself says; it is asked for seldom and imports much."""
    from backend.inspect import recognition

    try:
        return recognition.recognise(paths, split)
    except InputError as error:
        return protocol.ErrorReply(str(error), error.field)


OF_OTHER_TASKS = ("similar.csv", "emma.txt", "films.csv")
"""Files that the backend itself looks at, which says for what they are made; its imports take long."""


def preview_of_backend(arguments: dict) -> DataPreview | protocol.ErrorReply:
    """What the backend itself says."""
    from backend.helper.queries import data as queries

    try:
        return next(query.answer for query in queries.QUERIES if query.name == "preview_data")(arguments, silent)
    except InputError as error:
        return protocol.ErrorReply(str(error), error.field)


def preview(data: dict) -> DataPreview | protocol.ErrorReply:
    """The first lines of a file with the columns text and label; of any folder of GLUE but `nowhere` the same row."""
    if data["source"] == "glue":
        told = protocol.ErrorReply("data.folder: there is no folder nowhere; check the path", "data.folder")
        return told if data["folder"] == "nowhere" else RTE
    path = Path(data["train"])
    if not path.is_file():
        return protocol.ErrorReply(f"data.train: there is no file {path}; choose another", "data.train")
    with path.open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    known = {"text": "text", "label": "label"} if {"text", "label"} <= set(columns) else {}
    return DataPreview(
        columns=columns,
        rows=rows[:100],
        row_count=len(rows),
        guessed_columns=known,
        guess_reasons=dict.fromkeys(known, "a common name"),
        unfit={"label": {"text": "holds 2,400 unique values in 2,400 rows"}},
        best_guesses={part: GuessedColumn(part, "a common name") for part in known},
        label_counts={"negative": 1200, "positive": 1200},
        skipped_count=2,
        skipped=[f"{path.name}:118 the text is empty", f"{path.name}:902 the text is empty"],
        files=[str(path)],
    )


def reported(arguments: dict) -> DataReport | protocol.ErrorReply | None:
    """A recorded report on the demo; of `never.csv` it never comes, and a missing file is a mistake."""
    path = Path((arguments.get("spec") or arguments)["data"]["train"])
    if path.name == "never.csv":
        return None
    if not path.stat().st_size:
        return protocol.ErrorReply(f"data.train: {path.name} is empty; use a file with rows", "data.train")
    text = NumberSummary(count=2400, mean=11.94, std=7.1, min=1, p50=10, p95=26, p99=36, p99_9=53.6, max=62)
    shares = [LabelShare("negative", 1202, 0.5008), LabelShare("positive", 1198, 0.4992)]
    columns = {
        "text": ColumnReport(part="text", kind="text", empty=2, words=text),
        "label": ColumnReport(part="label", kind="label", empty=0, distinct=2, labels=shares),
    }
    train = SplitReport(
        files=[str(path)],
        rows=2400,
        columns=columns,
        duplicates=11,
        first_duplicates=[["train.csv:1045", "train.csv:1771"]],
        unusable=2,
        unusable_reasons={"the text is empty": 2},
        first_unusable=["train.csv:118: the text is empty"],
    )
    validation = SplitReport(files=[str(path)], rows=600, columns=columns, duplicates=0, in_train=7)
    return DataReport(splits={"train": train, "validation": validation}, inputs=["text"], seconds=0.1)


def described(name: str, converted: bool = False) -> ModelDescription | protocol.ErrorReply:
    """One of three models by the end of its name."""
    if name.endswith("nowhere"):
        return protocol.ErrorReply(
            f"model.name_or_path: there is no model {name}; choose a folder", "model.name_or_path"
        )
    old = name.endswith("old-weights") and not converted
    return ModelDescription(
        name=name,
        folder=name,
        found="folder",
        architecture="BertForSequenceClassification",
        model_type="bert",
        parameters=4_386_178,
        size_mb=8.8 if not old else 9.1,
        weights_format="bin" if old else "safetensors",
        dtype="float16",
        licence="MIT",
        max_length=96 if name.endswith("few-positions") else 512,
        vocabulary=30522,
        tokenizer="WordPiece, 30,522 pieces; fits the model",
        needs_conversion=old,
        needs_remote_code=name.endswith("own-code"),
        code={name: "c0ffee"} if name.endswith("own-code") else {},
        code_files=["modeling.py"] if name.endswith("own-code") else [],
        code_agreed=name in AGREED,
        commit="c0ffee" if name.endswith("own-code") else "",
        notes=["A new head with as many outputs as the data has labels will be drawn and trained."],
    )


AGREED: set[str] = set()
"""Models to whose code the person has agreed."""
DEMO_MODEL = str(resource("demo", "bert-tiny"))
HERE = [
    models.ModelChoice(
        name=DEMO_MODEL, group="demo", title="bert-tiny", use="a small encoder to begin from", model_type="bert",
        parameters=4_386_178, size_mb=8.8, licence="apache-2.0", tasks=["text_classification", "masked_lm"],
    ),
    models.ModelChoice(
        name="/runs/2026-11-20-0900-poems/model", group="run", title="2026-11-20-0900-poems", model_type="gpt2",
        tasks=["causal_lm"], problem="a gpt2 model is too shy for this; choose another",
    ),
    models.ModelChoice(
        name="google/mt5-small", group="cache", model_type="mt5", size_mb=1200.0, licence="apache-2.0", used=1.7e9,
        tasks=["seq2seq_lm"], notes=["Its weights are only available as pytorch_model.bin: they are converted once."],
    ),
]  # fmt: skip
"""Models that fit, do not fit, and fit with a note."""
ON_HUB = [
    models.ModelChoice(
        name="team/base", group="hub", use="fills in masked words", model_type="bert", parameters=110_000_000,
        size_mb=440.0, licence="mit", downloads=61_000_000, tasks=["masked_lm"], is_here=False,
    ),
    models.ModelChoice(
        name="team/gated", group="hub", model_type="llama", downloads=1000, is_here=False,
        problem='it is gated',
    ),
    models.ModelChoice(name="team/never", group="hub", model_type="bert", downloads=5, is_here=False),
]  # fmt: skip
BROUGHT = models.DownloadedModel("team/base", "c0ffee", DEMO_MODEL, 440.0, 2.0)


def searched(words: str) -> models.HubSearch | protocol.ErrorReply | None:
    """Models by their name; `offline` cannot be asked, `slow` never answers."""
    if words == "slow":
        return None
    if words == "offline":
        return protocol.ErrorReply("the Hub cannot be reached (ConnectError); check the network")
    return models.HubSearch([one for one in ON_HUB if words in one.name])


def of_hub(name: str) -> models.HubModel:
    """Two files, a part of which is here."""
    choice = next(one for one in ON_HUB if one.name == name)
    return models.HubModel(
        choice=choice, commit="c0ffee" * 6, files=["config.json", "model.safetensors"], total_mb=440.0, left_mb=340.0,
        free_mb=50_000.0, page=f"https://hub.example/{name}",
    )  # fmt: skip


FULL_DISK = DiskPlan(
    parts=[DiskPart("Checkpoints", 158)],
    volumes=[DiskVolume("/runs", 211, 190, 1000)],
    problem="The disk will be full: the run writes about 211 MB to /runs, where 190 MB is free",
)


def planned(spec: dict) -> RunPlan | protocol.ErrorReply:
    """A plan that follows from the batch size; an absurd one does not fit, and 90 epochs fill the disk."""
    training = {"batch_size": 16, "epochs": 3, "learning_rate": 3e-4, **spec.get("training", {})}
    batch, epochs = training["batch_size"], training["epochs"]
    if training["learning_rate"] > 1:
        return protocol.ErrorReply("training.learning_rate: 2 is too large; choose 1 or less", "training.learning_rate")
    per_epoch = -(-2400 // batch)
    memory = 380.0 + batch * 6
    fits = memory < 6000
    return RunPlan(
        rows=2400,
        features=2400,
        steps_per_epoch=per_epoch,
        total_steps=int(per_epoch * epochs),
        batch_size=batch,
        micro_batch_size=batch,
        accumulation=1,
        tokens_per_epoch=68_400,
        parameters=4_386_178,
        trainable=4_386_178,
        device="cpu",
        precision="float32",
        precision_reason="float32: this processor has no bfloat16 instructions",
        memory=[PlanPart("weights and optimizer", 70.2), PlanPart("activations", memory - 70.2)],
        memory_mb=memory,
        available_mb=6000.0,
        fits=fits,
        disk=FULL_DISK if epochs == 90 else None,
        **measured_time(int(per_epoch * epochs)),
        problems=[] if fits else [f"A batch of {batch} rows does not fit; choose fewer rows per device"],
    )


MEASURED: list[cost.Measurement] = []
"""What was measured, which every later plan reckons with."""


def measured(spec: dict) -> cost.MeasuredTime | protocol.ErrorReply | None:
    """Of 7 epochs the answer never comes, 48 rows are too many for the memory, and 96 cannot be measured."""
    if spec["training"]["epochs"] == 7:
        return None
    if spec["training"]["batch_size"] == 48:
        remedy = MemoryFix(title="LoRA adapter", changes={"adapter": {"type": "lora"}}, memory_mb=470, fits=True)
        return cost.MeasuredTime(shortage="the computer ran out of memory", remedies=[remedy])
    if spec["training"]["batch_size"] == 96:
        return protocol.ErrorReply("data.train: the file has gone", "data.train")
    found = cost.Measurement(
        time=time.time() - 200, mean_length=17.3, longest=91, steps=31, step_seconds=0.4, memory_mb=1250.0
    )
    MEASURED.append(found)
    return cost.MeasuredTime()


def measured_time(steps: int) -> dict:
    """What a plan says of the time when it was measured; of one that was not it is that of a comparable run."""
    if not MEASURED:
        return {"seconds": 52.0}
    return {
        "seconds": steps * 0.5,
        "least_seconds": steps * 0.4,
        "most_seconds": steps * 0.6,
        "measured": MEASURED[-1],
        "time": [TimePart("Training", steps * 0.5, f"{steps} steps", steps * 0.4, steps * 0.6)],
    }


OPEN: list[str] = []
"""What was asked and not let go."""


def collected(arguments: dict) -> object:
    """What the real question answers about a row for a file."""
    try:
        return next(one.answer for one in inference.QUERIES if one.name == "add_row")(arguments, silent)
    except InputError as error:
        return protocol.ErrorReply(str(error), error.field)


def silent(progress: protocol.Progress) -> None:
    """Nobody listens."""


def said(arguments: dict) -> Answer | protocol.ErrorReply | None:
    """A fixed answer to a typed row; `never` is never answered, and austen-gpt2 says other things than any other model."""
    row = arguments["rows"][0]
    text = row.get("text", "")
    if text == "never":
        return None
    if text == "nonsense":
        return protocol.ErrorReply("input: no text; enter something else")
    if arguments["target"] == "nowhere":
        return protocol.ErrorReply("there is no model nowhere; choose a folder")
    writes, is_other = arguments["task"] == "causal_lm", arguments["target"].endswith("austen-gpt2")
    positive = 0.8 if not is_other else 0.1 if text == "otherwise" else 0.9
    own = (
        {"prediction": " lived a king" if is_other else " lived a queen"}
        if writes
        else {
            "prediction": "pos" if positive > 0.5 else "neg",
            "probability_neg": 1 - positive,
            "probability_pos": positive,
        }
    )
    return Answer(
        task=arguments["task"],
        model=arguments["target"],
        device="cpu",
        rows=[{**row, **own}],
        note="" if writes else "This model was not trained for this task: its new head is random.",
        seconds=0.012,
    )


def predicted_file(arguments: dict) -> object:
    """Predictions of a file whose column is called `text`, or is said to be another; those of `never.csv` never come."""
    run, data = RunFolder(arguments["run"]), Path(arguments["data"])
    if data.name == "never.csv":
        return None
    try:
        words = data.read_text(encoding=arguments["settings"].get("data.encoding", "utf-8"))
    except UnicodeDecodeError:
        fix = Fix("Read as Windows-1252", {"data.encoding": "windows-1252"}, ("poesía",), f"{data.name} is not UTF-8:")
        return protocol.ErrorReply("use --set data.encoding=windows-1252", fix=fix)
    columns = words.splitlines()[0].split(",")
    chosen = arguments["columns"].get("text", "text")
    if chosen not in columns:
        return protocol.ErrorReply(
            f"data.columns.text: there is no column 'text'; there are {', '.join(columns)}", "data.columns.text"
        )
    name = data.stem
    csv_path, parquet = run.predictions(name), run.predictions(name, "parquet")
    shutil.copy(run.predictions("validation", "parquet"), parquet)
    return contract.PredictedFile(
        name=name, csv=str(csv_path), parquet=str(parquet), rows=3, skipped=[f"{data.name}:4: no text"],
        skipped_count=1, metrics={"accuracy": 0.5}, seconds=0.1,
    )  # fmt: skip


def file_parts(arguments: dict) -> contract.FileFit:
    """The columns of a file, none of which is found to be the text."""
    columns = Path(arguments["data"]).read_text(encoding="utf-8").splitlines()[0].split(",")
    parts = [contract.FilePart(name="text", title="Text"), contract.FilePart(name="label", title="Label", needed=False)]
    return contract.FileFit(columns=columns, rows=3, parts=parts, first={columns[0]: "A joy"})


def pieces(request: protocol.Request) -> list[protocol.Progress]:
    """What is told before the answer."""
    if request.query == "predict_file":
        return [protocol.Progress(text="Predicting"), protocol.Progress(500, 2000, "rows")]
    if request.query == "download_model":
        return [protocol.Progress(110e6, 440e6, "bytes", "", "model.safetensors", 100e6, 430e6)]
    if request.query == "measure_time":
        return [protocol.Progress(5, 8, "", "", "training", 2.0, 5.0)]
    if request.query == "data_report":
        return [protocol.Progress(1200, 2400, "rows")]
    if request.query != "answer" or request.arguments["task"] != "causal_lm":
        return []
    return [protocol.Progress(1, 0, "pieces", " lived"), protocol.Progress(2, 0, "pieces", " a queen")]


def answered(request: protocol.Request) -> object:
    """The answer to one question."""
    arguments = request.arguments
    match request.query:
        case "begin_anew":
            return [kept.clear() for kept in (AGREED, MEASURED, OPEN)]
        case "catalog":
            return known_catalog()
        case "demo_spec":
            return {"spec": DEMO}
        case "devices":
            return DeviceList([Device("cpu", 0, "Processor, 2 cores", 8000.0, 6000.0, ["float32"])])
        case "cached_models":
            return CachedModels([CachedModel("google/mt5-small", 1200.0)])
        case "model_choices":
            return models.ModelChoices(HERE)
        case "hub_search":
            return searched(arguments["words"])
        case "hub_model":
            return of_hub(arguments["name"])
        case "download_model":
            return None if arguments["name"] == "team/never" else BROUGHT
        case "recognise_data":
            return recognise(arguments["paths"], arguments["split"] or None)
        case "data_glance":
            return GLANCE
        case "data_row":
            return data.DataRow("train.csv:5", {"text": "word " * 500, "label": "positive"})
        case "export_unusable":
            return protocol.ExportedFile(arguments["output"], 2)
        case "preview_data" if str(arguments["data"].get("train")).endswith(OF_OTHER_TASKS):
            return preview_of_backend(arguments)
        case "preview_data":
            return preview(arguments["data"])
        case "data_report":
            return reported(arguments)
        case "describe_model":
            return described(arguments["name_or_path"])
        case "model_code":
            name = arguments["target"]
            return ModelCode(code={name: "c0ffee"}, files=["modeling.py"], folders=[name], agreed=name in AGREED)
        case "agree_to_code" if arguments["code"] == {arguments["target"]: "c0ffee"}:
            AGREED.add(arguments["target"])
            return ModelCode(code=arguments["code"], agreed=True)
        case "convert_model" if arguments.get("consent") is True:
            return described(arguments["name_or_path"], converted=True)
        case "plan":
            return planned(arguments["spec"])
        case "measure_time":
            return measured(arguments["spec"])
        case name if name in REAL:
            try:
                return REAL[name](arguments, silent)
            except InputError as error:
                return protocol.ErrorReply(str(error), error.field)
        case "predict_file":
            return predicted_file(arguments)
        case "file_parts":
            return file_parts(arguments)
        case "answer":
            OPEN.append(arguments["target"])
            return said(arguments)
        case "let_go" | "open_models":
            OPEN[:] = [] if request.query == "let_go" else sorted(set(OPEN))
            return interactive.OpenModels(OPEN)
        case "add_row":
            return collected(arguments)
        case _:
            return protocol.ErrorReply(f"{request.query} is not answered here")


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        request = protocol.Request(**json.loads(line))
        if request.query == "cancel":
            continue
        for progress in pieces(request):
            sys.stdout.write(msgspec.json.encode(protocol.Reply(request.id, progress=progress)).decode() + "\n")
            sys.stdout.flush()
        answer = answered(request)
        if answer is None:
            continue
        is_mistake = isinstance(answer, protocol.ErrorReply)
        reply = protocol.Reply(request.id, error=answer) if is_mistake else protocol.Reply(request.id, answer=answer)
        sys.stdout.write(msgspec.json.encode(reply).decode() + "\n")
        sys.stdout.flush()
