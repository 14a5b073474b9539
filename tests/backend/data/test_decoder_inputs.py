"""What a decoder is given is what transformers' own models make of the labels."""

import numpy as np
import pytest
import torch
from transformers import MarianConfig, MBartConfig, T5Config
from transformers.models.marian.modeling_marian import shift_tokens_right as marian
from transformers.models.mbart.modeling_mbart import shift_tokens_right as mbart

from backend.data.batches import decoder_inputs

LABELS = np.array([[5, 6, 7, 2], [8, 2, -100, -100], [9, 9, 2, -100]])


def test_marian_and_t5_begin_with_their_start_token():
    expected = marian(torch.tensor(LABELS), 1, 3).numpy()
    assert np.array_equal(decoder_inputs(LABELS, 3, 1), expected)


def test_mbart_begins_with_the_last_label():
    expected = mbart(torch.tensor(LABELS), 1).numpy()
    assert np.array_equal(decoder_inputs(LABELS, None, 1), expected)


@pytest.mark.parametrize("config", [MarianConfig(), T5Config(), MBartConfig()])
def test_labels_stay_as_they_are(config: object):
    kept = LABELS.copy()
    decoder_inputs(LABELS, 0, 1)
    assert np.array_equal(LABELS, kept)
