"""Weights of classes are numbers by which a mean can be divided."""

import pytest
from pydantic import ValidationError

from backend.tasks.text_classification import Settings


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_that_divides_nothing_is_refused(weight: float) -> None:
    with pytest.raises(ValidationError, match="class_weights"):
        Settings.model_validate({"class_weights": {"yes": weight}})


def test_weights_per_label_and_balanced_ones_are_taken() -> None:
    assert Settings(class_weights="balanced").class_weights == "balanced"
    assert Settings(class_weights={"yes": 0.5}).class_weights == {"yes": 0.5}
