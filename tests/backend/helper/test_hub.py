"""Models are searched on a hub and brought here by the helper, from a hub on localhost that also fails."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from backend.contract.resources import resource
from backend.models.hub_transfer import PART
from tests.backend.helper.conftest import Helper, InProcessHelper
from tests.backend.models.fake_hub import FakeHub, hub_library

COMMIT = "c" * 40
BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
SAFE = [{"rfilename": "config.json"}, {"rfilename": "model.safetensors"}]


def record(name: str, config: dict, parameters: int = 110_000_000, **more: object) -> dict:
    """What the hub says of a model."""
    return {
        "id": name, "config": config, "downloads": 1234, "tags": ["transformers", "license:apache-2.0"],
        "pipeline_tag": "fill-mask", "gated": False, "private": False, "siblings": SAFE,
        "safetensors": {"parameters": {"F32": parameters}, "total": parameters}, **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(autouse=True)
def healthy(hub: FakeHub) -> None:
    """Every test begins with a hub that answers."""
    hub.status, hub.headers, hub.raw, hub.cut_after, hub.knows_ranges = 200, {}, None, None, True
    hub.hold.set()
    hub.ranges.clear()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hf")


@pytest.fixture(scope="module")
def variables(hub: FakeHub, home: Path) -> dict[str, str]:
    """Those by which the hub library knows the hub on localhost and a cache of its own."""
    return {
        "HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
    }  # fmt: skip


@pytest.fixture
def online(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessHelper]:
    """Answers from that hub, and asks it again at once after a failure."""
    monkeypatch.setattr("backend.models.hub_transfer.PAUSES", (0.01,) * 5)
    with hub_library(**variables):
        yield InProcessHelper()


@pytest.fixture(scope="module")
def online_process(variables: dict[str, str]) -> Iterator[Helper]:
    """The same as a process, whose workers can be ended in the middle of a download."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        made = Helper()
    yield made
    made.close()


@pytest.fixture
def remote(hub: FakeHub, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A model of 8 MB on the hub under a name of its own, with what nobody needs beside it."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "README.md"):
        if (resource("demo", "bert-tiny") / name).is_file():
            (folder / name).write_bytes((resource("demo", "bert-tiny") / name).read_bytes())
    rng = np.random.default_rng(0)
    save_file({"weight": rng.standard_normal(2_000_000).astype(np.float32)}, folder / "model.safetensors")
    for name in ("pytorch_model.bin", "model.onnx", "tf_model.h5", "flax_model.msgpack"):
        (folder / name).write_bytes(b"a second copy in another format")
    name = f"team/{request.node.name.replace('_', '-')[:60]}"
    hub.repositories[name] = {"main": (COMMIT, folder)}
    return name


def parts(home: Path, name: str) -> list[Path]:
    return list((home / "hub" / f"models--{name.replace('/', '--')}" / "blobs").glob(f"*{PART}"))


def snapshot(home: Path, name: str) -> Path:
    return home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / COMMIT


def found(online: InProcessHelper, query: str, **needs: object) -> dict[str, dict]:
    answer = online.answer("hub_search", words=query, needs=needs)
    return {one["name"]: one for one in answer["models"]}


# Search


def test_a_search_tells_size_licence_downloads_and_what_fits(hub: FakeHub, online: InProcessHelper) -> None:
    hub.records = [
        record("google/bert", BERT),
        record("openai/gpt2", GPT2, 124_000_000, pipeline_tag="text-generation"),
        record("big/gpt2-xxl", GPT2, 20_000_000_000),
        record("bloke/model-GGUF", {}, siblings=[{"rfilename": "model.Q4.gguf"}], gguf={"total": 7}, safetensors=None),
        record("shy/own-code", {"model_type": "shy", "auto_map": {"AutoModel": "modeling.Shy"}}),
        record("meta/gated", GPT2, gated="manual"),
        record("old/pickled", GPT2, siblings=[{"rfilename": "pytorch_model.bin"}], safetensors=None),
        record("bare/nothing", GPT2, siblings=[{"rfilename": "config.json"}], safetensors=None),
    ]
    models = found(online, "", task="causal_lm", engine="torch", free_mb=8000)
    fits = models["openai/gpt2"]
    assert (fits["problem"], fits["licence"], fits["downloads"], fits["parameters"], fits["size_mb"]) == (
        "", "apache-2.0", 1234, 124_000_000, 496.0,
    )  # fmt: skip
    assert "causal_lm" in fits["tasks"]
    assert "is an encoder and cannot continue a text" in models["google/bert"]["problem"]
    assert "80.0 GB in float32, but only 8.0 GB is free" in models["big/gpt2-xxl"]["problem"]
    assert "only available as GGUF files" in models["bloke/model-GGUF"]["problem"]
    assert "own code cannot continue text" in models["shy/own-code"]["problem"]
    assert "Python code after you review" in models["shy/own-code"]["notes"][0]
    assert "accept its terms on its page, then sign in" in models["meta/gated"]["problem"]
    assert models["old/pickled"]["problem"] == ""
    assert "converted once, with your approval." in models["old/pickled"]["notes"][0]
    assert "it has no weights" in models["bare/nothing"]["problem"]


def test_a_search_names_the_engine_that_knows_a_family(hub: FakeHub, online: InProcessHelper) -> None:
    hub.records = [record("bigscience/bloom", {"model_type": "bloom"})]
    problem = found(online, "bloom", task="causal_lm", engine="jax")["bigscience/bloom"]["problem"]
    assert "the JAX engine does not support the architecture 'bloom'; choose PyTorch" in problem
    assert found(online, "bloom", task="causal_lm", engine="torch")["bigscience/bloom"]["problem"] == ""


def test_words_limit_the_search_and_more_is_said(hub: FakeHub, online: InProcessHelper) -> None:
    hub.records = [record(f"team/bert-{number}", BERT) for number in range(50)] + [record("team/other", BERT)]
    assert set(found(online, "other")) == {"team/other"}
    answer = online.answer("hub_search", words="bert")
    assert (len(answer["models"]), answer["is_cut"]) == (40, True)


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (401, {}, "no longer accepts your login"),
        (403, {}, "you don't have access to this on the Hub (403)"),
        (404, {}, "there is no model hub at"),
        (429, {"Retry-After": "17"}, "wait 17 seconds"),
        (503, {}, "returned an error (503)"),
    ],
)
def test_a_hub_that_refuses_is_said_at_once(
    hub: FakeHub, online: InProcessHelper, status: int, headers: dict, said: str
) -> None:
    hub.status, hub.headers = status, headers
    hub.requests.clear()
    assert said in online.mistake("hub_search", words="bert")
    assert len(hub.requests) == 1  # the hub library would have asked six times


