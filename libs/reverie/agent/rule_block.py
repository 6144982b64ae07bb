"""Reverie's block in a file: what is written there, and how it is read again. Pure.

Only what lies between the two marks is ever written. Each item stands behind a mark with the
memory's id and the hash of the text that was written, so that an edit by a person is seen; the last
mark lists all that was written, so that an item which a person removed stays out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reverie.domain.errors import Invalid

BEGIN: Final = "<!-- reverie:begin"
END: Final = "<!-- reverie:end"
NOTICE: Final = (
    "<!-- reverie:begin Kept by `reverie agent-files`. Edit an item, and its memory changes; "
    "remove one, and it stays out; add one, and it is remembered. -->"
)
TITLE: Final = "## What is remembered"
_MARK: Final = re.compile(r"<!-- reverie:item (\S+) ([0-9a-f]{12}) -->\s*")
_OUT: Final = re.compile(r"<!-- reverie:end((?: -?[0-9a-f-]{36})*) -->\s*")


@dataclass(frozen=True)
class Item:
    """One text in the block. Without an `id` a person added it; `base`: the hash of what was
    written, to see whether it was edited."""

    text: str
    id: str | None = None
    base: str | None = None

    @property
    def edited(self) -> bool:
        """Whether a person changed it since it was written."""
        return self.base != hash_of(self.text)


@dataclass(frozen=True)
class Block:
    """The items of a block; `known`: all ids that were ever written there; `told`: those of them
    that it is noted of that a person took them out."""

    items: tuple[Item, ...] = ()
    known: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()

    @property
    def removed(self) -> frozenset[str]:
        """What a person took out."""
        return self.known - {one.id for one in self.items if one.id}


def plain(text: str) -> str:
    """The text with line feeds alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normal(text: str) -> str:
    """A memory's text as a file can hold it: no blanks around it, none in empty lines."""
    lines = plain(text).strip().split("\n")
    return "\n".join(line if line.strip() else "" for line in lines)


def hash_of(text: str) -> str:
    """Of a memory's text as a file can hold it."""
    return hashlib.sha256(normal(text).encode()).hexdigest()[:12]


def split(name: str, text: str) -> tuple[str, str | None, str]:
    """What stands before the block, the block (None where there is none), what stands behind.

    Raises `Invalid` where a mark stands alone or twice.
    """
    begins = [one.start() for one in re.finditer(rf"^(?:\ufeff)?{BEGIN}", text, re.M)]
    ends = list(re.finditer(rf"^{END}[^\r\n]*(?:\r\n|\n|\r)?", text, re.M))
    if not begins and not ends:
        return text, None, ""
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0]:
        line = text.count("\n", 0, (begins or [ends[0].start()])[0]) + 1
        reason = f"the marks of Reverie's block in {name} (line {line}) do not pair: mend them"
        raise Invalid("file", reason)
    start = begins[0] + (1 if text[begins[0]] == "\ufeff" else 0)
    stop = ends[0].end()
    return text[:start], text[start:stop], text[stop:]


def read(block: str) -> Block:
    """The items of a block, in order. What a person wrote there without a mark is one too."""
    items: list[Item] = []
    known: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    mark: tuple[str, str] | None = None
    lines: list[str] = []

    def done() -> None:
        nonlocal mark, lines
        if text := normal(_joined(lines)):
            items.append(Item(text, *(mark or ())))
        mark, lines = None, []

    for line in plain(block).split("\n"):
        if line.startswith(BEGIN) or (line == TITLE and not lines):
            continue
        if found := _OUT.fullmatch(line):
            known = frozenset(one.removeprefix("-") for one in found[1].split())
            told = frozenset(one[1:] for one in found[1].split() if one[0] == "-")
        elif found := _MARK.fullmatch(line):
            done()
            mark = (found[1], found[2])
        else:
            fresh = line[:1] not in {"", " ", "\t"} and (line.startswith("- ") or _ended(lines))
            if fresh and any(one.strip() for one in lines):
                done()
            lines.append(line)
    done()
    return Block(tuple(items), known | {one.id for one in items if one.id}, told)


def _ended(lines: Sequence[str]) -> bool:
    return bool(lines) and not lines[-1].strip()


def _joined(lines: Sequence[str]) -> str:
    """The text of an item without the marks of a list."""
    own = [line for line in lines if line.strip()]
    if not own or not own[0].startswith("- "):
        return "\n".join(lines)
    start = next(n for n, line in enumerate(lines) if line.strip())
    rest = [line.removeprefix("  ") for line in lines[start + 1 :]]
    return "\n".join([lines[start][2:], *rest])


def write(items: Sequence[Item], known: frozenset[str], end: str) -> str:
    """The block. `known`: ids of what a person took out, noted at its end with a dash."""
    lines = [NOTICE, TITLE, ""]
    for item in items:
        text = normal(item.text).split("\n")
        if item.id:
            lines.append(f"<!-- reverie:item {item.id} {item.base or hash_of(item.text)} -->")
        lines.append(f"- {text[0]}")
        lines += [f"  {line}" if line else "" for line in text[1:]]
    ids = {one.id for one in items if one.id}
    out = (f"-{one}" for one in sorted(known - ids))
    lines += ["", " ".join([END, *sorted(ids), *out, "-->"]), ""]
    return end.join(lines)


def put(name: str, text: str, items: Sequence[Item], known: frozenset[str]) -> str:
    """The file with the block in its place, or behind all else; other bytes stay as they are.

    A block with nothing in it is not begun.
    """
    before, block, after = split(name, text)
    end = "\r\n" if "\r\n" in (text if block is None else block) else "\n"
    if block is None:
        if not items:
            return text
        open_line = not text.endswith(("\n", "\r"))
        gap = "" if text in {"", "\ufeff"} else end * (1 + open_line)
        return text + gap + write(items, known, end)
    made = write(items, known, end)
    return before + (made if block.endswith(("\n", "\r")) else made.rstrip("\r\n")) + after
