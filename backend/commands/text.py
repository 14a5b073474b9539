"""Owns `burnish generate`: text in, text out."""

from argparse import ArgumentParser, Namespace
from dataclasses import fields

from backend.commands import consents
from backend.commands.command import Command, add_changes, add_consents, add_conversion
from backend.contract.errors import InputError
from backend.contract.rpc.generation import GenerationSettings

_DECODING = [one.name for one in fields(GenerationSettings) if one.name not in {"sample", "seed", "eos_token_id"}]
"""The settings of writing that the tasks have under the same name, but for the one that is a switch."""


def _generate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN_OR_MODEL", help="name or folder of a run, or a model folder or hub id")
    parser.add_argument("--prompt", metavar="TEXT", required=True, help="the text to continue or to answer")
    parser.add_argument("--sample", action="store_true", help="draw tokens by chance instead of taking the likeliest")
    for name in _DECODING:
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=f"the task's setting {name}")
    parser.add_argument("--seed", metavar="N", type=int, help="makes sampling repeatable")
    add_changes(parser)
    add_consents(parser)
    add_conversion(parser)


def _generate(arguments: Namespace) -> int:
    if not arguments.prompt.strip():
        raise InputError("--prompt: it is empty; write the text to continue or to answer")
    consents.agree_if_asked(arguments, arguments.target)
    consents.convert_if_asked(arguments, arguments.target)
    from backend.inference import predict  # loads the framework

    changes = [f"task.{name}={value}" for name in _DECODING if (value := getattr(arguments, name)) is not None]
    if arguments.sample:
        changes.append("task.sample=true")
    pieces = predict.generate(
        arguments.target, arguments.prompt, changes=[*arguments.changes, *changes], seed=arguments.seed
    )
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


COMMANDS = (Command("generate", "continue or answer a text", _generate_arguments, _generate),)
