"""The `memory.md` format: renders and parses the memories of a scope as an editable file.

A summary on top, then segments: a line with the name, a line of facts, the text. Times are UTC;
priority is the confidence, 0 to 1.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from itertools import chain, count

from reverie.domain.core.ids import short_id
from reverie.domain.core.memory import Memory
from reverie.domain.text.characters import word_set

MAX_KEYWORDS = 3
_MAX_NAME_LENGTH = 40
_STOP_WORDS = word_set(
    """about after also because been before could does from have into just more must only other
    over should than that their them then there these they this those uses using very want was
    were what when where which while will with would your"""
)
# A list holds no "[": else each list that nothing closes would be read to the end of the line.
_FACT = re.compile(r'(?<![a-z_])([a-z_]+):\s*(\[[^\[\]]*\]|"(?:[^"\\]|\\.)*"|[^,]*)(?:,\s*|$)')
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]+)')
_BLOCK_MARKS = frozenset({"segment", "scope", "summary"})
_ESCAPED = re.compile(r"(?m)^(<!-- )\\+(?=(?:segment|scope|summary)\b)")
_TO_ESCAPE = re.compile(r"(?m)^(<!-- )(?=\\*(?:segment|scope|summary)\b)")
_UNQUOTED = re.compile(r"[^\s,\[\]\"<>][^,\[\]\"<>]*")


@dataclass(frozen=True)
class MemorySegment:
    """One memory in the file. Fields that a person left out are None."""

    name: str
    text: str
    id: str | None = None
    kind: str | None = None
    key: str | None = None
    created: str | None = None
    source_turn: str | None = None
    keywords: tuple[str, ...] | None = None
    priority: float | None = None
    pinned: bool | None = None


@dataclass(frozen=True)
class MemoryFile:
    """A parsed file; each segment with the number of its first line."""

    scope: str | None
    summary: str | None
    segments: tuple[tuple[int, MemorySegment], ...]


def build_segment(memory: Memory) -> MemorySegment:
    """A memory as a segment; its name is not unique yet."""
    return MemorySegment(
        name=f"{memory.created_at.astimezone(UTC):%Y-%m-%d}-{build_readable_name(memory)}",
        text=memory.content.strip(),
        id=short_id(memory.id),
        kind=memory.kind.value,
        key=memory.key,
        created=f"{memory.created_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        source_turn=str(memory.turns[0]) if memory.turns else None,
        keywords=memory.tags or most_frequent_words(memory.content),
        priority=round(memory.confidence, 2),
        pinned=memory.pinned,
    )


def build_readable_name(memory: Memory, max_length: int = _MAX_NAME_LENGTH) -> str:
    """A few words for a memory that are safe in a file's name: of its key, else its content."""
    words = re.findall(r"[^\W_]+", (memory.key or memory.content[:200]).lower())
    name = ""
    for word in words:
        if name and len(f"{name}-{word}".encode()) > max_length:
            break
        name = f"{name}-{word}".strip("-")
    return name.encode()[: max_length + 20].decode("utf-8", "ignore") or "memory"


def most_frequent_words(text: str) -> tuple[str, ...]:
    """Returns the most frequent words; ties in order of first occurrence."""
    counted = Counter(re.findall(r"[^\W\d_]{4,}", text.lower()[:10_000]))
    return tuple(word for word, _ in counted.most_common(40) if word not in _STOP_WORDS)[
        :MAX_KEYWORDS
    ]


def render_memory_file(scope: str, summary: str | None, memories: Iterable[Memory]) -> str:
    """The whole file of a scope."""
    parts = [f"# {scope}\n\n<!-- scope: {scope} -->\n"]
    if summary:
        parts.append(f"\n<!-- summary -->\n{_escape_marks(summary.strip())}\n")
    used_names: set[str] = set()
    for memory in memories:
        segment = build_segment(memory)
        numbered = (f"{segment.name}-{number}" for number in count(2))
        name = next(name for name in chain([segment.name], numbered) if name not in used_names)
        used_names.add(name)
        parts.append(
            f"\n<!-- segment: {name} -->\n{_render_facts(segment)}\n{_escape_marks(segment.text)}\n"
        )
    return "".join(parts)


def parse_memory_file(text: str) -> MemoryFile:
    """Parses a file. Text before the first mark is a title, and is left out."""
    scope, summary = None, None
    segments: list[tuple[int, MemorySegment]] = []
    for line, mark, value, body in _iter_blocks(text):
        if mark == "scope":
            scope = value
        elif mark == "summary":
            summary = _unescape_marks("\n".join(body)).strip() or None
        else:
            segments.append((line, _parse_segment(value, body)))
    return MemoryFile(scope, summary, tuple(segments))


def _iter_blocks(text: str) -> Iterator[tuple[int, str, str, list[str]]]:
    """Each mark with its line number, word and value, and the lines below it."""
    current: tuple[int, str, str, list[str]] | None = None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        mark, _, value = (_parse_comment(line) or "").partition(":")
        if mark in _BLOCK_MARKS:
            if current:
                yield current
            current = (number, mark, value.strip(), [])
        elif current:
            current[3].append(line)
    if current:
        yield current


def _parse_comment(line: str) -> str | None:
    """Returns the content of a line that consists of a comment."""
    stripped = line.rstrip()
    is_comment = stripped.startswith("<!-- ") and stripped.endswith("-->")
    return stripped[5:-3].rstrip() if is_comment and len(stripped) >= len("<!-- -->") else None


def _parse_segment(name: str, body: list[str]) -> MemorySegment:
    facts_line = _parse_comment(body[0]) if body else None
    values = {m[1]: m[2].strip() for m in _FACT.finditer(facts_line or "")}
    text = _unescape_marks("\n".join(body if facts_line is None else body[1:])).strip()
    keywords = None
    if "keywords" in values:
        items = _ITEM.findall(values["keywords"].strip("[]"))
        keywords = tuple(filter(None, (_unquote_value(item.strip()) for item in items)))
    priority = None
    with suppress(KeyError, ValueError):
        priority = min(1.0, max(0.0, float(values["priority"])))
    return MemorySegment(
        name=name,
        text=text,
        id=values.get("id") or None,
        kind=values.get("kind") or None,
        key=_unquote_value(values["key"]) if values.get("key") else None,
        created=values.get("created") or None,
        source_turn=values.get("source_turn") or None,
        keywords=keywords,
        priority=priority,
        pinned=values["pinned"] == "true" if "pinned" in values else None,
    )


def _render_facts(segment: MemorySegment) -> str:
    facts = {
        "id": segment.id,
        "kind": segment.kind,
        "key": _quote_value(segment.key) if segment.key else None,
        "created": segment.created,
        "source_turn": segment.source_turn,
        "keywords": f"[{', '.join(_quote_value(word) for word in segment.keywords or ())}]",
        "priority": f"{segment.priority:g}",
        "pinned": "true" if segment.pinned else None,
    }
    return f"<!-- {', '.join(f'{name}: {value}' for name, value in facts.items() if value)} -->"


def _quote_value(text: str) -> str:
    """Returns the text if it reads back the same, else as JSON that closes no comment."""
    if _UNQUOTED.fullmatch(text) and text == text.strip() and text.isprintable():
        return text
    safe = json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return safe.replace("[", "\\u005b").replace("]", "\\u005d").replace("\u2028", "\\u2028")


def _unquote_value(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text.strip()
    except ValueError:
        return text.strip('"')


def _escape_marks(text: str) -> str:
    return _TO_ESCAPE.sub(r"\1\\", text)


def _unescape_marks(text: str) -> str:
    return _ESCAPED.sub(lambda match: match[0][:-1], text)
