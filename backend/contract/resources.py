"""Says where the shipped resources lie, in a checkout as in a wheel beside the packages; and lists the demo models among them."""

from dataclasses import dataclass
from pathlib import Path

from backend.contract.messages import message

_FOLDER = Path(__file__).resolve().parents[2] / "resources"


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, for example `resource("demo", "sentiment.yaml")`."""
    return _FOLDER.joinpath(*parts)


@dataclass(frozen=True)
class DemoModel:
    """A folder of `resources/demo`; `task` is what it answers as it is, empty where it is only there to begin from."""

    name: str
    use: str
    task: str = ""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return resource("demo", self.name)


DEMO_MODELS = (
    DemoModel("bert-tiny", message("a small English encoder to start from")),
    DemoModel("austen-gpt2", message("continues a text as Jane Austen might"), "causal_lm"),
    DemoModel("eng-spa-marian", message("translates the English of the Bible into Spanish"), "seq2seq_lm"),
)


def demo_model(task: str) -> DemoModel:
    """The one that goes with a task."""
    return next((model for model in DEMO_MODELS if model.task == task), DEMO_MODELS[0])
