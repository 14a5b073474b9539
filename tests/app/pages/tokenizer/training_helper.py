"""A small real helper process that answers questions about a training's data as the backend did for a recorded demo."""

import json
import sys
from pathlib import Path

RECORDED = json.loads((Path(__file__).with_name("training_answers.json")).read_text(encoding="utf-8"))


def answered(query: str, arguments: dict) -> dict:
    """Reply without its number; a spec called `broken` is refused, one called `never` never answered."""
    name = (arguments.get("spec") or {}).get("name")
    if name == "broken":
        return {"error": {"message": "data.train: there is no such file", "field": "data.train"}}
    answer = RECORDED[query]
    if query == "training_rows":
        answer = answer["step" if arguments.get("step") is not None else "order"]
        if answer["step"]:
            answer = {**answer, "step": {**answer["step"], "step": arguments["step"]}}
    return {"answer": answer}


def say(reply: dict) -> None:
    """One line."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def load() -> None:
    """Nothing but what is loaded above."""


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        request = json.loads(line)
        number, query, arguments = request["id"], request["query"], request.get("arguments", {})
        if query == "cancel" or (arguments.get("spec") or {}).get("name") == "never":
            continue
        if query not in RECORDED:
            say({"id": number, "error": {"message": "not recorded"}})
            continue
        say({"id": number, "progress": {"text": "tokenising"}})
        say({"id": number, **answered(query, arguments)})
