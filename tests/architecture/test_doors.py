"""Which way the doors open, where a contract over whole packages cannot say it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import Module

FRAMEWORKS = {
    "torch": "backend/engines/torch/",
    "accelerate": "backend/engines/torch/",
    "jax": "backend/engines/jax/",
    "flax": "backend/engines/jax/",
    "optax": "backend/engines/jax/",
}
THREADS = {"threading", "_thread", "concurrent", "multiprocessing", "asyncio"}
UNSAFE = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
LISTENING = {"socketserver", "http.server", "xmlrpc", "wsgiref", "uvicorn", "flask", "aiohttp.web"}


def found(modules: list[Module], names: set[str], inside: str = "", but: str | tuple[str, ...] = "\0") -> list[str]:
    """Where one of `names` (or a part of it) is imported in `inside`, `but` excepted."""
    return [
        f"{module.at(line)} {name}"
        for module in modules
        if module.path.startswith(inside) and not module.path.startswith(but)
        for line, name in module.imports()
        if any(name == wanted or name.startswith(wanted + ".") for wanted in names)
    ]


def test_window_imports_nothing_of_the_backend_but_its_contract(modules: list[Module]):
    found = [
        f"{module.at(line)} {name}"
        for module in modules
        if module.path.startswith("app/")
        for line, name in module.imports()
        if name.split(".")[0] == "backend" and not name.startswith("backend.contract")
    ]
    assert found == []


@pytest.mark.parametrize(("framework", "home"), FRAMEWORKS.items())
def test_framework_is_imported_in_its_engine_alone(modules: list[Module], framework: str, home: str | tuple[str, ...]):
    assert found(modules, {framework}, but=home) == []


def test_window_has_no_threads(modules: list[Module]):
    """Long work is a process, a short question is the helper's: a busy thread stops painting for a second."""
    assert found(modules, THREADS, inside="app/") == []
    names = {"QThread", "QThreadPool", "QRunnable"}
    assert found(modules, {f"PySide6.QtCore.{name}" for name in names}, inside="app/") == []


def test_window_asks_no_layout_for_its_items(modules: list[Module]):
    """Such an item's Python object outlives it where its widget is deleted first, and a later widget at its address is taken for it."""
    asking = {"itemAt", "itemAtPosition"}
    inside = [module for module in modules if module.path.startswith("app/")]
    assert [m.at(c.lineno) for m in inside for c in _calls(m) if _name(c) in asking] == []


def test_services_have_no_widgets(modules: list[Module]):
    assert found(modules, {"PySide6.QtWidgets", "PySide6.QtGui", "pyqtgraph"}, inside="app/services/") == []


def test_nothing_is_pickled(modules: list[Module]):
    """The throwaway converter alone names the module, for its exception; `torch.load` has a rule of its own below."""
    assert found(modules, UNSAFE, but="backend/engines/torch/convert_weights.py") == []


def test_nothing_listens(modules: list[Module]):
    assert found(modules, LISTENING) == []
    calls = [f"{m.at(c.lineno)}" for m in modules for c in _calls(m) if _name(c) in ("listen", "create_server")]
    assert calls == []


def test_hosts_alone_meet_over_the_network(modules: list[Module]):
    """JAX's coordinator listens while a run on several hosts lives, and only because a person started it as one of them."""
    calls = [m.path for m in modules for c in _calls(m) if _is(c, "jax.distributed.initialize")]
    assert calls == ["backend/engines/jax/cluster.py"]


def test_nothing_is_run_from_text(modules: list[Module]):
    calls = [f"{m.at(c.lineno)} {_name(c)}" for m in modules for c in _calls(m) if _is_builtin(c, {"eval", "exec"})]
    shells = [m.at(c.lineno) for m in modules for c in _calls(m) if any(word.arg == "shell" for word in c.keywords)]
    assert calls + shells == []


def test_weights_of_others_are_read_as_weights_only(modules: list[Module]):
    def is_open(call: ast.Call) -> bool:
        return _is(call, "torch.load") and "weights_only=True" not in ast.unparse(call)

    assert [m.at(c.lineno) for m in modules for c in _calls(m) if is_open(c)] == []


@pytest.mark.parametrize(
    ("room", "shared"),
    [
        ("backend/tasks/", {"task"}),
        # `files`: each source reads the FILE of `burnish predict --data FILE` as that one does.
        ("backend/data/sources/", {"source", "files"}),
        ("backend/engines/", {"engine"}),
        ("app/pages/", set()),
    ],
)
def test_siblings_do_not_know_each_other(modules: list[Module], room: str, shared: set[str]):
    """A member of a room may import what its room shares: the protocol named after the kind, and non-members."""
    package = room.replace("/", ".")
    members = {name for module in modules if (name := _member(module, room)) and _exports(module, room)}
    found = [
        f"{module.at(line)} {name}"
        for module in modules
        if (own := _member(module, room)) in members
        for line, name in module.imports()
        if name.startswith(package) and name.removeprefix(package).split(".")[0] in members - shared - {own}
    ]
    assert found == []


@pytest.mark.parametrize("module", ["backend.supervisor", "backend.contract.run.folder"])
def test_supervisor_needs_nothing_but_the_standard_library(root: Path, module: str):
    """In a Python without any installed package: a few megabytes that outlive whatever the engine does."""
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import {module}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_contract_alone_loads_no_heavy_library(root: Path):
    code = (
        "import sys, backend.contract.run.events, backend.contract.catalog, backend.contract.rpc.protocol, "
        "backend.contract.run.folder, backend.contract.places\n"
        "print(sorted({'numpy', 'pyarrow', 'pydantic', 'ruamel', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _member(module: Module, room: str) -> str:
    return module.path.removeprefix(room).split("/")[0].removesuffix(".py") if module.path.startswith(room) else ""


def _exports(module: Module, room: str) -> bool:
    # A member is what the registry finds: a module with the kind's own name in capitals. A page is a package of its room.
    if room == "app/pages/":
        return module.path.endswith("/page.py")
    kind = {"backend/tasks/": "TASK", "backend/data/sources/": "SOURCE", "backend/engines/": "ENGINE"}[room]
    return any(kind in _assigned(node) for node in module.tree.body)


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return (target.id for target in targets if isinstance(target, ast.Name))


def _calls(module: Module) -> list[ast.Call]:
    return module.nodes(ast.Call)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is(call: ast.Call, function: str) -> bool:
    """Whether it calls that function by its full name; unparsing the others as well would take a second."""
    return _name(call) == function.rsplit(".", 1)[-1] and ast.unparse(call.func) == function


def _is_builtin(call: ast.Call, names: set[str]) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in names
