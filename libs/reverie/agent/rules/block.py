"""Parses and renders Reverie's block in a rule file. Pure.

Only the text between the two marks is written. Each item carries the memory's id and a hash of the
written text, so that edits by a person are detected; the end mark lists removed items.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reverie.domain.core.errors import InvalidInput

BEGIN_MARK: Final = "<!-- reverie:begin"
END_MARK: Final = "<!-- reverie:end"
NOTICE: Final = (
    "<!-- reverie:begin Kept by `reverie rules sync`. Edit an item, and its memory changes; "
    "remove one, and it stays out; add one, and it is remembered. -->"
)
TITLE: Final = "## What is remembered"
_ITEM_MARK: Final = re.compile(r"<!-- reverie:item (\S+) ([0-9a-f]{12}) -->\s*")
_END_LINE: Final = re.compile(r"<!-- reverie:end((?: -?[0-9a-f-]{36})*) -->\s*")


@dataclass(frozen=True)
class RuleItem:
    """One text in the block. Without an `id` a person added it; `written_hash`: the hash of what
    was
    written, to see whether it was edited."""

    text: str
    id: str | None = None
    written_hash: str | None = None

    @property
    def is_edited(self) -> bool:
        """Whether a person changed the text since it was written."""
        return self.written_hash != hash_text(self.text)


@dataclass(frozen=True)
class RuleBlock:
    """The items of a block.

    `known_ids`: all ids that were ever written there. `reported_ids`: the removed ones whose
    removal is recorded.
    """

    items: tuple[RuleItem, ...] = ()
    known_ids: frozenset[str] = frozenset()
    reported_ids: frozenset[str] = frozenset()

    @property
    def removed_ids(self) -> frozenset[str]:
        """The ids that a person removed."""
        return self.known_ids - {item.id for item in self.items if item.id}


def normalize_line_ends(text: str) -> str:
    """The text with line feeds alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normalize_text(text: str) -> str:
    """Normalizes a memory's text for a file: no blanks around it, and none in empty lines."""
    lines = normalize_line_ends(text).strip().split("\n")
    return "\n".join(line if line.strip() else "" for line in lines)


def hash_text(text: str) -> str:
    """Returns the hash of a memory's normalized text."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()[:12]


def split_block(name: str, text: str) -> tuple[str, str | None, str]:
    """Splits a text into the part before the block, the block (None if missing), and the part after
    it.

    Raises `InvalidInput` if a mark occurs alone or twice.
    """
    begins = [match.start() for match in re.finditer(rf"^(?:\ufeff)?{BEGIN_MARK}", text, re.M)]
    ends = list(re.finditer(rf"^{END_MARK}[^\r\n]*(?:\r\n|\n|\r)?", text, re.M))
    if not begins and not ends:
        return text, None, ""
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0]:
        line = text.count("\n", 0, (begins or [ends[0].start()])[0]) + 1
        reason = f"the marks of Reverie's block in {name} (line {line}) do not pair: mend them"
        raise InvalidInput("file", reason)
    start = begins[0] + (1 if text[begins[0]] == "\ufeff" else 0)
    stop = ends[0].end()
    return text[:start], text[start:stop], text[stop:]


def parse_block(block: str) -> RuleBlock:
    """The items of a block, in order. What a person wrote there without a mark is one too."""
    items: list[RuleItem] = []
    known_ids: frozenset[str] = frozenset()
    reported_ids: frozenset[str] = frozenset()
    mark: tuple[str, str] | None = None
    lines: list[str] = []

    def done() -> None:
        nonlocal mark, lines
        if text := normalize_text(_join_item_lines(lines)):
            items.append(RuleItem(text, *(mark or ())))
        mark, lines = None, []

    for line in normalize_line_ends(block).split("\n"):
        if line.startswith(BEGIN_MARK) or (line == TITLE and not lines):
            continue
        if match := _END_LINE.fullmatch(line):
            known_ids = frozenset(value.removeprefix("-") for value in match[1].split())
            reported_ids = frozenset(value[1:] for value in match[1].split() if value[0] == "-")
        elif match := _ITEM_MARK.fullmatch(line):
            done()
            mark = (match[1], match[2])
        else:
            starts_item = line[:1] not in {"", " ", "\t"} and (
                line.startswith("- ") or (lines and not lines[-1].strip())
            )
            if starts_item and any(value.strip() for value in lines):
                done()
            lines.append(line)
    done()
    return RuleBlock(
        tuple(items), known_ids | {value.id for value in items if value.id}, reported_ids
    )


def _join_item_lines(lines: Sequence[str]) -> str:
    """The text of an item without the marks of a list."""
    non_blank = [line for line in lines if line.strip()]
    if not non_blank or not non_blank[0].startswith("- "):
        return "\n".join(lines)
    start = next(index for index, line in enumerate(lines) if line.strip())
    remaining = [line.removeprefix("  ") for line in lines[start + 1 :]]
    return "\n".join([lines[start][2:], *remaining])


def render_block(items: Sequence[RuleItem], removed_ids: frozenset[str], line_end: str) -> str:
    """Renders the block. `removed_ids`: ids that a person removed, listed at the end."""
    lines = [NOTICE, TITLE, ""]
    for item in items:
        text = normalize_text(item.text).split("\n")
        if item.id:
            lines.append(
                f"<!-- reverie:item {item.id} {item.written_hash or hash_text(item.text)} -->"
            )
        lines.append(f"- {text[0]}")
        lines += [f"  {line}" if line else "" for line in text[1:]]
    ids = {entry.id for entry in items if entry.id}
    removed_marks = (f"-{entry}" for entry in sorted(removed_ids - ids))
    lines += ["", " ".join([END_MARK, *sorted(ids), *removed_marks, "-->"]), ""]
    return line_end.join(lines)


def replace_block(
    name: str, text: str, items: Sequence[RuleItem], removed_ids: frozenset[str]
) -> str:
    """The file with the block in its place, or behind all else; other bytes stay as they are.

    A block with nothing in it is not begun.
    """
    before, block, after = split_block(name, text)
    line_end = "\r\n" if "\r\n" in (text if block is None else block) else "\n"
    if block is None:
        if not items:
            return text
        open_line = not text.endswith(("\n", "\r"))
        gap = "" if text in {"", "\ufeff"} else line_end * (1 + open_line)
        return text + gap + render_block(items, removed_ids, line_end)
    rendered = render_block(items, removed_ids, line_end)
    return before + (rendered if block.endswith(("\n", "\r")) else rendered.rstrip("\r\n")) + after
