"""Owns how the files of each GLUE task look: folder, columns, labels, and where there is no header or a second file."""

from dataclasses import dataclass, field

_PARSES = ("sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse")
_MNLI = ("index", "promptID", "pairID", "genre", *_PARSES, "sentence1", "sentence2")
_STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2")
_PAIR = ("index", "sentence1", "sentence2")


@dataclass(frozen=True)
class Layout:
    """The files of one task."""

    folder: str
    """How the benchmark calls the folder."""
    texts: tuple[str, ...]
    """The one or two columns of text."""
    label: str
    labels: tuple[str, ...]
    """All labels; empty for numbers."""
    headers: tuple[tuple[str, ...], ...]
    """The first lines of its files that are known."""
    without_header: tuple[str, ...] = ()
    """Names for the columns of files without a header; empty where all have one."""
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """`dev` and `test` → their files, where there are two: matched, then mismatched."""

    def has(self, header: tuple[str, ...]) -> bool:
        """Whether a file with this header is one of the task's, or none of GLUE's that has the task's texts."""
        return header in self.headers or (not tasks_of(header) and set(self.texts) <= set(header))

    def is_row(self, cells: tuple[str, ...]) -> bool:
        """Whether a first line is a row already."""
        at = self.without_header.index(self.label) if self.without_header else 0
        return bool(self.without_header) and len(cells) == len(self.without_header) and cells[at] in self.labels

    def metric_name(self, file: str) -> str:
        """What the metrics of a file are called beside the other part's; empty where there is no other."""
        matched, mismatched = zip(*self.parts.values(), strict=True) if self.parts else ((), ())
        return "{metric}" if file in matched else "{metric}_mm" if file in mismatched else ""


LAYOUTS = {
    "cola": Layout(
        "CoLA", ("sentence",), "label", ("0", "1"), (("index", "sentence"),),
        without_header=("source", "label", "original_label", "sentence"),
    ),
    "sst2": Layout("SST-2", ("sentence",), "label", ("0", "1"), (("sentence", "label"), ("index", "sentence"))),
    "mrpc": Layout(
        "MRPC", ("#1 String", "#2 String"), "Quality", ("0", "1"),
        (
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("index", "#1 ID", "#2 ID", "#1 String", "#2 String"),
        ),
    ),
    "stsb": Layout("STS-B", ("sentence1", "sentence2"), "score", (), ((*_STSB, "score"), _STSB)),
    "qqp": Layout(
        "QQP", ("question1", "question2"), "is_duplicate", ("0", "1"),
        (("id", "qid1", "qid2", "question1", "question2", "is_duplicate"), ("id", "question1", "question2")),
    ),
    "mnli": Layout(
        "MNLI", ("sentence1", "sentence2"), "gold_label", ("contradiction", "entailment", "neutral"),
        (
            (*_MNLI, "label1", "gold_label"),
            (*_MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"),
            _MNLI,
            _PAIR,  # the diagnostic set, which models of MNLI answer
        ),
        parts={
            "dev": ("dev_matched.tsv", "dev_mismatched.tsv"),
            "test": ("test_matched.tsv", "test_mismatched.tsv"),
        },
    ),
    "qnli": Layout(
        "QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment"),
        (("index", "question", "sentence", "label"), ("index", "question", "sentence")),
    ),
    "rte": Layout("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment"), ((*_PAIR, "label"), _PAIR)),
    "wnli": Layout("WNLI", ("sentence1", "sentence2"), "label", ("0", "1"), ((*_PAIR, "label"), _PAIR)),
}  # fmt: skip
"""GLUE task → how its files look, as the benchmark's download of 2018 has them."""


def tasks_of(first: tuple[str, ...]) -> list[str]:
    """The tasks whose files may begin with these cells."""
    return [task for task, layout in LAYOUTS.items() if first in layout.headers or layout.is_row(first)]
