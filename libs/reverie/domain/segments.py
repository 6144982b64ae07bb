"""`memory.md`: the memories of a scope as a file that people read and edit.

A summary on top, then segments: a line that names the segment, a line of facts, the text. Times
are UTC; priority is the confidence, 0 to 1. Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC

from reverie.domain.ids import short_id
from reverie.domain.memory import Memory

KEYWORDS = 3
_SLUG = 40
_STOP = frozenset(
    """about after also because been before could does from have into just more must only other
    over should than that their them then there these they this those uses using very want was
    were what when where which while will with would your""".split()  # noqa: SIM905
)
_FACT = re.compile(r'(?<![a-z_])([a-z_]+):\s*(\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^,]*)(?:,\s*|$)')
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]+)')
_MARKS = frozenset({"segment", "scope", "summary"})
_ESCAPED = re.compile(r"(?m)^(<!-- )\\+(?=\\*(?:segment|scope|summary)\b)")
_TO_ESCAPE = re.compile(r"(?m)^(<!-- )(?=\\*(?:segment|scope|summary)\b)")
_BARE = re.compile(r"[^\s,\[\]\"<>][^,\[\]\"<>]*")


@dataclass(frozen=True)
class Segment:
    """One memory in the file. What a person left out is None."""

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
    segments: tuple[tuple[int, Segment], ...]


def segment_of(memory: Memory) -> Segment:
    """A memory as a segment; its name is not unique yet."""
    return Segment(
        name=f"{memory.created_at.astimezone(UTC):%Y-%m-%d}-{readable(memory)}",
        text=memory.content.strip(),
        id=short_id(memory.id),
        kind=memory.kind.value,
        key=memory.key,
        created=f"{memory.created_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        source_turn=str(memory.turns[0]) if memory.turns else None,
        keywords=memory.tags or top_words(memory.content),
        priority=round(memory.confidence, 2),
        pinned=memory.pinned,
    )


def readable(memory: Memory, longest: int = _SLUG) -> str:
    """A few words for a memory that are safe in a file's name: of its key, else its content."""
    words = re.findall(r"[^\W_]+", (memory.key or memory.content[:200]).lower())
    name = ""
    for word in words:
        if name and len(f"{name}-{word}".encode()) > longest:
            break
        name = f"{name}-{word}".strip("-")
    return name.encode()[: longest + 20].decode("utf-8", "ignore") or "memory"


def top_words(text: str) -> tuple[str, ...]:
    """The words that stand most often, those that come first before others."""
    counted = Counter(re.findall(r"[^\W\d_]{4,}", text.lower()[:10_000]))
    return tuple(word for word, _ in counted.most_common(40) if word not in _STOP)[:KEYWORDS]


def render_file(scope: str, summary: str | None, memories: Iterable[Memory]) -> str:
    """The whole file of a scope."""
    parts = [f"# {scope}\n\n<!-- scope: {scope} -->\n"]
    if summary:
        parts.append(f"\n<!-- summary -->\n{_escaped(summary.strip())}\n")
    taken: set[str] = set()
    for memory in memories:
        segment = segment_of(memory)
        name = _unique(segment.name, taken)
        parts.append(f"\n<!-- segment: {name} -->\n{_facts(segment)}\n{_escaped(segment.text)}\n")
    return "".join(parts)


def parse_file(text: str) -> MemoryFile:
    """Reads a file. What stands before the first mark is a title, and is left out."""
    scope, summary = None, None
    segments: list[tuple[int, Segment]] = []
    for line, what, value, body in _blocks(text):
        if what == "scope":
            scope = value
        elif what == "summary":
            summary = _unescaped("\n".join(body)).strip() or None
        else:
            segments.append((line, _segment(value, body)))
    return MemoryFile(scope, summary, tuple(segments))


def _blocks(text: str) -> Iterator[tuple[int, str, str, list[str]]]:
    """Each mark with its line number, word and value, and the lines below it."""
    current: tuple[int, str, str, list[str]] | None = None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        word, _, value = (_comment(line) or "").partition(":")
        if word in _MARKS:
            if current:
                yield current
            current = (number, word, value.strip(), [])
        elif current:
            current[3].append(line)
    if current:
        yield current


def _comment(line: str) -> str | None:
    """What stands in a line that is a comment and nothing else."""
    ended = line.rstrip()
    if ended.startswith("<!-- ") and ended.endswith("-->") and len(ended) >= len("<!-- -->"):
        return ended[5:-3].rstrip()
    return None


def _segment(name: str, body: list[str]) -> Segment:
    facts = _comment(body[0]) if body else None
    given = {m[1]: m[2].strip() for m in _FACT.finditer(facts or "")}
    text = _unescaped("\n".join(body if facts is None else body[1:])).strip()
    keywords = given.get("keywords")
    return Segment(
        name=name,
        text=text,
        id=given.get("id") or None,
        kind=given.get("kind") or None,
        key=_plain(given["key"]) if given.get("key") else None,
        created=given.get("created") or None,
        source_turn=given.get("source_turn") or None,
        keywords=None if keywords is None else _items(keywords),
        priority=_number(given.get("priority")),
        pinned=given["pinned"] == "true" if "pinned" in given else None,
    )


def _facts(segment: Segment) -> str:
    facts = {
        "id": segment.id,
        "kind": segment.kind,
        "key": _quoted(segment.key) if segment.key else None,
        "created": segment.created,
        "source_turn": segment.source_turn,
        "keywords": f"[{', '.join(_quoted(word) for word in segment.keywords or ())}]",
        "priority": f"{segment.priority:g}",
        "pinned": "true" if segment.pinned else None,
    }
    return f"<!-- {', '.join(f'{name}: {value}' for name, value in facts.items() if value)} -->"


def _quoted(text: str) -> str:
    """As it is where that reads back the same, else as a JSON text that closes no comment."""
    if _BARE.fullmatch(text) and text == text.strip() and text.isprintable():
        return text
    safe = json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return safe.replace("[", "\\u005b").replace("]", "\\u005d").replace("\u2028", "\\u2028")


def _plain(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text.strip()
    except ValueError:
        return text.strip('"')


def _items(text: str) -> tuple[str, ...]:
    found = (_plain(item.strip()) for item in _ITEM.findall(text.strip("[]")))
    return tuple(item for item in found if item)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else min(1.0, max(0.0, float(text)))
    except ValueError:
        return None


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(r"\1\\", text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: found[0][:-1], text)


def _unique(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free
