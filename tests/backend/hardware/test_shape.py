"""A plan's estimate of parameters from a configuration alone, beside what the model really has."""

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, BartConfig, MarianConfig, MT5Config, T5Config

from backend.hardware.planner import Shape


@pytest.mark.parametrize(
    "config",
    [MT5Config(), T5Config(), BartConfig(), MarianConfig(vocab_size=65_001)],
    ids=lambda config: config.model_type,
)
def test_encoder_and_decoder_are_both_counted(config):
    with torch.device("meta"):
        real = AutoModelForSeq2SeqLM.from_config(config).num_parameters()
    assert Shape(config.to_dict()).parameters() == pytest.approx(real, rel=0.05)
