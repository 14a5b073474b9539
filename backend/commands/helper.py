"""Owns `serve` and `_query`, the helper process of the window and its children."""

from argparse import ArgumentParser, Namespace

from backend.commands.command import Command


def _no_arguments(parser: ArgumentParser) -> None:
    """There are none: requests come over stdin."""


def _serve(arguments: Namespace) -> int:
    from backend.helper import server

    return server.run()


def _worker_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--as-run", action="store_true", help="with the priority that a run has")


def _query(arguments: Namespace) -> int:
    from backend.helper import worker

    return worker.run(gives_way=not arguments.as_run)


COMMANDS = (Command("serve", "", _no_arguments, _serve), Command("_query", "", _worker_arguments, _query))
