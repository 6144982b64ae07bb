"""Extraction of the key statements of a message: whole paragraphs and lists, with their heading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.proofreading import is_empty_report
from reverie.domain.text.markdown import (
    MarkdownBlock,
    parse_blocks,
    split_sentences,
    to_plain_text,
)

MAX_PARAGRAPH, MAX_LIST = 600, 700
"""Characters of a statement. A longer paragraph is several; a longer list is told in short."""
MAX_LEAD = 140
MAX_CELL = 120
MIN_REPORT = 40
"""A shorter sentence before code introduces the code."""
MAX_CODE, MAX_CODE_LINES = 560, 16
"""Characters and lines of code that is told with what announces it; longer code is left out."""
MAX_NAMES = 3

_GENERIC_HEADING = re.compile(
    r"(?:(?:a |the |final |overall |quick |key |main |research |current |complete )*"
    r"(?:summary|changes?|overview|details?|results?|state|status|findings?|benefits?|notes?|review"
    r"|code review|line[- ]by[- ]line review|analysis|conclusion|verdict|assessment|what changed"
    r"|implementation|current implementation|solution|proposed (?:solution|fix|change|changes)"
    r"|steps?|recommendations?|examples?|output|code|strengths|before|after|context|answer"
    r"|updates?|done|points|table|top \d+ [\w ]+|my (?:opinion|assessment|take|recommendation)"
    r"|here'?s my assessment)(?: (?:of|table|report|made).*)?)[:.]?",
    re.I,
)
# A name that code defines at its outermost level.
_DEFINITION = re.compile(
    r"^(?:export |async |public |static )*(?:func|def|class|type|function|interface|const|var|let)"
    r" (?:\([^()\n]*\) ?)?(\w{3,})",
    re.M,
)
_CODE_LINE = re.compile(r"[{}<>]{2}|;\s*$|^\s*[\w.]+\([^)]*\)\s*[{;]|:=|=>|\bfunc \w+\(|^\s*//")


# What an item names, before it tells of it.
_ITEM_HEAD = re.compile(r"(?:`[^`]*`|[^`])+?(?=: | [-–—] |[.;](?:\s|$)|, which |$)")


@dataclass(frozen=True)
class KeyStatement:
    """One statement. `parts`: its sentences, or the items of a list; `lead`: the heading above.

    `is_code`: a block of code that nothing announces, which belongs to the statement before it.
    """

    lead: str
    parts: tuple[str, ...]
    is_item: bool = False
    is_code: bool = False

    @property
    def text(self) -> str:
        """The sentences, or the whole list."""
        return "; ".join(self.parts) if self.is_item else " ".join(self.parts)

    @property
    def full_text(self) -> str:
        """The point with its lead, as one sentence or more."""
        if not self.lead or self.lead.lower() in self.text.lower():
            return self.text
        return f"{self.lead}: {self.text}"


def extract_key_statements(content: str, with_code: bool = False) -> list[KeyStatement]:
    """Extracts the points of a message in order; the items under one lead are one point.

    `with_code`: short code is told; else what announces it is, with the names that it defines.
    """
    points: list[KeyStatement] = []
    found = _iter_key_statements(content, with_code)
    for is_item, group in groupby(found, lambda p: p.is_item and p.lead):
        if is_item is False:
            for point in group:
                if not point.is_code or not points:
                    points.append(point)
                else:
                    *parts, last = points[-1].parts
                    points[-1] = replace(points[-1], parts=(*parts, f"{last}\n{point.text}"))
        else:
            items = list(group)
            points.append(replace(items[0], parts=_fit_list([i.text for i in items])))
    return points


def extract_informative_sentences(text: str) -> list[str]:
    """Extracts the informative sentences: no greeting, no "let me", no offer, no code."""
    return [
        sentence
        for sentence in (_strip_opening(s) for s in split_sentences(to_plain_text(text)))
        if _is_informative(sentence)
    ]


def is_generic_heading(text: str) -> bool:
    """Whether a heading does not say what it is about."""
    return _GENERIC_HEADING.fullmatch(text) is not None


def is_code_line(line: str) -> bool:
    """Whether a line is of a program; code in backticks belongs to its sentence."""
    return bool(_CODE_LINE.search(re.sub(r"`[^`]*`", "x", line)))


def _is_informative(sentence: str) -> bool:
    if len(sentence.encode()) < 12 or is_code_line(sentence):
        return False
    return not (
        is_empty_report(sentence)
        or discourse_markers.PLEASANTRY.match(_INTERJECTION.sub("", sentence))
        or discourse_markers.CHATTER.match(sentence)
        or discourse_markers.NARRATION.match(sentence)
        or discourse_markers.OFFER.search(sentence)
    )


def _strip_opening(sentence: str) -> str:
    """Removes an opening such as "Good catch - " or "Yes, "; "I'll use" marks a choice."""
    rest = _CHOICE_OPENING.sub("Use ", _OPENING.sub("", sentence))
    rest = _WORK_OPENING.sub("", rest)
    return rest[:1].upper() + rest[1:] if rest and rest != sentence else sentence


_CHOICE_OPENING = re.compile(
    r"^(?:i'?ll|we'?ll|i will|we will) use (?=(?:`|(?-i:[A-Z]))[^.]*? (?:for|as|to"
    r"|instead)\b)(?!.*\b(?:agent|tool)\b)",
    re.I,
)
CHANGE_VERBS = (
    "added|changed|created|deleted|fixed|implemented|replaced|removed|renamed|refactored|moved"
    "|updated|kept|migrated|extracted|simplified|switched|wired|reverted|converted"
)
# What was done is told without who did it.
_WORK_OPENING = re.compile(
    rf"^(?:i|we)(?:'ve| have)? (?:now |also |just )?(?=(?:{CHANGE_VERBS})\b)", re.I
)
_INTERJECTION = re.compile(r"^(?:(?:ah+|oh|hm+|well|ha|wow|yeah|yep|yes|right)\b[,!.]? +)+", re.I)
_OPENING = re.compile(
    r"^(?:good (?:catch|point|question)|great|perfect|yes|yup|sure|ok(?:ay)?|right|done"
    r"|you'?re right"
    r"|got it|understood|my mistake|excellent"
    r"|(?:now )?i see(?: now)?(?: the (?:\w+ )?(?:issue|problem|bug|error|cause))?)"
    r"\s*[,!.:–—-]+\s+"
    r"|^based on (?:my|the|this) [\w ]{1,40},\s+|^(?:but|and|or|so|also|however),?\s+",
    re.I,
)


def _iter_key_statements(content: str, with_code: bool) -> Iterator[KeyStatement]:
    heading, is_minor, intro, columns = "", False, "", list[str]()
    parsed_blocks = _merge_nested_items(parse_blocks(content, include_code=True))
    for index, block in enumerate(parsed_blocks):
        next_type = parsed_blocks[index + 1].type if index + 1 < len(parsed_blocks) else ""
        if (
            block.type == "text"
            and index
            and parsed_blocks[index - 1].type in {"item", "row", "code"}
            and is_minor
        ):
            # A bold line introduces one list or block; what follows it is on its own.
            heading = ""
        if block.type == "heading":
            heading, is_minor, intro = _clean_heading(block.text), block.depth > 6, ""
            is_childless = next_type in {"", "heading"}
            if is_childless and discourse_markers.COMPLETED_CHANGE.match(heading):
                yield KeyStatement("", (heading,))
        elif block.type == "row":
            yield from _iter_row_statements(_join_headings(heading, intro), block, columns)
            continue
        elif block.type == "item":
            yield from _iter_item_statements(_join_headings(heading, intro), block)
        elif block.type == "code":
            yield from _iter_code_statements(heading, intro, block.text, with_code)
            intro = ""
        else:
            intro, own_sentences = _split_paragraph(block, next_type)
            yield from (KeyStatement(heading, part) for part in _split_long(own_sentences))
        columns = []


def _merge_nested_items(blocks: Iterable[MarkdownBlock]) -> list[MarkdownBlock]:
    """Joins the items below an item to it: alone, they do not say what they are about."""
    merged: list[MarkdownBlock] = []
    for block in blocks:
        parent = merged[-1] if merged else None
        is_nested = (
            parent is not None
            and parent.type == block.type == "item"
            and block.depth > parent.depth
        )
        if parent is None or not is_nested:
            merged.append(block)
        elif not discourse_markers.POSITIVE_VERDICT.match(block.text):
            is_first = parent.text.rstrip("*").endswith((":", "：")) or ": " not in parent.text
            head = to_plain_text(parent.text).rstrip(" :：.;")
            text = f"{head}{': ' if is_first else '; '}{block.text}"
            merged[-1] = replace(parent, text=text)
    return merged


def _split_paragraph(block: MarkdownBlock, next_type: str) -> tuple[str, list[str]]:
    """Splits a paragraph into its introduction to what follows, and its own text."""
    text = to_plain_text(block.text)
    parts = split_sentences(text)
    intro = ""
    is_title = len(text) < MAX_LEAD and not text.endswith((".", "!", "?", "。"))
    is_report = (
        next_type in {"", "text", "heading"}
        and bool(parts)
        and len(parts[-1]) >= MIN_REPORT
        and bool(discourse_markers.COMPLETED_CHANGE.match(_strip_opening(parts[-1])))
    )
    if is_report:
        parts[-1] = parts[-1].rstrip(":：")
    elif parts and (parts[-1].endswith((":", "：")) or (next_type == "item" and is_title)):
        intro = _clean_heading(parts.pop())
    return intro, extract_informative_sentences(" ".join(parts))


def _split_long(sentences: list[str]) -> Iterator[tuple[str, ...]]:
    """A paragraph whole; a long one in parts, none of which leans on the one before."""
    part: list[str] = []
    for sentence in sentences:
        is_full = sum(map(len, part)) + len(sentence) > MAX_PARAGRAPH
        if part and is_full and not discourse_markers.ANAPHORIC_START.match(sentence):
            yield tuple(part)
            part = []
        part.append(sentence)
    if part:
        yield tuple(part)


def _clean_heading(text: str) -> str:
    lead = _strip_opening(to_plain_text(text)).strip(" :：.-—")
    lead = re.sub(r"^(?:file|function|lines?):\s*|,? (?:so|and|which means)$", "", lead, flags=re.I)
    is_generic = (
        is_generic_heading(lead)
        or discourse_markers.NARRATION.match(lead)
        or discourse_markers.PLEASANTRY.match(lead)
    )
    return "" if is_generic or len(lead) > MAX_LEAD or len(lead) < 3 else lead


def _join_headings(heading: str, intro: str) -> str:
    return f"{heading}, {intro}" if heading and intro and heading not in intro else heading or intro


def _iter_item_statements(lead: str, block: MarkdownBlock) -> Iterator[KeyStatement]:
    if discourse_markers.POSITIVE_VERDICT.match(block.text) or re.match(r"\[[xX ⚡]\]", block.text):
        return
    if block.text.rstrip("* ").endswith((":", "：")) and "`" not in block.text:
        # What it announces is code, and it names none.
        return
    text = " ".join(extract_informative_sentences(block.text)).rstrip()
    if len(text) > 15 or (text and lead):
        yield KeyStatement(lead, (text,), is_item=True)


def _iter_code_statements(
    heading: str, intro: str, code: str, with_code: bool
) -> Iterator[KeyStatement]:
    """Short code with what announces it; of other code what announces it.

    What was added is named by what the code defines.
    """
    announced = intro or heading
    is_told = with_code and not code.startswith("```diff")
    if is_told and len(code) <= MAX_CODE and code.count("\n") <= MAX_CODE_LINES:
        text = f"{announced}:\n{code}" if announced else code
        yield KeyStatement(heading if intro else "", (text,), is_code=not announced)
    elif announced:
        is_change = discourse_markers.COMPLETED_CHANGE.match(announced)
        names = list(dict.fromkeys(_DEFINITION.findall(code)))[:MAX_NAMES] if is_change else []
        told = [f"`{name}`" for name in names if name not in announced]
        if told or len(intro) >= MIN_REPORT:
            text = ": ".join(filter(None, (announced, ", ".join(told))))
            yield KeyStatement(heading if intro else "", (f"{text}.",))


def _iter_row_statements(
    lead: str, block: MarkdownBlock, columns: list[str]
) -> Iterator[KeyStatement]:
    """A row as a sentence under its columns' names; the first row names them."""
    cells = [to_plain_text(cell) for cell in re.split(r"(?<!\\)\|", block.text)]
    if not columns:
        columns.extend(cells)
        return
    if len(cells) != len(columns) or len(cells) < 2 or any(len(c) > MAX_CELL for c in cells):
        return
    rest = "; ".join(f"{n}: {c}" for n, c in zip(columns[1:], cells[1:], strict=True) if c)
    if not rest or not cells[0]:
        return
    is_numbered = cells[0].strip("#. ").isdigit()
    text = rest if is_numbered else f"{cells[0]} ({rest})"
    yield KeyStatement(lead, (text,), is_item=True)


def _fit_list(items: list[str]) -> tuple[str, ...]:
    """A whole list; of one that is too long, the first sentence or the head of each item.

    What still does not fit is counted.
    """
    # What an item announced with a colon was code.
    whole = [item.rstrip(".;:： ") for item in items]
    first = [next(iter(split_sentences(item)), item).rstrip(".;:： ") for item in whole]
    heads = [match[0].strip() if (match := _ITEM_HEAD.match(item)) else item for item in whole]
    for told in (whole, first, heads):
        if sum(map(len, told)) <= MAX_LIST:
            return tuple(told)
    told = list(heads)
    while len(told) > 1 and sum(map(len, told)) > MAX_LIST:
        told.pop()
    return (*told, f"and {len(heads) - len(told)} more")
