"""Sends a run's curves to an MLflow server, or to a folder or database in which MLflow keeps runs."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from backend.contract.errors import InputError
from backend.mirrors.mirror import RunDescription, TrackerSettings, check_address, import_library

MAX_METRICS, MAX_PARAMETERS = 1000, 100
"""Of one request; MLflow's own limits."""
MAX_VALUE = 500
"""Characters of a parameter."""
_STATES = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED", "interrupted": "KILLED"}


class MLflowSettings(TrackerSettings):
    """Where runs go."""

    address: str = Field("http://localhost:5000", title="Address", min_length=1, max_length=1000)
    """The tracking server, or a database such as `sqlite:////home/ada/mlflow.db`."""
    experiment: str = Field("burnish", title="Experiment", min_length=1, max_length=250)
    """The experiment that the runs belong to; it is created if it does not exist."""


class MLflow:
    """Runs of an experiment."""

    title: ClassVar[str] = "MLflow"
    description: ClassVar[str] = "A tracking server. Its token is read from MLFLOW_TRACKING_TOKEN."
    Settings = MLflowSettings

    def check(self, settings: MLflowSettings) -> None:
        """See `Tracker.check`."""
        check_address(settings.address, "address")

    def open(self, run: RunDescription, settings: MLflowSettings, run_id: str) -> "MLflowWriter":
        """See `Tracker.open`."""
        os.environ |= {
            "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        }  # fmt: skip
        client = import_library("mlflow", self.title).MlflowClient(tracking_uri=settings.address)  # seconds
        return MLflowWriter(client, run_id or _create(client, run, settings.experiment))


def _create(client: Any, run: RunDescription, experiment: str) -> str:
    found = client.get_experiment_by_name(experiment)
    if found is not None and found.lifecycle_stage != "active":
        raise InputError(
            "experiment: {experiment} was deleted in MLflow; restore it there, or choose another one",
            "experiment",
            experiment=experiment,
        )
    place = found.experiment_id if found is not None else client.create_experiment(experiment)
    run_id = client.create_run(place, start_time=int(run.started * 1000), run_name=run.name).info.run_id
    entities = import_library("mlflow.entities", MLflow.title)
    parameters = [entities.Param(key, str(value)[:MAX_VALUE]) for key, value in run.settings.items()]
    for first in range(0, len(parameters), MAX_PARAMETERS):
        client.log_batch(run_id, params=parameters[first : first + MAX_PARAMETERS])
    return run_id


class MLflowWriter:
    """Collects points and sends them a thousand at a time."""

    def __init__(self, client: Any, run_id: str) -> None:
        self.id = run_id
        self._client = client
        self._points: list[Any] = []
        client.update_run(run_id, status="RUNNING")

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """See `Writer.write`."""
        entities = import_library("mlflow.entities", MLflow.title)
        self._points += [entities.Metric(name, value, int(time * 1000), step) for name, value in values.items()]

    def rewind(self, step: int) -> bool:
        """See `Writer.rewind`."""
        return False

    def flush(self) -> None:
        """See `Writer.flush`."""
        while self._points:
            self._client.log_batch(self.id, metrics=self._points[:MAX_METRICS])
            del self._points[:MAX_METRICS]

    def close(self, state: str) -> None:
        """See `Writer.close`."""
        self._client.set_terminated(self.id, _STATES.get(state, "KILLED"))


MIRROR = MLflow()
