"""A model whose architecture is code of its own is trained, predicts and is resumed as long as a person agrees to that code."""

import json

import pytest
from end_to_end.burnish_process import Burnish
from own_code_model import made


@pytest.fixture(autouse=True)
def processes(burnish: Burnish) -> None:
    """Every command is one, which imports the model's code anew."""
    burnish.in_process = False


@pytest.mark.slow
def test_own_code_trains_and_predicts_until_the_consent_is_withdrawn(burnish: Burnish) -> None:
    burnish.environment["BURNISH_CONFIG"] = str(burnish.home / "config")
    mark = burnish.home / "ran"
    model = made(burnish.home / "homemade", mark)
    spec = burnish.spec(model={"name_or_path": str(model), "trust_remote_code": True})

    refused = burnish("train", str(spec))
    assert (refused.returncode, mark.exists()) == (2, False)
    assert "you have not approved this version of it" in refused.stderr.splitlines()[-1]
    assert not burnish.runs.exists()

    trained = burnish("train", str(spec), "--trust-remote-code")
    assert trained.returncode == 0, trained.stderr
    assert mark.exists()
    run = burnish.run_folder()
    consents = json.loads(burnish("consents", "--json").stdout)["consents"]
    assert {one["name"]: one["origin"] for one in consents} == {str(model): "", str(run.model): str(model)}

    # What the run left has the same files, and the run has extended the consent to it.
    asked = ("predict", str(run.path), "--input", json.dumps({"text": "a good film"}))
    told = burnish(*asked)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["prediction"] in {"negative", "positive"}

    assert burnish("consents", "--withdraw", str(model)).returncode == 0
    mark.unlink()
    again = burnish(*asked)
    assert (again.returncode, mark.exists()) == (2, False)
    assert "you have not approved" in again.stderr
