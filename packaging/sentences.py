"""Owns which sentences of the backend a person may read in the window: found in its syntax trees, as templates.

An f-string becomes a text with named places: `f"{path}: no row {row:,}"` is `{path}: no row {row}`. What one of two phrases
fills (`'' if count == 1 else 's'`), or a constant, is written out: a template is a sentence as a person reads it.
"""

import ast
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OF_THE_TERMINAL = ("__main__.py", "importing", "commands", "contract/run/report.py", "contract/run/report_redaction.py")
OF_RUNS = ("new_run.py", "train.py", "internal.py")
"""Commands that the window gives."""
QUIET = {
    "print", "write", "line", "begin", "add_argument", "add_argument_group", "add_parser", "compile", "search", "match",
    "fullmatch", "sub", "startswith", "endswith", "removeprefix", "removesuffix", "replace", "split", "partition",
    "rpartition", "get", "glob", "getattr", "filterwarnings", "field", "column", "command", "oserror", "thread",
    "templateprocessing", "specials", "redacted", "text_columns", "sha1",
}  # fmt: skip
"""Calls whose arguments are no sentences, or are gathered with the catalog."""
NO_SENTENCES = (
    "{{{{ bos_token", "[CLS]", "F-measure|", "Latin Han", "#", "usage:", "'(?:", "{engine} {device} {precision}",
    "{beginning}.{first}", "{words} and {tags}", "pip uninstall", "unset ", "sudo ", "{executable} -m pip",
)  # fmt: skip
"""Beginnings of what only looks like one: patterns, templates, names and keys."""
OF_LIBRARIES = (
    "Permission denied", "No such file or directory", "Is a directory", "Not a directory", "File exists",
    "permission denied", "no such file or directory", "is a directory", "No space left on device", "Read-only file system", "Disk quota exceeded", "File name too long",
    "input should be greater than {value}", "input should be greater than or equal to {value}",
    "input should be less than {value}", "input should be less than or equal to {value}", "input should be {value}",
    "input should be {first} or {last}", "input should be a valid dictionary or instance of {name}",
    "input should be a valid integer", "input should be a valid integer, unable to parse string as an integer",
    "input should be a valid integer, got a number with a fractional part", "input should be a valid number",
    "input should be a valid number, unable to parse string as a number", "input should be a valid string",
    "input should be a valid boolean", "input should be a valid boolean, unable to interpret input",
    "input should be a valid list", "input should be a valid dictionary", "input should be a finite number",
    "string should have at least {number} character", "string should have at least {number} characters",
    "list should have at least {number} item after validation, not {count}",
    "list should have at least {number} items after validation, not {count}", "string should match pattern {pattern}",
)  # fmt: skip
"""What Python and pydantic say within the backend's sentences."""
_AROUND = {"np", "pc", "dict", "str"}
"""Calls that say less than what they are given."""
MOST = 12
"""So many sentences are made of one f-string at most; beyond that its phrases are gathered by themselves."""
WORDS = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class _Place:
    name: str


_Parts = tuple[str | _Place, ...]


