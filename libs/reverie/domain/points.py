"""What a message says, point by point: headings carried along, pleasantries left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from reverie.domain import cues
from reverie.domain.prose import Block, blocks, plain, sentences, shorten

MAX_POINT = 260
MAX_LEAD = 140
MAX_CELL = 120

_GENERIC = re.compile(
    r"(?:(?:a |the |final |overall |quick |key |main |research |current |complete )*"
    r"(?:summary|changes?|overview|details?|results?|state|status|findings?|benefits?|notes?|review"
    r"|code review|line[- ]by[- ]line review|analysis|conclusion|verdict|assessment|what changed"
    r"|implementation|current implementation|solution|proposed (?:solution|fix|change|changes)"
    r"|steps?|recommendations?|examples?|output|code|strengths|before|after|context|answer"
    r"|updates?|done|table)(?: (?:of|table|report|made).*)?)[:.]?",
    re.I,
)
_SECRETIVE = re.compile(r"[{}<>]{2}|;\s*$|^\s*[\w.]+\([^)]*\)\s*[{;]|:=|=>|\bfunc \w+\(|^\s*//")


@dataclass(frozen=True)
class Point:
    """One thing said. `lead` is the heading or introduction it stood under."""

    lead: str
    text: str
    item: bool = False

    @property
    def said(self) -> str:
        """The point with its lead, as one sentence or more."""
        if not self.lead or self.lead.lower() in self.text.lower():
            return self.text
        return f"{self.lead}: {self.text}"


def points(content: str) -> list[Point]:
    """The points of a message in order; short items under one lead come as one point."""
    packed: list[Point] = []
    for (lead, item), group in groupby(_points(content), lambda p: (p.lead, p.item)):
        texts = [point.text for point in group]
        packed += _packed(lead, texts) if item else [Point(lead, text) for text in texts]
    return packed


def grouped(said: Iterable[str], leans: re.Pattern[str], most: int = 240) -> list[str]:
    """Sentences by themselves, but for those that lean on the one before, as far as `most`."""
    told: list[str] = []
    for sentence in said:
        if told and leans.match(sentence) and len(told[-1]) + len(sentence) < most:
            told[-1] = f"{told[-1]} {sentence}"
        else:
            told.append(sentence)
    return told


def said_plainly(text: str) -> list[str]:
    """The sentences that say something: no greeting, no "let me", no offer, no code."""
    return [
        sentence
        for sentence in (_greetingless(s) for s in sentences(plain(text)))
        if _says(sentence)
    ]


def _says(sentence: str) -> bool:
    if len(sentence) < 12 or _SECRETIVE.search(re.sub(r"`[^`]*`", "", sentence)):
        return False
    return not (
        cues.PLEASANTRY.match(sentence)
        or cues.NARRATION.match(sentence)
        or cues.OFFER.search(sentence)
    )


def _greetingless(sentence: str) -> str:
    """Without an opening such as "Good catch - " or "Yes, "; "I'll use" tells a choice."""
    rest = _CHOICE.sub("Use ", _OPENING.sub("", sentence))
    return rest[:1].upper() + rest[1:] if rest and rest != sentence else sentence


_LEANS = re.compile(
    r"^(?:it|this|that|these|those|they|its|their|there|which|otherwise|if (?:so|not)|both|same"
    r"|since (?:it|this|that|they|ours)|because|for example|e\.g|i\.e|then|here|without (?:it"
    r"|this))\b"
    r"|^(?:它|这|那|因此|所以|否则)",
    re.I,
)
_CHOICE = re.compile(
    r"^(?:i'?ll|we'?ll|i will|we will) use (?=(?:`|(?-i:[A-Z]))[^.]*? (?:for|as|to"
    r"|instead)\b)(?!.*\b(?:agent|tool)\b)",
    re.I,
)
_OPENING = re.compile(
    r"^(?:good (?:catch|point|question)|great|perfect|yes|yup|sure|ok(?:ay)?|right|done"
    r"|you'?re right"
    r"|got it|understood|my mistake|excellent)\s*[,!.:–—-]+\s+"
    r"|^based on (?:my|the|this) [\w ]{1,40},\s+|^(?:but|and|or|so|also|however),?\s+",
    re.I,
)


def _points(content: str) -> Iterator[Point]:
    heading, minor, intro, columns = "", False, "", list[str]()
    found = blocks(content, commands=True)
    for i, block in enumerate(found):
        follower = found[i + 1].sort if i + 1 < len(found) else ""
        if block.sort == "text" and i and found[i - 1].sort in {"item", "row"} and minor:
            # A bold line introduces one list; what follows the list is on its own.
            heading = ""
        if block.sort == "heading":
            heading, minor, intro = _lead(block.text), block.depth > 6, ""
        elif block.sort == "row":
            yield from _row(_join(heading, intro), block, columns)
            continue
        elif block.sort == "item":
            yield from _item(_join(heading, intro), block)
        else:
            intro, said = _paragraph(block, follower)
            yield from (Point(heading, one) for one in grouped(said, _LEANS))
        columns = []


def _paragraph(block: Block, follower: str) -> tuple[str, list[str]]:
    """The introduction that a paragraph is to what follows, and what it says itself."""
    text = plain(block.text)
    parts = sentences(text)
    intro = ""
    if parts and (parts[-1].endswith((":", "：")) or (follower == "item" and _titles(text))):
        intro = _lead(parts.pop())
    return intro, said_plainly(" ".join(parts))


def _titles(text: str) -> bool:
    """Whether a paragraph reads like a title: short, and no full sentence."""
    return len(text) < MAX_LEAD and not text.endswith((".", "!", "?", "。"))


def _lead(text: str) -> str:
    lead = _greetingless(plain(text)).strip(" :：.-—")
    lead = re.sub(r"^(?:file|function|lines?):\s*", "", lead, flags=re.I)
    dull = _GENERIC.fullmatch(lead) or cues.NARRATION.match(lead) or cues.PLEASANTRY.match(lead)
    return "" if dull or len(lead) > MAX_LEAD or len(lead) < 3 else lead


def _join(heading: str, intro: str) -> str:
    return f"{heading}, {intro}" if heading and intro and heading not in intro else heading or intro


def _item(lead: str, block: Block) -> Iterator[Point]:
    if cues.VERDICT_GOOD.match(block.text) or re.match(r"\[[xX ⚡]\]", block.text):
        return
    said = " ".join(said_plainly(block.text)).rstrip(":： ")
    if len(said) > 15 or (said and lead):
        yield Point(lead, said, item=True)


def _row(lead: str, block: Block, columns: list[str]) -> Iterator[Point]:
    """A row as a sentence under its columns' names; the first row names them."""
    cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", block.text)]
    if not columns:
        columns.extend(cells)
        return
    if len(cells) != len(columns) or len(cells) < 2 or any(len(c) > MAX_CELL for c in cells):
        return
    rest = "; ".join(f"{n}: {c}" for n, c in zip(columns[1:], cells[1:], strict=True) if c)
    if not rest or not cells[0]:
        return
    numbered = cells[0].strip("#. ").isdigit()
    yield Point(lead, rest if numbered else f"{cells[0]} ({rest})", item=True)


def _packed(lead: str, texts: list[str]) -> list[Point]:
    found: list[Point] = []
    for text in texts:
        short = shorten(text, MAX_POINT).rstrip(".;")
        last = found[-1] if found else None
        if last and len(last.said) + len(short) + 2 <= MAX_POINT:
            found[-1] = replace(last, text=f"{last.text}; {short}")
        else:
            found.append(Point(lead, short, item=True))
    return found
