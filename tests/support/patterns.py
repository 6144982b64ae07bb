"""Finds every regular expression of the code, and makes texts that it is slow on.

`collect_patterns` walks all modules of both packages: attributes, containers, closures, and calls
of `re` inside functions. `hostile_texts` reads the syntax tree of an expression.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import reverie
import reverie_services

# What `re` is made of has no types.
op: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

PACKAGES = (reverie, reverie_services)
METHODS = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"})
ANCHORED = frozenset({"match", "fullmatch"})


@dataclass
class FoundPattern:
    """An expression, the places that hold it, and the methods that they call."""

    pattern: re.Pattern[Any]
    places: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)

    @property
    def is_anchored(self) -> bool:
        """Whether it is only ever tried at one place of a text."""
        return self.methods <= ANCHORED


@cache
def import_all() -> tuple[ModuleType, ...]:
    """Every module of both packages, without the adapters of frameworks that are not installed."""
    modules = []
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            try:
                modules.append(importlib.import_module(found.name))
            except ModuleNotFoundError as error:
                is_extra = found.name.startswith("reverie.adapters.")
                if not is_extra or str(error.name).startswith("reverie"):
                    raise
    return tuple(modules)


@cache
def collect_patterns() -> tuple[tuple[FoundPattern, ...], tuple[str, ...]]:
    """All expressions, and the places of calls whose expression is known only when they run."""
    found: dict[tuple[Any, int], FoundPattern] = {}
    dynamic: list[str] = []

    def add(pattern: re.Pattern[Any], place: str, methods: set[str]) -> None:
        entry = found.setdefault((pattern.pattern, pattern.flags), FoundPattern(pattern))
        entry.places.add(place)
        entry.methods |= methods

    sources = {module: Path(module.__file__ or "").read_text() for module in import_all()}
    held_names = {name for module in sources for name, value in vars(module).items()
                  if isinstance(value, re.Pattern)}  # fmt: skip
    mention = re.compile(rf"\bre\.|\b(?:{'|'.join(held_names)})\b")
    # To parse all of them takes most of the time.
    trees = {
        module: ast.parse(source) for module, source in sources.items() if mention.search(source)
    }
    uses = _collect_uses(trees)
    for module in sources:
        for name, value in vars(module).items():
            scope = module.__name__ if name.startswith("_") else ""
            for pattern in _walk(value, module.__name__, set()):
                held = value is pattern
                methods = uses[scope, name] if held else set()
                add(pattern, f"{module.__name__}.{name}", methods or {"search"})
        for call, inside in _find_calls(trees[module]) if module in trees else ():
            place = f"{module.__name__}:{inside}" if inside else module.__name__
            method = call.func.attr  # type: ignore[attr-defined]
            try:
                pattern = _evaluate(call, module)
            except NameError:
                if inside:
                    dynamic.append(place)
                continue
            if inside or method != "compile":
                add(pattern, place, {"search" if method == "compile" else method})
            elif (pattern.pattern, pattern.flags) not in found:
                add(pattern, place, {"search"})
    return tuple(found.values()), tuple(dynamic)


def _collect_uses(trees: Mapping[ModuleType, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """The methods called of each name: of a private one in its module, of others anywhere."""
    uses: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module, tree in trees.items():
        parents: list[ast.AST] = [tree]
        for parent in parents:
            for node in ast.iter_child_nodes(parent):
                parents.append(node)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    name = node.id
                elif isinstance(node, ast.Attribute) and node.attr not in METHODS:
                    name = node.attr
                else:
                    continue
                if isinstance(parent, ast.Attribute):
                    method = parent.attr if parent.attr in METHODS else ""
                else:
                    method = "search"
                if method:
                    uses[module.__name__ if name.startswith("_") else "", name].add(method)
    return uses


def _walk(value: Any, owner: str, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    """The expressions that a value holds."""
    if isinstance(value, re.Pattern):
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    for inner in _parts(value, owner):
        yield from _walk(inner, owner, seen)


def _parts(value: Any, owner: str) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, FunctionType) and value.__module__ == owner:
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_set(cell))
        yield from value.__defaults__ or ()
    elif isinstance(value, type):
        if value.__module__ == owner:
            yield from (inner for name, inner in vars(value).items() if not name.startswith("__"))
    elif is_dataclass(value):
        yield from (getattr(value, part.name, None) for part in fields(value))
    elif type(value).__module__.split(".")[0] in ("reverie", "reverie_services"):
        yield from getattr(value, "__dict__", {}).values()


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _find_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls `re.search(...)` and the like, and the function that each stands in."""

    def visit(node: ast.AST, inside: str) -> Iterator[tuple[ast.Call, str]]:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in METHODS | {"compile"}
        ):
            yield node, inside
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = node.name
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(tree, "")


