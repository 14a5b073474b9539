"""What a hostile input is: how it is made, the command that people would most likely give it to, and what that must answer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backend.contract.resources import resource

MODEL = str(resource("demo", "bert-tiny"))
ROWS = str(resource("demo", "sentiment", "validation.csv"))
CHAT = '[{"role": "user", "content": "hi"}]'

COMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "spec": {
        "plan": ("plan", "{}"),
        "train": ("train", "{}"),
        "data prepare": ("data", "prepare", "{}"),
        "data report": ("data", "report", "{}"),
        "import": ("import", "{}"),
    },
    "data": {
        "data report": ("data", "report", "{}"),
        "data recognise": ("data", "recognise", "{}"),
        "predict": ("predict", MODEL, "--task", "text_classification", "--data", "{}", "--output", "out.csv"),
        "evaluate": ("evaluate", MODEL, "--task", "text_classification", "--data", "{}"),
        "tokenizer train": ("tokenizer", "train", "--data", "{}", "--output", "new-tokenizer"),
        "squad": ("data", "report", "{}", "--source", "squad"),
        "parallel": ("data", "report", "{}", "--source", "parallel"),
        "conll": ("data", "report", "{}", "--source", "conll"),
    },
    "text": {
        "tokenize --file": ("tokenize", MODEL, "--file", "{}"),
        "tokenize --counts": ("tokenize", MODEL, "--file", "{}", "--counts"),
        "tokenize --messages": ("tokenize", MODEL, "--messages", "{}"),
        "tokenizer extend": ("tokenizer", "extend", MODEL, "--tokens", "{}"),
        "import": ("import", "{}"),
    },
    "template": {"tokenize": ("tokenize", MODEL, "--messages", CHAT, "--chat-template", "{}")},
    "tokenizer": {
        "tokenize": ("tokenize", "{}", "--text", "hello"),
        "tokenizer extend": ("tokenizer", "extend", "{}", "--add", "word"),
        "tokenize --messages": ("tokenize", "{}", "--messages", CHAT),
    },
    "model": {
        "plan": ("plan", "spec.yaml", "--set", "model.name_or_path={}"),
        "tokenize": ("tokenize", "{}", "--text", "hello"),
        "predict": ("predict", "{}", "--task", "text_classification", "--data", ROWS, "--output", "out.csv"),
        "generate": ("generate", "{}", "--prompt", "hello"),
    },
    "setting": {"data report": ("data", "report", ROWS, "--set", "{}"), "plan": ("plan", "spec.yaml", "--set", "{}")},
    "argument": {
        "predict": ("predict", "{}", "--data", ROWS, "--output", "out.csv"),
        "tokenize": ("tokenize", "{}", "--text", "hello"),
        "resume": ("resume", "{}"),
        "export": ("export", "{}", "--csv", "-"),
        "plan": ("plan", "{}"),
    },
}  # fmt: skip
"""Kind of input → the commands that take one, the likeliest first; `{}` is what the input's `make` returns."""


@dataclass(frozen=True)
class Hostile:
    """One input. `make` writes what it needs into an empty folder and returns what is named on the command line."""

    name: str
    kind: str
    make: Callable[[Path], str | Path]
    words: str = ""
    """A part of the sentence that the likeliest command must answer."""
    code: int = 2
    command: str = ""
    """One of the kind's commands; empty takes its first."""

    @property
    def likeliest(self) -> tuple[str, ...]:
        """The command that people would give it to."""
        commands = COMMANDS[self.kind]
        return commands[self.command or next(iter(commands))]


def file(name: str, content: str | bytes) -> Callable[[Path], Path]:
    """Makes a file."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return folder / name

    return make


def given(argument: str) -> Callable[[Path], str]:
    """Makes nothing: the argument alone is hostile."""
    return lambda _: argument
