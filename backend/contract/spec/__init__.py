"""The spec of a run as checked values, one section per file; `spec_file` reads and writes it as YAML 1.2."""

from backend.contract.spec.data import DataSection
from backend.contract.spec.evaluation import EvaluationSection
from backend.contract.spec.hardware import HardwareSection
from backend.contract.spec.model import ModelSection
from backend.contract.spec.run_spec import RunSpec, run_spec
from backend.contract.spec.section import Section, validate
from backend.contract.spec.training import TrainingSection

__all__ = [
    "DataSection",
    "EvaluationSection",
    "HardwareSection",
    "ModelSection",
    "RunSpec",
    "Section",
    "TrainingSection",
    "run_spec",
    "validate",
]
