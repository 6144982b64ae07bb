"""A memory as a file of the mirror: front matter, then its text. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9][\w/.@+-]*")
_FIELD: Final = re.compile(r"(\w+):\s*(.*)")
_EDGE: Final = "---\n"
NAME_CHARS: Final = 48


@dataclass(frozen=True)
class MirrorRecord:
    """The contents of a file. `extra`: lines of the front matter that the mirror ignores."""

    content: str
    kind: str | None = None
    scope: str | None = None
    id: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False
    extra: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the fields that both sides have: equal for a file and a memory in step."""
        parts = [self.content, self.kind, self.scope, self.key, sorted(self.tags), self.pinned]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def changes_since(self, other: MirrorRecord) -> dict[str, Any]:
        """The fields that can be edited and differ from another record."""
        edited: dict[str, Any] = {}
        if self.content != other.content:
            edited["content"] = self.content
        if self.kind and self.kind != other.kind:
            edited["kind"] = self.kind
        if sorted(self.tags) != sorted(other.tags):
            edited["tags"] = list(self.tags)
        if self.pinned != other.pinned:
            edited["pinned"] = self.pinned
        return edited


def record_of_memory(memory: Mapping[str, Any]) -> MirrorRecord:
    """The record of a memory as the gateway shows it."""
    return MirrorRecord(
        content=unify_lines(memory["content"]),
        kind=memory["kind"],
        scope=memory["scope"],
        id=str(memory["id"]),
        key=memory["key"],
        tags=tuple(sorted(memory["tags"])),
        pinned=bool(memory["pinned"]),
    )


def build_path(memory: Mapping[str, Any]) -> str:
    """The path of a new file: a folder for each scope, and a name that stays."""
    words = memory["key"] or memory["content"][: 4 * NAME_CHARS]
    name = re.sub(r"[^\w]+", "-", words.lower())[:NAME_CHARS].strip("-") or "memory"
    return f"{memory['scope']}/{name}-{memory['short_id']}.md"


def render_record(record: MirrorRecord) -> str:
    """The text of a file. Values are plain words or JSON, which is YAML too."""
    lines = [f"{name}: {_render_value(value)}\n" for name, value in _iter_fields(record)]
    extra = "".join(f"{line}\n" for line in record.extra)
    return f"{_EDGE}{''.join(lines)}{extra}{_EDGE}\n{record.content}\n"


def parse_record(text: str) -> MirrorRecord | None:
    """The record of a file; None if it has no front matter.

    Raises ValueError, with the line, for front matter that cannot be read.
    """
    unified = unify_lines(text.removeprefix("\ufeff"))
    front, edge, body = unified.removeprefix(_EDGE).partition(f"\n{_EDGE}")
    if not unified.startswith(_EDGE) or not edge:
        return None
    record = MirrorRecord(body.removeprefix("\n").removesuffix("\n"))
    for line in front.split("\n"):
        field = _FIELD.fullmatch(line)
        if field is None or field[1] not in {"id", "scope", "kind", "key", "tags", "pinned"}:
            record = replace(record, extra=(*record.extra, line))
            continue
        value = _parse_value(line, field[2].strip())
        if field[1] == "tags":
            value = tuple(sorted(map(str, value if isinstance(value, list) else [value])))
        elif field[1] == "pinned":
            value = value is True
        else:
            value = None if value is None else str(value)
        record = replace(record, **{field[1]: value})
    return record


def _iter_fields(record: MirrorRecord) -> Iterator[tuple[str, Any]]:
    for name in ("id", "scope", "kind", "key"):
        if value := getattr(record, name):
            yield name, value
    if record.tags:
        yield "tags", list(record.tags)
    if record.pinned:
        yield "pinned", True


def _render_value(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        # YAML would read these as a boolean, null or a number.
        is_word = value.lower() in {"true", "false", "null", "yes", "no"}
        is_number = value[0].isdigit() and value.replace(".", "").isdigit()
        if not is_word and not is_number:
            return value
    return json.dumps(value, ensure_ascii=False)


def _parse_value(line: str, text: str) -> Any:
    if text in {"true", "false", "null"} or text[:1] in {'"', "["}:
        try:
            return json.loads(text)
        except ValueError:
            if text[:1] == '"':
                raise ValueError(f"cannot read the line {line!r}") from None
    if text[:1] == "[" and text[-1:] == "]":
        return [part.strip().strip("\"'") for part in text[1:-1].split(",") if part.strip()]
    return text.strip("'") or None


def unify_lines(text: str) -> str:
    """The text with the line ends of Unix."""
    return text.replace("\r\n", "\n")
