"""Owns the model that a plan is made for: nobody wants gigabytes downloaded to learn what a run would cost."""

from backend.contract.places import cache_folder, is_offline
from backend.contract.spec import RunSpec
from backend.data.sources.source import Report
from backend.hardware.planner import check_new_weights
from backend.models import location
from backend.models.location import ModelLocation
from backend.preflight.checks import locate_model


def model_to_plan(spec: RunSpec, report: Report) -> tuple[ModelLocation, RunSpec]:
    """The model's folder, and the spec to plan with.

    Of a hub model whose weights are not here it is the small files, and a spec that needs no weights: sizes then follow
    from the configuration. What trains only a part of the weights must see them, so it does fetch them. Raises InputError.
    """
    if spec.model.initialise != "pretrained" or trains_a_part(spec):
        model = locate_model(spec, report)
        check_new_weights(spec, model.folder)
        return model, spec
    found = location.look(
        spec.model.name_or_path, spec.model.revision, cache=cache_folder() / "weights", offline=is_offline()
    )
    if found.remote is None or found.remote.weights_format == "none":
        return locate_model(spec, report), spec
    weightless = spec.model.model_copy(update={"initialise": "from_config"})
    return found, spec.model_copy(update={"model": weightless})


def trains_a_part(spec: RunSpec) -> bool:
    """Whether an adapter is trained, or some weights are not."""
    return spec.adapter is not None or bool(spec.model.frozen)


def download_note(model: ModelLocation) -> list[str]:
    """What the run will fetch first, as a sentence."""
    if model.remote is None:
        return []
    return [f"The run first downloads the model's weights: {model.remote.size / 1e6:,.0f} MB"]
