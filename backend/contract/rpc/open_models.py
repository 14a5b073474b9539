"""Owns the answer about models that the helper keeps open between two questions."""

import msgspec


class OpenModels(msgspec.Struct, frozen=True):
    """Answer of `open_models {}` and of `let_go {target}`, which closes one (or all, without target) that is not answering."""

    targets: list[str]
    """Runs, checkpoints, folders and hub ids as they were asked."""
