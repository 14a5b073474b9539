"""What is taken out of a text before it is given away."""

import pytest

from backend.contract.private_words import without_private_words


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("asked by ann.b+lab@mail.example.org today", "asked by [e-mail address] today"),
        ("open '/home/ann/data/train.csv'", "open '~/data/train.csv'"),
        ("/Users/ann/x and /home/bob", "~/x and ~"),
        (r'{"folder":"C:\\Users\\Ann\\runs"}', r'{"folder":"~\\runs"}'),
        ("C:/Users/Ann/runs", "~/runs"),
        ("WANDB_API_KEY=0123456789abcdef", "WANDB_API_KEY=[hidden]"),
        ('"password": "open-sesame"', '"password": "[hidden]"'),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [hidden]"),
        ("key sk-0123456789abcdefghij", "key [hidden]"),
        ("hf_abcdefghijklmnop", "[hub token]"),
    ],
)
def test_who_somebody_is_and_what_opens_doors_is_taken_out(text: str, left: str):
    assert without_private_words(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "pad_token: <pad>, eos_token: </s>, tokens: 1500",
        "a password protected archive cannot be read",
        "torch@2.9.0 at step 12, loss 0.31",
        "AdamW with weight_decay 0.01 on /data/train.csv",
    ],
)
def test_what_tells_nothing_of_anybody_stays(text: str):
    assert without_private_words(text) == text
