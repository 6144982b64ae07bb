"""Changing one value in JSON with comments, leaving every other byte as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reverie.domain.errors import Malformed

_GAP: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PLAIN: Final = re.compile(r"[-+.\w]+")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.M)
DEEPEST: Final = 200


@dataclass
class Node:
    """A value and where it stands; `items` of an object have names."""

    start: int
    end: int
    kind: str
    items: list[tuple[str, Node]] = field(default_factory=list)
    last: int = 0
    """Behind the last item and its comma, if any; within an empty one behind the bracket."""
    comma: bool = False


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value at the path; objects that are missing on the way are made.

    Raises `Malformed` where the text is no JSON, or something else than an object is in the way.
    """
    if not text.strip():
        text = "{}\n"
    at = _root(text)
    for depth, name in enumerate(path):
        if at.kind != "{":
            raise Malformed(f"{'.'.join(path[:depth]) or 'the file'} is no object")
        found = dict(at.items).get(name)
        if found is None:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _insert(text, at, f"{json.dumps(name)}: ", value, depth)
        at = found
    if read(text[at.start : at.end]) == value:
        return text
    return text[: at.start] + _dumped(text, value, len(path)) + text[at.end :]


def append(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value in the list at the path, where it is not in it."""
    found = value_at(text, path)
    if found is None:
        return put(text, path, [value])
    if not isinstance(found, list):
        raise Malformed(f"{'.'.join(path)} is no list")
    if value in found:
        return text
    at = _root(text)
    for name in path:
        at = dict(at.items)[name]
    return _insert(text, at, "", value, len(path))


def value_at(text: str, path: Sequence[str]) -> Any:
    """What stands at the path; None where nothing does."""
    found = read(text) if text.strip() else {}
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def read(text: str) -> Any:
    """The value of JSON with comments and trailing commas. Raises `Malformed`."""
    return _value(text, _root(text))


def _value(text: str, node: Node) -> Any:
    if node.kind == "{":
        return {name: _value(text, one) for name, one in node.items}
    if node.kind == "[":
        return [_value(text, one) for _, one in node.items]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError:
        raise _wrong(text, node.start) from None


def _root(text: str) -> Node:
    start = 1 if text.startswith("\ufeff") else 0
    node = _node(text, _skip(text, start), 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, node.end)
    return node


def _node(text: str, at: int, depth: int) -> Node:
    first = text[at : at + 1]
    if first in {"{", "["} and depth < DEEPEST:
        return _container(text, at, depth)
    match = _STRING.match(text, at) or _PLAIN.match(text, at)
    if match is None:
        raise _wrong(text, at)
    return Node(at, match.end(), "=")


def _container(text: str, start: int, depth: int) -> Node:
    node = Node(start, start, text[start], last=start + 1)
    closing = "}" if node.kind == "{" else "]"
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        if node.items and not node.comma:
            raise _wrong(text, at)
        name, at = _name(text, at) if node.kind == "{" else ("", at)
        one = _node(text, at, depth + 1)
        node.items.append((name, one))
        node.last, at = one.end, _skip(text, one.end)
        node.comma = text[at : at + 1] == ","
        if node.comma:
            node.last, at = at + 1, _skip(text, at + 1)
    node.end = at + 1
    return node


def _name(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    colon = _skip(text, match.end()) if match else at
    if match is None or text[colon : colon + 1] != ":":
        raise _wrong(text, at)
    return str(json.loads(match[0])), _skip(text, colon + 1)


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _wrong(text: str, at: int) -> Malformed:
    return Malformed(f"line {text.count(chr(10), 0, at) + 1} is no JSON")


def _insert(text: str, node: Node, name: str, value: Any, depth: int) -> str:
    """The text with one more item behind the last of an object or list."""
    line = _line_end(text)
    inside = line + _indent(text) * (depth + 1)
    new = inside + name + _dumped(text, value, depth + 1)
    if not node.items:
        rest = text[node.last : node.end - 1]
        close = line + _indent(text) * depth
        return text[: node.last] + rest.rstrip() + new + close + text[node.end - 1 :]
    if node.comma:
        return text[: node.last] + new + text[node.last :]
    return text[: node.last] + "," + new + text[node.last :]


def _dumped(text: str, value: Any, depth: int) -> str:
    lines = json.dumps(value, indent=_indent(text), ensure_ascii=False).splitlines()
    return (_line_end(text) + _indent(text) * depth).join(lines)


def _indent(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match and len(match[1]) <= 8 else "  "


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
