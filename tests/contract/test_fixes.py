"""What helps a failed run, in words and as a command."""

import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from backend.commands.command import add_changes
from backend.contract.run.fixes import RunFix, find_memory_fix

RUN = Path("/runs/my run")


@pytest.mark.parametrize(
    ("mend", "words", "command"),
    [
        (
            RunFix({"hardware.micro_batch_size": 4}),
            "Restart with micro_batch_size 4",
            "burnish train '/runs/my run/spec.yaml' --set=hardware.micro_batch_size=4",
        ),
        (
            RunFix({"training.gradient_checkpointing": True}, resume=True),
            "Resume with gradient_checkpointing on",
            "burnish resume '/runs/my run' --set=training.gradient_checkpointing=true",
        ),
        (
            RunFix({"training.learning_rate": 0.00002}),
            "Restart with learning_rate 2e-05",
            "burnish train '/runs/my run/spec.yaml' --set=training.learning_rate=2e-05",
        ),
        (RunFix(resume=True), "Retry", "burnish resume '/runs/my run'"),
        (
            RunFix(convert_weights=True),
            "Convert the weights and restart",
            "burnish train '/runs/my run/spec.yaml' --convert-weights",
        ),
    ],
)
def test_a_mend_is_said_in_words_and_as_a_command(mend: RunFix, words: str, command: str):
    assert (mend.describe(), mend.command(RUN)) == (words, command)


def test_a_value_that_a_shell_would_read_comes_through_the_command_as_it_was():
    parser = ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("spec")
    add_changes(parser)
    mend = RunFix({"model.tokenizer_options.pad_token": "<|endoftext|>", "hardware.micro_batch_size": 4})
    given = parser.parse_args(shlex.split(mend.command(RUN))[1:])
    assert given.spec == "/runs/my run/spec.yaml"
    assert given.changes == ['model.tokenizer_options.pad_token="<|endoftext|>"', "hardware.micro_batch_size=4"]


def test_what_costs_least_is_proposed_first():
    on = {"training.gradient_checkpointing": True}
    assert find_memory_fix({}, 8, 512, can_resume=True) == RunFix({"hardware.micro_batch_size": 4}, resume=True)
    assert find_memory_fix({}, 1, 512, can_resume=False) == RunFix({"training.gradient_checkpointing": True})
    # Shorter texts are other data, so nothing can go on.
    assert find_memory_fix(on, 1, 512, can_resume=True) == RunFix({"task.max_length": 256})
    assert find_memory_fix(on, 1, 40, can_resume=True) is None