def _evaluate(call: ast.Call, module: ModuleType) -> re.Pattern[Any]:
    """The expression of a call, from what its module knows. Raises NameError."""

    def value(node: ast.expr) -> Any:
        code = compile(ast.Expression(node), module.__file__ or "", "eval")
        return eval(code, vars(module))

    method = call.func.attr  # type: ignore[attr-defined]
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(method, 2)
    flags = next((word.value for word in call.keywords if word.arg == "flags"), None)
    if flags is None and len(call.args) > place:
        flags = call.args[place]
    return re.compile(value(call.args[0]), value(flags) if flags else 0)


# --- texts from the syntax tree -------------------------------------------------------------------

_CANDIDATES = [chr(number) for number in (*range(32, 127), 9, 10)] + list("é一か가，。")
_CATEGORIES = {
    op.CATEGORY_DIGIT: "7", op.CATEGORY_NOT_DIGIT: "x", op.CATEGORY_SPACE: " ",
    op.CATEGORY_NOT_SPACE: "x", op.CATEGORY_WORD: "a", op.CATEGORY_NOT_WORD: "-",
}  # fmt: skip
LONG_REPEAT = 16


def hostile_texts(pattern: re.Pattern[Any], thorough: bool = False) -> list[tuple[str, str, str]]:
    """Texts as (before, again and again, after).

    What is repeated: each repeated part, what stands before it, both together, the alphabet of
    adjacent parts, and whole matches that lack their end.
    """
    tree = _parse(pattern)
    pieces: dict[tuple[str, str], None] = {}
    _pump(list(tree), "", pieces, 0)
    whole = _sample(list(tree))
    chars = _alphabet(tree)[: 14 if thorough else 6]
    units = dict.fromkeys(
        unit
        for before, body in pieces
        for unit in (
            body,
            before + body,
            before,
            before + body + "\n",
            *(before + c for c in chars),
        )
        if unit
    )
    units |= dict.fromkeys(unit for unit in (whole, whole[:-1], whole + "\n") if unit)
    units |= dict.fromkeys(chars if pieces else ())
    if thorough:
        units |= dict.fromkeys(whole + char for char in chars)
        units |= dict.fromkeys(one + two for one in chars for two in chars if one != two)
    ends = ("", "\0", "\n", "!", " x") if thorough else ("\0",)
    texts = {("", unit, end): None for unit in units for end in ends}
    for before, body in pieces:
        if before:
            texts |= {(before, body, end): None for end in ends}
            if thorough:
                texts |= {(before, char, ends[-1]): None for char in chars}
    return list(texts)


def _parse(pattern: re.Pattern[Any]) -> Any:
    source = pattern.pattern
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    return parser.parse(source, pattern.flags & ~re.UNICODE & ~re.DEBUG)