@pytest.mark.parametrize("raw", [b"<html>Sign in to the wifi</html>", b'{"error": 1}', b'[{"name": "no id"}]', b"[3]"])
def test_an_answer_that_is_no_hubs_is_said(hub: FakeHub, online: InProcessHelper, raw: bytes) -> None:
    hub.raw = raw
    assert "is not a model hub" in online.mistake("hub_search", words="bert")


def test_odd_records_do_no_harm(hub: FakeHub, online: InProcessHelper) -> None:
    hub.records = [{"id": "team/bare"}, record("team/odd", [], tags=None, siblings=None, safetensors=None)]  # type: ignore[arg-type]
    assert all("does not specify an architecture" in one["problem"] for one in found(online, "").values())


# One model, and its download


def test_what_a_download_would_bring_is_told_before(hub: FakeHub, online: InProcessHelper, remote: str) -> None:
    hub.records = [record(remote, BERT)]
    told = online.answer("hub_model", name=remote, needs={"task": "masked_lm"})
    assert "model.safetensors" in told["files"]
    assert not {"pytorch_model.bin", "model.onnx", "tf_model.h5", "flax_model.msgpack"} & set(told["files"])
    assert told["total_mb"] == told["left_mb"] > 8
    assert (told["commit"], told["choice"]["problem"]) == (COMMIT, "")
    assert told["choice"]["size_mb"] == pytest.approx(8.0, abs=0.01)


def test_a_download_tells_bytes_of_the_file_and_of_all_and_is_then_in_the_cache(
    hub: FakeHub, online: InProcessHelper, remote: str, home: Path
) -> None:
    online.progress.clear()
    got = online.answer("download_model", name=remote)
    last = online.progress[-1]["progress"]
    assert last["total"] >= last["done"] >= 8_000_080  # the last word may be left out, as the answer follows at once
    assert any(
        (one["progress"]["part"], one["progress"]["part_total"]) == ("model.safetensors", 8_000_080)
        for one in online.progress
    )
    assert got["folder"] == str(snapshot(home, remote))
    assert not (snapshot(home, remote) / "pytorch_model.bin").exists()
    cached = {one["name"]: one for one in online.answer("model_choices", needs={})["models"]}
    assert (cached[remote]["group"], cached[remote]["is_here"]) == ("cache", True)
    hub.requests.clear()
    assert online.answer("download_model", name=remote)["fetched_mb"] == 0
    assert not any("model.safetensors" in path for path in hub.requests)