def of_the_backend() -> dict[str, list[str]]:
    """Every template with the files that say it; of those that differ in the names of their places one."""
    found = {text: ["libraries"] for text in OF_LIBRARIES}
    for path in sorted((ROOT / "backend").rglob("*.py")):
        name = path.relative_to(ROOT / "backend").as_posix()
        if name.startswith(OF_THE_TERMINAL) and path.name not in OF_RUNS:
            continue
        for text in of_a_module(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(text, []).append(f"backend/{name}")
    named: dict[str, str] = {}
    for text in found:
        named.setdefault(re.sub(r"\{\w+\}", "{}", text), text)
    return {text: found[text] for text in named.values()}


def of_a_module(tree: ast.Module) -> list[str]:
    """The templates that a module may say, each once."""
    module = _Module(tree)
    made = [(node, module.templates(node)) for node in ast.walk(tree) if module.begins(node)]
    said = [text for node, texts in made if id(node) not in module.taken for text in texts]
    return list(dict.fromkeys(text for text in said if _is_prose(text)))


class _Module:
    """The strings of one module, each written out as far as the module itself says what stands in it."""

    def __init__(self, tree: ast.Module) -> None:
        self.taken: set[int] = set()
        """Strings that were written out within others."""
        self._open: set[int] = set()
        self._locals: dict[ast.AST, dict[str, ast.expr]] = {}
        self._above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._constants = _assigned(tree.body) | _imported(tree)
        self._quiet = {id(part) for node in ast.walk(tree) for root in _quiet(node) for part in ast.walk(root)}
        uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self._alone = {use.id for use in uses if not isinstance(self._above[use], ast.FormattedValue | ast.BinOp)}
        """Names that stand by themselves too, not in f-strings alone."""
        for name, value in _assigned(tree.body).items():
            of_name = [use for use in uses if use.id == name]
            if of_name and all(id(use) in self._quiet for use in of_name):  # words by which others' errors are known
                self._quiet |= {id(part) for part in ast.walk(value)}

    def begins(self, node: ast.AST) -> bool:
        """Whether a string begins here that is no part of another."""
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        above = self._above.get(node)
        return (is_text and id(node) not in self._quiet and not isinstance(above, ast.JoinedStr)) or (
            isinstance(node, ast.BinOp) and id(node) not in self._quiet and self._sum(node) is not None
        )

    def templates(self, node: ast.AST) -> list[str]:
        """The sentences that a string may be."""
        found = self._written_out(node) if isinstance(node, ast.expr) else None
        return list(dict.fromkeys(_text(parts) for parts in found or []))

    def _written_out(self, node: ast.expr) -> list[_Parts] | None:
        """All that an expression may say; None of one that is no text."""
        match node:
            case ast.Constant(value=str(text)):
                return [(_marked(text),)]
            case ast.JoinedStr():
                return self._joined(node)
            case ast.IfExp():
                ways = [self._written_out(way) for way in (node.body, node.orelse)]
                return None if None in ways else [parts for way in ways for parts in way or []]
            case ast.BinOp():
                return self._sum(node)
            case ast.Name():
                return self._of_a_name(node)
        return None

    def _of_a_name(self, node: ast.Name) -> list[_Parts] | None:
        value = self._local(node).get(node.id) or self._constants.get(node.id)
        if value is None or id(value) in self._open:
            return None
        self._open.add(id(value))
        found = self._written_out(value)
        self._open.remove(id(value))
        if found is not None and not (node.id in self._alone and value is self._constants.get(node.id)):
            self.taken |= {id(part) for part in ast.walk(value)}
        return found

    def _joined(self, node: ast.JoinedStr) -> list[_Parts]:
        before = set(self.taken)
        choices = [self._choices(part) for part in node.values]
        if math.prod(map(len, choices)) > MOST:
            self.taken = before
            choices = [
                choice if len(choice) == 1 else [_place(part)]
                for part, choice in zip(node.values, choices, strict=True)
            ]
        else:
            self.taken |= {id(part) for part in ast.walk(node) if part is not node}
        return [tuple(itertools.chain(*parts)) for parts in itertools.product(*choices)]

    def _choices(self, part: ast.expr) -> list[_Parts]:
        """What may stand in one part of an f-string; what is shown with its quotes is people's own."""
        if isinstance(part, ast.Constant):
            return [(_escaped(str(part.value)),)]
        assert isinstance(part, ast.FormattedValue)
        quoted = part.conversion == ord("r")
        return (None if quoted else self._written_out(part.value)) or [_place(part)]

    def _sum(self, node: ast.BinOp) -> list[_Parts] | None:
        if not isinstance(node.op, ast.Add):
            return None
        lefts, rights = self._written_out(node.left), self._written_out(node.right)
        if lefts is None or rights is None:
            return None
        self.taken |= {id(part) for part in ast.walk(node) if part is not node}
        return [(*left, *right) for left in lefts for right in rights]

    def _local(self, node: ast.AST) -> dict[str, ast.expr]:
        above: ast.AST | None = node
        while above is not None and not isinstance(above, ast.FunctionDef):
            above = self._above.get(above)
        if above is None:
            return {}
        if above not in self._locals:
            own = [argument.arg for argument in (*above.args.args, *above.args.kwonlyargs)]
            assigned = _assigned(list(ast.walk(above)))
            self._locals[above] = {name: value for name, value in assigned.items() if name not in own}
        return self._locals[above]


def _assigned(nodes: list[ast.AST] | list[ast.stmt]) -> dict[str, ast.expr]:
    """What is assigned once."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = [name for name in ast.walk(target) if isinstance(name, ast.Name)]
                for name in names:
                    found.setdefault(name.id, []).append(node.value if target is name else name)
        if isinstance(node, ast.AugAssign | ast.For) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).extend([node.target, node.target])
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _imported(tree: ast.Module) -> dict[str, ast.expr]:
    """Constants of other modules of the backend."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("backend."):
            constants = _constants_of(node.module)
            found |= {
                alias.asname or alias.name: constants[alias.name] for alias in node.names if alias.name in constants
            }
    return found


@cache
def _constants_of(module: str) -> dict[str, ast.expr]:
    path = ROOT / f"{module.replace('.', '/')}.py"
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    if not path.exists():
        return {}
    constants = _assigned(ast.parse(path.read_text(encoding="utf-8")).body)
    return {name: value for name, value in constants.items() if isinstance(value, ast.Constant)}


def _quiet(node: ast.AST) -> Iterator[ast.AST]:
    """What holds no sentence for people: documentation, types, keys, patterns, what is compared, what a terminal shows."""
    match node:
        case ast.Expr(value=ast.Constant() as text):
            yield text
        case ast.Compare() | ast.Assert():
            yield node
        case ast.GeneratorExp(elt=ast.Compare()) | ast.ListComp(elt=ast.Compare()):
            yield node
        case ast.Dict(keys=keys):
            yield from filter(None, keys)
        case ast.Subscript(slice=key):
            yield key
        case ast.Call(func=function, args=arguments, keywords=named) if _name(function) in QUIET:
            yield from (*arguments, *named)
        case ast.AnnAssign(target=ast.Name(id="examples"), value=ast.expr() as rows):  # of a task: data, as it were
            yield rows
        case (
            ast.arg(annotation=ast.expr() as kind)
            | ast.AnnAssign(annotation=kind)
            | ast.FunctionDef(returns=ast.expr() as kind)
        ):
            yield kind
        case _:
            pass


def _name(node: ast.AST) -> str:
    """What a place is called: a variable by its name, an attribute by its last one, anything else `value`."""
    match node:
        case ast.Attribute(attr="__name__"):
            return "class_name"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower()
        case ast.Call(func=ast.Attribute(attr="join"), args=[inner]):
            return _name(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[inner, *_]) if name in _AROUND:
            return _name(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name.strip("_").lower()
        case ast.Call(func=ast.Name(id="map"), args=[_, inner]):
            return _name(inner)
        case ast.Call(func=ast.Attribute(value=inner)):
            return _name(inner)
        case ast.Call(args=[inner, *_]):
            return _name(inner)
        case ast.Call(func=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            return _name(inner)
        case ast.IfExp(body=inner) | ast.BinOp(left=inner) | ast.BoolOp(values=[inner, *_]):
            return _name(inner)
        case (
            ast.GeneratorExp(generators=[ast.comprehension(iter=inner), *_])
            | ast.ListComp(generators=[ast.comprehension(iter=inner), *_])
        ):
            return _name(inner)
    return "value"


def _place(part: ast.expr) -> _Parts:
    return (_Place(_name(part.value if isinstance(part, ast.FormattedValue) else part)),)


def _marked(text: str) -> str:
    """A text with its braces doubled, unless they are places that `str.format` fills."""
    if re.search(r"\{\w*\}", text) and not re.search(r"\{[^{}\w]|\{\w+[^{}\w]", text):
        return text.replace("{}", "{value}")
    return _escaped(text)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _text(parts: _Parts) -> str:
    """The template of these parts; the second place of a name is `{name_2}`."""
    seen: dict[str, int] = {}
    said: list[str] = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
            continue
        seen[part.name] = seen.get(part.name, 0) + 1
        said.append(f"{{{part.name}}}" if seen[part.name] == 1 else f"{{{part.name}_{seen[part.name]}}}")
    return "".join(said)


def _is_prose(text: str) -> bool:
    """Whether it holds words that can be said in another language: two of them, or one beside a place."""
    if text.startswith(NO_SENTENCES):
        return False
    plain = re.sub(r"^[\w.\0-]+(: \0)*: ", "", re.sub(r"\{\w+\}", "\0", text))
    words = WORDS.findall(plain)
    return (len(words) >= 2 and " " in plain.strip()) or bool(
        words and re.search(r"[\0\d] [^\W\d_]{3,}|[^\W\d_]{3,} \0", plain)
    )
