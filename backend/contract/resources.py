"""Where the shipped resources are, in a checkout or in a wheel beside the packages; lists the demo models."""

from dataclasses import dataclass
from pathlib import Path

from backend.contract.messages import message

_FOLDER = Path(__file__).resolve().parents[2] / "resources"


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, for example `resource("demo", "sentiment.yaml")`."""
    return _FOLDER.joinpath(*parts)


def lock_file(kind: str) -> Path:
    """The lock of all packages for `cpu` or `cuda`."""
    name = f"requirements-{kind}.txt"
    shipped = resource("packaging", name)
    return shipped if shipped.exists() else _FOLDER.parent / "packaging" / name


def wheel_files() -> dict[str, Path]:
    """Name in a wheel → file, of everything that belongs to Burnish, which runs from a checkout or from a wheel."""
    root = _FOLDER.parent
    own = root if (root / "__main__.py").exists() else root / "burnish"
    inside = [path for part in ("app", "backend", "resources") for path in sorted((root / part).rglob("*"))]
    found = {f"burnish/{path.name}": path for path in sorted(own.glob("*.py"))}
    for path in inside:
        if path.is_file() and "__pycache__" not in path.parts:
            found[f"burnish/{path.relative_to(root).as_posix()}"] = path
    return found


@dataclass(frozen=True)
class DemoModel:
    """A folder of `resources/demo`; `task` is what it can already do, empty if it only serves as a starting point."""

    name: str
    use: str
    task: str = ""

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return resource("demo", self.name)


DEMO_MODELS = (
    DemoModel("bert-tiny", message("a small English encoder to start from")),
    DemoModel("austen-gpt2", message("continues a text as Jane Austen might"), "causal_lm"),
    DemoModel("eng-spa-marian", message("translates the English of the Bible into Spanish"), "seq2seq_lm"),
)


def demo_model(task: str) -> DemoModel:
    """The demo model for a task."""
    return next((model for model in DEMO_MODELS if model.task == task), DEMO_MODELS[0])
