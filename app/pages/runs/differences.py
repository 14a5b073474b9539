"""The tests of compared runs: in words, as bars and as a table, and the rows that two of them answer differently."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.backend_words import capitalize
from app.core.formatting import metric_title, number, with_full_stop
from app.core.i18n import figure, tr, trn
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.card import Card, label
from app.widgets.plots.interval_bars import IntervalBar, IntervalBars
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.predictions import ComparedRuns, DifferingRows, PairTest
from backend.contract.rpc.protocol import ErrorReply

SURE = 0.05
_TESTS = {
    "mcnemar_exact": tr("McNemar's exact test"),
    "paired_bootstrap": tr("Paired bootstrap"),
    "bootstrap_seeds_rows": tr("Bootstrap over seeds and rows"),
}


class Differences(QWidget):
    """`show_waiting` names the runs, `show_tests` fills it. A click on a test shows the rows of its two runs."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._paths: dict[str, Path] = {}
        self._tests: list[PairTest] = []
        self._pair: tuple[str, str] = ("", "")
        self._asking = LatestQuestion(client, "differing_rows", self._on_rows, self._on_no_rows, opened="", parent=self)
        self.result = label("", wrap=True)
        self.bars = IntervalBars()
        self.table = TextTable(tr("Differences"))
        self.table.row_chosen.connect(lambda row: self._ask(self._tests[row]))
        self.about_rows = label("", "muted", wrap=True)
        self.rows = TextTable(tr("Rows on which they differ"))
        tests, rows = Card(), Card(tr("Rows on which they differ"))
        for part, stretch in ((self.result, 0), (self.bars, 0), (self.table, 1)):
            tests.add(part, stretch)
        rows.add(self.about_rows)
        rows.add(self.rows, 1)
        split = RememberedSplitter("differences", Qt.Orientation.Vertical, self)
        split.hold((tests, rows), (3, 2), (330, 220))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(split)

    def show_waiting(self, paths: Sequence[Path], names: Sequence[str]) -> None:
        """The tests of these runs are being computed."""
        self._asking.stop()
        self._paths, self._tests, self._pair = dict(zip(names, paths, strict=True)), [], ("", "")
        self.result.setText(tr("Testing whether the runs differ by more than chance…"))
        self.bars.show_bars(())
        self.table.show_rows((), ())
        self._clear_rows("")

    def _clear_rows(self, words: str) -> None:
        self.about_rows.setText(words)
        self.rows.show_rows((), ())

    def show_tests(self, found: ComparedRuns) -> None:
        """Show these; of two runs also the rows."""
        sentences = [found.refusal] if found.refusal else found.sentences
        self.result.setText("\n".join(with_full_stop(capitalize(each)) for each in sentences))
        self._tests = found.tests
        names = list(self._paths)
        pair = len(names) == 2
        runs = names if pair else (tr("Runs"), tr("First"), tr("Second"))
        columns = (tr("Metric"), *runs, tr("Difference (95 %)"), "p", tr("Test"))
        self.table.show_rows(columns, [_test_cells(test, names_runs=not pair) for test in found.tests])
        self.table.set_choosable("" if pair else tr("Show the rows on which these two differ"))
        shown = found.tests if pair else [test for test in found.tests if test.metric == found.tests[0].metric]
        scale = 0.0 if pair else max((abs(end) for test in shown for end in test.interval), default=0.0)
        self.bars.show_bars([_bar(test, scale, names_runs=not pair) for test in shown])
        self._clear_rows(tr("Choose a test to see the rows on which its two runs differ.") if found.tests else "")
        if pair and found.tests:
            self._ask(found.tests[0])

    # Rows

    def _ask(self, test: PairTest) -> None:
        self._pair = (test.a, test.b)
        self._clear_rows(tr("Looking for the rows on which {a} and {b} differ…", a=test.a, b=test.b))
        self._asking.ask({"runs": [str(self._paths[name]) for name in self._pair], "names": list(self._pair)})

    def _on_rows(self, found: DifferingRows) -> None:
        a, b = self._pair
        words = [
            tr(
                "{a} and {b} answer {count} of {of} differently.",
                a=a,
                b=b,
                count=figure(found.count, ",d"),
                of=trn("{count} row", "{count} rows", found.of),
            )
        ]
        if found.only_a or found.only_b:
            words.append(
                tr(
                    "Only {a} has {only_a} of them right, only {b} {only_b}.",
                    a=a,
                    b=b,
                    only_a=figure(found.only_a, ",d"),
                    only_b=figure(found.only_b, ",d"),
                )
            )
        if len(found.rows) < found.count:
            words.append(tr("The first {count} are shown.", count=figure(len(found.rows), ",d")))
        self.about_rows.setText(" ".join(words))
        # The answers first: a text may be long.
        titles = [a, b, tr("Actual"), *found.columns[:-1]] if found.rows else []
        self.rows.show_rows(titles, [[*row[-2:], row[-3], *row[:-3]] for row in found.rows])

    def _on_no_rows(self, error: ErrorReply) -> None:
        self._clear_rows(with_full_stop(error.message))


def _test_cells(test: PairTest, *, names_runs: bool) -> tuple[str, ...]:
    return (
        metric_title(test.metric),
        *([f"{test.a} → {test.b}"] if names_runs else []),
        *(number(value) for value in test.values),
        _interval_words(test),
        figure(test.p_holm, ".2g"),
        _TESTS.get(test.test, test.test),
    )


def _interval_words(test: PairTest) -> str:
    difference, low, high = (figure(each, "+.3g") for each in (test.difference, *test.interval))
    return tr("{value} ({low} to {high})", value=difference, low=low, high=high)


def _bar(test: PairTest, scale: float, *, names_runs: bool) -> IntervalBar:
    name = f"{test.a} → {test.b}" if names_runs else metric_title(test.metric)
    return IntervalBar(name, _interval_words(test), test.difference, *test.interval, test.p_holm < SURE, scale)
