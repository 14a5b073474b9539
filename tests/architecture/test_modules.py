"""How a module must look: it says what it does, is of human size, is named for a noun and swallows nothing."""

import ast
import graphlib
from collections import Counter
from pathlib import PurePosixPath

import grimp

from tests.architecture.source import Module

LONGEST_FILE = 500
MOST_FILES = 25
"""In a folder, besides its `__init__.py`."""
LONGEST_FUNCTION = 70
NO_NOUNS = {"utils", "util", "helpers", "common", "manager", "misc", "tools", "stuff", "legacy"}

CATCHES_EVERYTHING = {
    "backend/data/formats/workbook.py": "the Rust reader of workbooks panics on some damaged files, which is no Exception",
    "backend/engines/torch/compilation.py": "compilers and what they make raise whatever their parts raise",
    "backend/tokenizers/loading.py": "the Rust tokenizers raise plain Exception",
    "backend/tokenizers/encoding.py": "the Rust tokenizers raise plain Exception",
    "backend/data/network_limits.py": "what is raised on the thread that asks a server is raised again on the one that waits",
    "backend/training/background.py": "what is raised on the thread that works is raised again on the one that waits",
    "backend/tokenizers/train.py": "the Rust trainers raise plain Exception",
    "backend/models/remote_code.py": "the code that comes with a model may raise anything while it is opened",
    "backend/mirrors/mirror.py": "the libraries of trackers raise anything, and the run must not notice",
    "backend/remote/plugin_jobs.py": "a launcher of another package may raise anything when it is called",
    "backend/registry.py": "a plugin is another's code, which may raise anything while it is imported",
}
"""Beside the process entries: modules that may catch Exception once, and why nothing narrower will do."""
PROCESS_ENTRIES = {
    "backend/__main__.py",
    "backend/supervisor.py",
    "backend/commands/internal.py",
    "backend/helper/worker.py",
    "backend/helper/server.py",
    "backend/search/driver.py",
    "backend/training/loop.py",
    "backend/training/processes.py",
    "app/__main__.py",
}


def test_every_module_opens_with_a_sentence(modules: list[Module]):
    def says(module: Module) -> bool:
        first = (ast.get_docstring(module.tree) or "").split("\n\n")[0].strip()
        return len(first.split()) >= 3 and first[-1] in ".!?:)"

    assert [module.path for module in modules if module.text.strip() and not says(module)] == []


def test_backend_itself_is_empty(modules: list[Module]):
    """Importing the contract costs nothing but the contract."""
    assert [module.text for module in modules if module.path == "backend/__init__.py"] == [""]


def test_no_file_has_a_second_subject(modules: list[Module]):
    sizes = {module.path: module.text.count("\n") for module in modules}
    assert {path: lines for path, lines in sizes.items() if lines > LONGEST_FILE} == {}


def test_no_folder_lacks_a_room(modules: list[Module]):
    paths = [PurePosixPath(module.path) for module in modules]
    sizes = Counter(path.parent for path in paths if path.name != "__init__.py")
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_no_files_import_each_other_in_a_circle():
    """Not even inside functions or for types alone; only the face of a package may fetch what lies in it."""
    graph = grimp.build_graph("app", "backend", cache_dir=None)
    files = {
        name: graph.find_modules_directly_imported_by(name) for name in graph.modules if not graph.find_children(name)
    }
    assert len(files) > 500
    graphlib.TopologicalSorter(files).prepare()  # raises CycleError, which names the files


def test_no_function_is_a_saga(modules: list[Module]):
    found = {
        f"{module.at(node.lineno)} {node.name}": length
        for module in modules
        for node in (*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef))
        if (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert found == {}


def test_modules_are_named_for_what_they_own(modules: list[Module]):
    found = [module.path for module in modules if NO_NOUNS & set(module.path.removesuffix(".py").split("/"))]
    assert found == []


def test_nothing_is_swallowed(modules: list[Module]):
    found = [
        module.at(handler.lineno)
        for module in modules
        for handler in _handlers(module)
        if all(isinstance(statement, ast.Pass) for statement in handler.body)
    ]
    assert found == []


def test_everything_is_caught_in_one_place_per_process(modules: list[Module]):
    allowed = {*PROCESS_ENTRIES, *CATCHES_EVERYTHING}
    found: dict[str, list[int]] = {}
    for module in modules:
        for handler in _handlers(module):
            if _is_broad(handler) and not _raises_again(handler):
                found.setdefault(module.path, []).append(handler.lineno)
    assert {path: lines for path, lines in found.items() if path not in allowed or len(lines) > 1} == {}


def _handlers(module: Module) -> list[ast.ExceptHandler]:
    return module.nodes(ast.ExceptHandler)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names(handler.type) & {"Exception", "BaseException"})


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
