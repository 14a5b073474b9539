"""What people read is a message: its template and values reach the window, which may speak another language."""

import ast
import re
import string
from collections.abc import Iterator

from tests.architecture.source import Module

ERRORS = {"InputError", "RunFailed", "UnsupportedModelError"}
MAKERS = {"message": 1, "plural": 2} | dict.fromkeys(ERRORS, 1)
"""Function or class → how many of its first arguments are templates."""
OPTIONS = {"at_line", "fix", "hint"}
"""Keywords of errors that are no values."""
FORMATS = re.compile(r",?(\.\d)?[dfg%]?")


def calls(module: Module, names: set[str]) -> Iterator[ast.Call]:
    """The calls of these functions or classes."""
    return (call for call in module.nodes(ast.Call) if isinstance(call.func, ast.Name) and call.func.id in names)


def templates(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Every template that is written where the message is made."""
    for call in calls(module, set(MAKERS)):
        assert isinstance(call.func, ast.Name)
        for argument in call.args[: MAKERS[call.func.id]]:
            if isinstance(argument, ast.Constant):
                yield call, str(argument.value)


def calls_plural(call: ast.Call) -> bool:
    """Whether a count is filled in, too."""
    return isinstance(call.func, ast.Name) and call.func.id == "plural"


def test_placeholders_are_plain_names_with_a_value_each(modules: list[Module]):
    wrong = []
    for module in (one for one in modules if one.path.startswith("backend/")):
        for call, template in templates(module):
            given = {keyword.arg for keyword in call.keywords}
            if not given - OPTIONS and not calls_plural(call):
                continue  # its braces stay
            parts = [part for part in string.Formatter().parse(template) if part[1] is not None]
            names = {name for _, name, _, _ in parts}
            is_plain = all(
                str(name).isidentifier() and FORMATS.fullmatch(form or "") and not how for _, name, form, how in parts
            )
            if not is_plain or not (None in given or names <= given | {"count"}):
                wrong.append((module.at(call.lineno), template))
    assert wrong == []


def test_templates_are_no_f_strings(modules: list[Module]):
    found = [
        module.at(call.lineno)
        for module in modules
        if module.path.startswith("backend/")
        for call in calls(module, set(MAKERS) - ERRORS)
        if any(isinstance(argument, ast.JoinedStr) for argument in call.args[: MAKERS[call.func.id]])  # type: ignore[attr-defined]
    ]
    assert found == []


def test_errors_for_people_carry_messages(modules: list[Module]):
    """Those of the command line alone are read in its terminal, in English."""
    of_terminal = ("backend/commands/", "backend/importing/", "backend/__main__.py", "backend/contract/run/report")
    found = [
        module.at(call.lineno)
        for module in modules
        if module.path.startswith("backend/") and not module.path.startswith(of_terminal)
        for call in calls(module, ERRORS)
        if call.args and isinstance(call.args[0], ast.JoinedStr)
    ]
    assert found == [], "an f-string loses its template; give its values by name"