def test_a_connection_cut_in_the_middle_is_taken_up_again(
    hub: FakeHub, online: InProcessHelper, remote: str, home: Path
) -> None:
    hub.cut_after = 3_000_000
    online.answer("download_model", name=remote)
    assert hub.ranges == ["bytes=3000000-"]
    original = hub.repositories[remote]["main"][1] / "model.safetensors"
    assert (snapshot(home, remote) / "model.safetensors").read_bytes() == original.read_bytes()


def stop_midway(hub: FakeHub, online_process: Helper, name: str, home: Path, until: Callable[..., None]) -> Path:
    """Stop a download when about half is here; what is left of it."""
    hub.hold.clear()
    number = online_process.ask("download_model", name=name)
    until(lambda: any(part.stat().st_size > 3_000_000 for part in parts(home, name)))
    online_process.cancel(number)
    assert online_process.reply(number)["error"]["message"] == "cancelled"
    hub.hold.set()
    [part] = parts(home, name)
    return part


def test_a_stopped_download_keeps_what_is_there_and_goes_on(
    hub: FakeHub, online_process: Helper, remote: str, home: Path, until: Callable[..., None]
) -> None:
    kept = stop_midway(hub, online_process, remote, home, until).stat().st_size
    assert 3_000_000 < kept < 8_000_080
    assert online_process.answer("hub_model", name=remote)["left_mb"] < 5.2
    got = online_process.answer("download_model", name=remote)
    assert hub.ranges == [f"bytes={kept}-"]
    assert got["fetched_mb"] < 5.5
    assert parts(home, remote) == []


def test_a_server_without_ranges_is_begun_anew(hub: FakeHub, online: InProcessHelper, remote: str, home: Path) -> None:
    hub.cut_after, hub.knows_ranges = 3_000_000, False
    online.answer("download_model", name=remote)
    original = hub.repositories[remote]["main"][1] / "model.safetensors"
    assert (snapshot(home, remote) / "model.safetensors").read_bytes() == original.read_bytes()


def test_a_damaged_beginning_is_found_and_thrown_away(
    hub: FakeHub, online_process: Helper, remote: str, home: Path, until: Callable[..., None]
) -> None:
    part = stop_midway(hub, online_process, remote, home, until)
    part.write_bytes(b"x" * part.stat().st_size)
    assert "does not match the size or checksum on the Hub" in online_process.mistake("download_model", name=remote)
    assert parts(home, remote) == []
    assert online_process.answer("download_model", name=remote)["fetched_mb"] > 8


def test_a_plan_downloads_no_weights(hub: FakeHub, online: InProcessHelper, remote: str, home: Path) -> None:
    data = str(resource("demo", "sentiment", "train.csv"))
    spec = {
        "version": 1, "task": {"type": "text_classification"}, "model": {"name_or_path": remote},
        "data": {"source": "files", "train": data, "validation": 0.1},
    }  # fmt: skip
    hub.requests.clear()
    plan = online.answer("plan", spec=spec)
    assert plan["parameters"] > 4e6  # of the configuration
    assert "The run first downloads the model's weights: 8 MB" in plan["notes"]
    assert not any("resolve" in path and path.endswith("model.safetensors") for path in hub.requests)
    assert parts(home, remote) == []


def test_names_that_are_no_models_are_said(hub: FakeHub, online: InProcessHelper) -> None:
    assert "the Hub has no model team/nothing that you have access to" in online.mistake(
        "download_model", name="team/nothing"
    )
    assert "is not the name of a Hub model" in online.mistake("download_model", name="two words")
    assert "the Hub has no model team/nothing" in online.mistake("hub_model", name="team/nothing")


def test_offline_nothing_is_asked(hub: FakeHub, variables: dict[str, str]) -> None:
    hub.requests.clear()
    with hub_library(**variables | {"HF_HUB_OFFLINE": "1"}):
        for query in ("hub_search", "hub_model", "download_model"):
            assert "Burnish is in offline mode" in InProcessHelper().mistake(query, name="team/x")
    assert hub.requests == []
