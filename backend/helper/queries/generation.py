"""Owns `generate`: a text continued piece by piece; every piece is told as it is made."""

import json

from backend.contract.rpc.queries import Progress
from backend.helper.query import Arguments, Query, Tell, needed


def _generate(arguments: Arguments, tell: Tell) -> dict[str, str]:
    from backend.inference import predict  # loads the framework

    settings = arguments.get("settings") or {}
    changes = [f"task.{name}={json.dumps(value)}" for name, value in settings.items() if name != "seed"]
    pieces = []
    for piece in predict.generate(
        needed(arguments, "target"), needed(arguments, "prompt"), changes=changes, seed=settings.get("seed")
    ):
        pieces.append(piece)
        tell(Progress(done=len(pieces), unit="pieces", text=piece))
    return {"text": "".join(pieces)}


QUERIES = (Query("generate", _generate, takes_device=True),)
