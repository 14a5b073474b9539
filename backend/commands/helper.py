"""Owns `serve` and `_query`, the helper process of the window and its children."""

from argparse import ArgumentParser, Namespace

from backend.commands.command import Command


def _no_arguments(parser: ArgumentParser) -> None:
    """There are none: requests come over stdin."""


def _serve(arguments: Namespace) -> int:
    from backend import serve

    return serve.run()


def _query(arguments: Namespace) -> int:
    from backend.queries import worker

    return worker.run()


COMMANDS = (Command("serve", "", _no_arguments, _serve), Command("_query", "", _no_arguments, _query))
