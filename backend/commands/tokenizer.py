"""Owns `burnish tokenizer`, whose actions have a file each."""

from argparse import ArgumentParser, Namespace

from backend.commands.command import Command
from backend.commands.tokenizer_compare import add_compare
from backend.commands.tokenizer_extend import add_extend
from backend.commands.tokenizer_lengths import add_lengths
from backend.commands.tokenizer_rows import add_rows
from backend.commands.tokenizer_train import add_train
from backend.commands.tokenizer_vocab import add_vocab


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_train(actions)
    add_extend(actions)
    add_vocab(actions)
    add_compare(actions)
    add_lengths(actions)
    add_rows(actions)


def _execute(arguments: Namespace) -> int:
    return arguments.execute_action(arguments)


COMMANDS = (Command("tokenizer", "look into tokenizers, compare them, and train a new one", _arguments, _execute),)
