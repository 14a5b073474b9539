"""Many metrics still make a line that a person reads."""

from pathlib import Path

from backend.commands.follow import Outcome, in_words, tell
from backend.contract.run.fixes import Mend
from backend.contract.run.folder import RunFolder


def test_variants_of_very_many_metrics_are_counted_and_not_told():
    metrics: dict[str, float | None] = {"loss": 0.3, "f1": 0.5, "accuracy": 0.9}
    metrics |= {f"f1_{number}": 0.1 for number in range(20)}
    assert in_words(metrics) == "f1 0.5, accuracy 0.9, loss 0.3, and 20 more"


def test_few_metrics_are_all_told():
    assert in_words({"loss": 0.3, "f1": 0.5, "f1_macro": 0.4}) == "f1 0.5, f1_macro 0.4, loss 0.3"


def test_the_way_out_is_said_with_values_as_they_are(tmp_path: Path, capsys):
    mend = Mend({"model.tokenizer_options.pad_token": "[PAD]"})
    tell(Outcome(RunFolder(tmp_path), "failed", mend=mend), as_json=False)
    assert capsys.readouterr().err.startswith("start again with pad_token [PAD] by: burnish train")
