"""Edits single values in JSON with comments, preserving all other bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reverie.domain.core.errors import MalformedInput

_BLANKS_AND_COMMENTS: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_BARE_VALUE: Final = re.compile(r"[-+.\w]+")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.M)
MAX_DEPTH: Final = 200


@dataclass
class JsonNode:
    """A value and its position in the text; `items` of an object have names."""

    start: int
    end: int
    kind: str
    items: list[tuple[str, JsonNode]] = field(default_factory=list)
    insert_position: int = 0
    """Behind the last item and its comma, if any; within an empty one behind the bracket."""
    has_trailing_comma: bool = False


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Returns the text with the value set at the path; missing objects on the path are added.

    Raises `MalformedInput` if the text is not JSON, or if the path passes through another type.
    """
    if not text.strip():
        text = "{}\n"
    node = _parse_root(text)
    for depth, name in enumerate(path):
        if node.kind != "{":
            raise MalformedInput(f"{'.'.join(path[:depth]) or 'the file'} is no object")
        child = dict(node.items).get(name)
        if child is None:
            for missing_name in reversed(path[depth + 1 :]):
                value = {missing_name: value}
            return _insert_item(text, node, f"{json.dumps(name)}: ", value, depth)
        node = child
    if parse_jsonc(text[node.start : node.end]) == value:
        return text
    return text[: node.start] + _format_value(text, value, len(path)) + text[node.end :]


def append_value(text: str, path: Sequence[str], value: Any) -> str:
    """Returns the text with the value appended to the list at the path, unless the list contains
    it."""
    existing = get_value(text, path)
    if existing is None:
        return set_value(text, path, [value])
    if not isinstance(existing, list):
        raise MalformedInput(f"{'.'.join(path)} is no list")
    if value in existing:
        return text
    node = _parse_root(text)
    for name in path:
        node = dict(node.items)[name]
    return _insert_item(text, node, "", value, len(path))


def get_value(text: str, path: Sequence[str]) -> Any:
    """Returns the value at the path; None if there is none."""
    value = parse_jsonc(text) if text.strip() else {}
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def parse_jsonc(text: str) -> Any:
    """The value of JSON with comments and trailing commas. Raises `MalformedInput`."""
    return _node_value(text, _parse_root(text))


def _node_value(text: str, node: JsonNode) -> Any:
    if node.kind == "{":
        return {name: _node_value(text, child) for name, child in node.items}
    if node.kind == "[":
        return [_node_value(text, child) for _, child in node.items]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError:
        raise _malformed(text, node.start) from None


def _parse_root(text: str) -> JsonNode:
    start = 1 if text.startswith("\ufeff") else 0
    node = _parse_node(text, _skip_blanks(text, start), 0)
    if _skip_blanks(text, node.end) != len(text):
        raise _malformed(text, node.end)
    return node


def _parse_node(text: str, position: int, depth: int) -> JsonNode:
    first = text[position : position + 1]
    if first in {"{", "["} and depth < MAX_DEPTH:
        return _parse_container(text, position, depth)
    match = _STRING.match(text, position) or _BARE_VALUE.match(text, position)
    if match is None:
        raise _malformed(text, position)
    return JsonNode(position, match.end(), "=")


def _parse_container(text: str, start: int, depth: int) -> JsonNode:
    node = JsonNode(start, start, text[start], insert_position=start + 1)
    closing = "}" if node.kind == "{" else "]"
    position = _skip_blanks(text, start + 1)
    while text[position : position + 1] != closing:
        if node.items and not node.has_trailing_comma:
            raise _malformed(text, position)
        name, position = _parse_name(text, position) if node.kind == "{" else ("", position)
        child = _parse_node(text, position, depth + 1)
        node.items.append((name, child))
        node.insert_position, position = child.end, _skip_blanks(text, child.end)
        node.has_trailing_comma = text[position : position + 1] == ","
        if node.has_trailing_comma:
            node.insert_position, position = position + 1, _skip_blanks(text, position + 1)
    node.end = position + 1
    return node


def _parse_name(text: str, position: int) -> tuple[str, int]:
    match = _STRING.match(text, position)
    colon = _skip_blanks(text, match.end()) if match else position
    if match is None or text[colon : colon + 1] != ":":
        raise _malformed(text, position)
    return str(json.loads(match[0])), _skip_blanks(text, colon + 1)


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANKS_AND_COMMENTS.match(text, position)
    return match.end() if match else position


def _malformed(text: str, position: int) -> MalformedInput:
    return MalformedInput(f"line {text.count(chr(10), 0, position) + 1} is no JSON")


def _insert_item(text: str, node: JsonNode, prefix: str, value: Any, depth: int) -> str:
    """The text with one more item behind the last of an object or list."""
    line_end = _detect_line_end(text)
    item_indent = line_end + _detect_indent(text) * (depth + 1)
    item = item_indent + prefix + _format_value(text, value, depth + 1)
    if not node.items:
        trailing = text[node.insert_position : node.end - 1]
        closing = line_end + _detect_indent(text) * depth
        return (
            text[: node.insert_position] + trailing.rstrip() + item + closing + text[node.end - 1 :]
        )
    if node.has_trailing_comma:
        return text[: node.insert_position] + item + text[node.insert_position :]
    return text[: node.insert_position] + "," + item + text[node.insert_position :]


def _format_value(text: str, value: Any, depth: int) -> str:
    lines = json.dumps(value, indent=_detect_indent(text), ensure_ascii=False).splitlines()
    return (_detect_line_end(text) + _detect_indent(text) * depth).join(lines)


def _detect_indent(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match and len(match[1]) <= 8 else "  "


def _detect_line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
