"""Which architecture can do which head is said before anything is loaded."""

import pytest

from backend.contract.heads import Head
from backend.models.architectures import explain_unsupported, model_types


@pytest.mark.parametrize("model_type", ["xlnet", "xlm", "flaubert"])
def test_three_architectures_have_a_beam_search_head(model_type):
    assert explain_unsupported({"model_type": model_type}, Head.QUESTION_ANSWERING_BEAM) == ""
    assert explain_unsupported({"model_type": model_type}, Head.QUESTION_ANSWERING) == ""


@pytest.mark.parametrize("model_type", ["bert", "roberta", "t5", "gpt2"])
def test_others_have_none_and_the_sentence_says_who_has(model_type):
    reason = explain_unsupported({"model_type": model_type}, Head.QUESTION_ANSWERING_BEAM)
    assert reason.startswith(f"a {model_type} model has no beam-search head; choose XLNet")


def test_a_model_that_sees_what_follows_cannot_continue_a_text():
    assert "cannot continue a text" in explain_unsupported({"model_type": "xlnet"}, Head.CAUSAL_LM)
    assert "cannot continue a text" in explain_unsupported({"model_type": "bert"}, Head.CAUSAL_LM)
    assert explain_unsupported({"model_type": "gpt2"}, Head.CAUSAL_LM) == ""


@pytest.mark.parametrize("model_type", ["t5", "mt5", "bart", "mbart", "marian", "pegasus"])
def test_encoder_decoders_turn_one_text_into_another(model_type):
    assert model_type in model_types(Head.SEQ2SEQ_LM)
    assert explain_unsupported({"model_type": model_type, "is_encoder_decoder": True}, Head.SEQ2SEQ_LM) == ""
