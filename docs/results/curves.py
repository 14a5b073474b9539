"""Runs `python -m docs.results.curves RUN …`: draws the loss of runs as docs/results/NAME.svg."""

import os
import sys
from pathlib import Path

from backend.commands.command import requested_run
from backend.contract.run.curves import Curves
from docs.results.experiments import HERE

_SIZE = 720, 300


def main() -> int:
    """Draw every run that is named."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    import pyqtgraph  # needs the platform

    application = pyqtgraph.mkQApp()
    pyqtgraph.setConfigOptions(background="w", foreground="#444444", antialias=True)
    for name in sys.argv[1:]:
        print(draw(name, HERE / f"{Path(name).name}.svg"))
    application.quit()
    return 0


def draw(run: str, path: Path) -> Path:
    """The training loss of every step, and that of the evaluations."""
    import pyqtgraph
    from pyqtgraph.exporters import SVGExporter

    rows = list(Curves(requested_run(run).events, run).rows())
    plot = pyqtgraph.PlotWidget(title=path.stem)
    plot.resize(*_SIZE)
    plot.addLegend(offset=(-10, 10))
    for title, column, pen in (
        ("training", "loss", pyqtgraph.mkPen("#9db8e8", width=1)),
        ("evaluation", "validation_loss", pyqtgraph.mkPen("#1f4fa8", width=2)),
    ):
        points = [(step, values[column]) for step, values in rows if values.get(column) is not None]
        plot.plot(*zip(*points, strict=True), pen=pen, name=title)
    plot.setLabels(bottom="step", left="loss")
    plot.show()
    pyqtgraph.mkQApp().processEvents()  # else the plot would not have found its ranges yet
    SVGExporter(plot.plotItem).export(str(path))
    return path


if __name__ == "__main__":
    sys.exit(main())