def fill(text: tuple[str, str, str], size: int) -> str:
    """A text of `size` characters."""
    before, unit, after = text
    room = size - len(before) - len(after)
    return before + (unit * (room // len(unit) + 1))[: max(room, 0)] + after


def _children(name: Any, value: Any) -> list[list[Any]]:
    """The sequences inside a node; alternatives one by one."""
    if name in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [list(value[2])]
    if name is op.SUBPATTERN:
        return [list(value[3])]
    if name is op.ATOMIC_GROUP:
        return [list(value)]
    if name is op.BRANCH:
        return [list(branch) for branch in value[1]]
    if name in (op.ASSERT, op.ASSERT_NOT):
        return [list(value[1])]
    if name is op.GROUPREF_EXISTS:
        return [list(part) for part in value[1:] if part]
    return []


def _pump(
    nodes: Sequence[Any], before: str, pieces: dict[tuple[str, str], None], depth: int
) -> None:
    """Adds for each long repeat what a text has before it, and one round of it."""
    for name, value in nodes:
        if name in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[1] >= LONG_REPEAT:
            for body in _samples(list(value[2])):
                pieces[before, body] = None
        for child in _children(name, value):
            _pump(child, "" if name is op.ASSERT_NOT else before, pieces, depth + 1)
        before += _sample([(name, value)])


def _samples(nodes: Sequence[Any]) -> list[str]:
    """Some texts that match: the first of each alternative, and short ones of each character."""
    if len(nodes) == 1 and nodes[0][0] is op.IN:
        matching: list[str] = [char for char in _CANDIDATES if _in(nodes[0][1], char)]
        picked: list[str] = [
            char for char in ("a", "7", " ", "\n", "-", "A", "_", ".", "/") if char in matching
        ]
        return (picked or matching)[:4] or ["一"]
    if len(nodes) == 1 and nodes[0][0] is op.SUBPATTERN:
        return _samples(list(nodes[0][1][3]))
    if len(nodes) == 1 and nodes[0][0] is op.BRANCH:
        return [text for branch in nodes[0][1][1][:8] if (text := _sample(list(branch)))] or ["a"]
    return [_sample(nodes) or "a"]


def _sample(nodes: Sequence[Any]) -> str:
    return "".join(_sample_node(name, value) for name, value in nodes)


def _sample_node(name: Any, value: Any) -> str:
    if name is op.LITERAL:
        return chr(value)
    if name is op.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if name is op.ANY:
        return "a"
    if name is op.IN:
        return next((c for c in ("a", "7", " ") if _in(value, c)), "") or next(
            (c for c in _CANDIDATES if _in(value, c)), _first_of(value)
        )
    if name in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        low, high, body = value
        return _sample(list(body)) * (low or (1 if high >= LONG_REPEAT else 0))
    if name in (op.ASSERT, op.ASSERT_NOT, op.AT, op.GROUPREF):
        return ""
    children = _children(name, value)
    return _sample(children[0]) if children else ""


def _first_of(items: Sequence[Any]) -> str:
    for name, value in items:
        if name is op.LITERAL:
            return chr(value)
        if name is op.RANGE:
            return chr(value[0])
    return "一"


def _in(items: Sequence[Any], char: str) -> bool:
    negated, found, code = False, False, ord(char)
    for name, value in items:
        if name is op.NEGATE:
            negated = True
        elif name is op.LITERAL:
            found |= value == code
        elif name is op.RANGE:
            found |= value[0] <= code <= value[1]
        elif name is op.CATEGORY:
            found |= _has_category(value, char)
    return found != negated


def _has_category(category: Any, char: str) -> bool:
    tests = {
        op.CATEGORY_DIGIT: char.isdigit(), op.CATEGORY_SPACE: char.isspace(),
        op.CATEGORY_WORD: char.isalnum() or char == "_",
        op.CATEGORY_NOT_DIGIT: not char.isdigit(), op.CATEGORY_NOT_SPACE: not char.isspace(),
        op.CATEGORY_NOT_WORD: not (char.isalnum() or char == "_"),
    }  # fmt: skip
    return tests[category]


def _alphabet(tree: Any) -> list[str]:
    """Characters that the expression tells apart: of its literals and its sets."""
    chars: dict[str, None] = dict.fromkeys((" ", "a", "\n", "7", "-"))

    def visit(nodes: Sequence[Any]) -> None:
        for name, value in nodes:
            if name is op.LITERAL and not chr(value).isalnum():
                chars[chr(value)] = None
            elif name is op.IN:
                for part, inner in value:
                    if part is op.LITERAL:
                        chars[chr(inner)] = None
                    elif part is op.RANGE:
                        chars[chr(inner[0])] = None
                    elif part is op.CATEGORY:
                        chars[_CATEGORIES[inner]] = None
            for child in _children(name, value):
                visit(child)

    visit(list(tree))
    return list(chars)
