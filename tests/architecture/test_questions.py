"""Every question that is written somewhere is answered by the helper."""

from importlib import import_module
from pkgutil import iter_modules

from backend.contract.rpc.answers import ANSWERS
from backend.helper import queries
from backend.helper.server import LET_GO, OPEN_MODELS
from backend.helper.worker import QUERIES


def test_what_the_window_shapes_is_answered():
    assert set(ANSWERS) <= {*QUERIES, LET_GO, OPEN_MODELS}


def test_every_file_of_questions_is_listed():
    modules = [import_module(f"backend.helper.queries.{one.name}") for one in iter_modules(queries.__path__)]
    written = {
        query.name
        for module in modules
        if module.__name__ != "backend.helper.worker"
        for query in getattr(module, "QUERIES", ())
    }
    assert written == set(QUERIES)
