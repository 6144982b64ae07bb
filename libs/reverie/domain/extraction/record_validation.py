"""Validation of statements that a language model wrote: what its cited turns do not say is dropped.

A statement quotes a cited turn, and its words, numbers, names and negations stand in the turns that
it cites. The model words and chooses; it adds nothing. Measured on statements copied, rephrased
and falsified: benchmarks/quality/model_records.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from reverie.domain.entities.file_paths import extract_identifiers, extract_paths
from reverie.domain.extraction.content_checks import contains_instructions
from reverie.domain.text.characters import CJK, word_set
from reverie.domain.text.index_terms import fold_to_simplified
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.normalization import cache_by_text, stem
from reverie.domain.text.turns import TurnText

MIN_STATEMENT_BYTES, MAX_STATEMENT_CHARS = 15, 400
MIN_QUOTE_BYTES = 12
MIN_SUPPORTED_SHARE = 0.75
"""Share of a statement's content words that must stand in the turns that it cites."""
MIN_DENIED_SHARE, MIN_DENIAL_MARGIN = 0.75, 0.25
"""A clause is denied if a clause of opposite polarity has so many of its words, and so many more
than any clause of its own polarity."""


class Objection(StrEnum):
    """Why a statement is dropped."""

    LENGTH = "it is too short or too long"
    TURNS = "it cites no turn, or one that is not there"
    QUOTE = "its quote is not in the turns that it cites"
    INSTRUCTIONS = "it speaks to a model"
    NUMBERS = "a number is not in the turns that it cites"
    NAMES = "a name is not in the turns that it cites"
    WORDS = "its words are not in the turns that it cites"
    NEGATION = "the turns that it cites say the opposite"
    SPEAKER = "who says it cannot decide it"
    ACCEPTANCE = "nobody accepted the proposal, or it was refused"
    REFUSAL = "nobody refused it"
    QUESTION = "it is a question"
    SPACE = "the record is full"


@dataclass(frozen=True)
class DroppedStatement:
    """A statement that was dropped, why, and the turns that it cited."""

    text: str
    objection: Objection
    turns: tuple[UUID, ...] = ()


_GENERAL_WORDS = word_set(
    """the and for with from that this these those are was were been being not but its into than
    then when while where which who whose what how there their they them have has had does did done
    will would can could should shall must may might need needs let our ours your yours you all any
    each every both either other others another same such only also just still even ever never no
    always very more most much many few less least one once here now new own per via out off over
    under about above below after before between within without during until because since so if
    as at by in is it of on or to up we us do be an a me my i he she
    use uses used using keep keeps kept set sets make makes made take takes get gets got give gives
    put puts go goes come comes become stay stays remain remains leave leaves hold holds apply
    applies applied decide decides decided choose chose chosen agree agreed require requires
    required ensure ensures mean means say says said call calls called treat treats treated handle
    handles handled allow allows allowed avoid avoids avoided prefer preferred instead rather
    exactly therefore thus hence however already yet cannot
    的 了 是 在 和 与 或 也 都 要 应 应该 必须 我们 用 使用 这 那 不"""
)
_NUMBER_WORDS = {
    "zero": "0", "half": "0.5", "two": "2", "twice": "2", "three": "3", "four": "4", "five": "5",
    "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11",
    "twelve": "12", "hundred": "100", "thousand": "1000",
}  # fmt: skip
_UNITS = {
    name: unit
    for unit, names in {
        "ms": "ms millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "m min mins minute minutes",
        "h": "h hr hrs hour hours",
        "day": "d day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
        "%": "% percent",
        "kb": "kb kib kilobyte kilobytes",
        "mb": "mb mib megabyte megabytes",
        "gb": "gb gib gigabyte gigabytes",
    }.items()
    for name in names.split()
}
_NUMBER = re.compile(
    rf"(?<![\w.])(\d+(?:[.:]\d+)*|(?:{'|'.join(_NUMBER_WORDS)})\b)(?:[\s-]?([a-z]+|%))?",
    re.I,
)
_THOUSANDS = re.compile(r"(?<=\d)[,_](?=\d{3}(?!\d))")
_NAME_WITH_DIGIT = re.compile(r"(?<![\w.])(?=[\w.]*[A-Za-z_])(?=[\w.]*\d)\w+(?:\.\w+)*(?!\w)")
_MEASURE = re.compile(rf"\d+(?:\.\d+)*(?:{'|'.join(_UNITS)}|x|st|nd|rd|th)?", re.I)
_CODE_SPAN = re.compile(r"`([^`\n]{2,200})`")
_CAPITALISED = re.compile(r"(?<![\w`/.-])[A-Z][A-Za-z0-9]+(?![\w/]|\.\w)")
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])[^\W\d_])+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nothing|nobody|avoid\w*|forbid\w*"
    r"|prohibit\w*|disallow\w*|stop|instead of|rather than)\b|n['’]t\b|不|没|无|禁止|别|勿|避免",
    re.I,
)
_CLAUSE_END = re.compile(
    r"[,;:!?()\n，。；：！？（）—]|\.(?=\s|$)| - "
    r"|\b(?:and|but|while|whereas|however|so|because|since|if|when|unless|then)\b"
    r"|(?=\b(?:instead of|rather than|without)\b)",
    re.I,
)
_DISMISSAL = re.compile(
    r"\b(?:refus\w+|reject\w*|wrong|instead|too \w+|worse|rul(?:e|ed|ing) (?:it )?out|discard\w*"
    r"|revert\w*|against|out|defeats?|breaks?|broke|fail\w*|overkill|later|hold on|wait|careful"
    r"|actually)\b|太|错|拒绝",
    re.I,
)
_SPACES_AND_MARKS = re.compile(r"[\s`*_\"'“”‘’«»]+")
_ELLIPSIS = re.compile(r"\.{3,}|…|\[\.\.\.\]")


@dataclass(frozen=True)
class Clause:
    """The content words of a clause, and whether it is negated."""

    words: frozenset[str]
    is_negated: bool


@dataclass(frozen=True)
class Quotation:
    """The turn that a quote stands in, and the whole sentences that it was taken from."""

    turn: TurnText
    sentences: str


def clean_line(text: str) -> str:
    """The text as one line that can be stored: without control and invisible characters."""
    storable = text.encode("utf-8", "ignore").decode()
    visible = (" " if c.isspace() else c for c in storable)
    return " ".join(
        "".join(c for c in visible if unicodedata.category(c) not in {"Cc", "Cf", "Co"}).split()
    )


def find_objection(text: str, cited: Sequence[TurnText], quotation: Quotation) -> Objection | None:
    """Why the cited turns do not support a statement; None if they do."""
    return (
        find_unsupported(text, cited)
        or (Objection.INSTRUCTIONS if contains_instructions(quotation.sentences) else None)
        or (Objection.NEGATION if _is_denied(text, cited, quotation) else None)
    )


def find_unsupported(text: str, cited: Sequence[TurnText]) -> Objection | None:
    """Why the cited turns do not hold the words, numbers and names of a text; None if they do."""
    if len(text.encode()) < MIN_STATEMENT_BYTES or len(text) > MAX_STATEMENT_CHARS:
        return Objection.LENGTH
    if contains_instructions(text) or "<item" in text.lower() or "<data" in text.lower():
        return Objection.INSTRUCTIONS
    sources = [turn.content for turn in cited]
    if not _has_numbers(text, sources):
        return Objection.NUMBERS
    words = frozenset[str]().union(*map(read_content_words, sources))
    if not _has_names(text, "\n".join(sources).lower(), words):
        return Objection.NAMES
    stated = read_content_words(text)
    if not stated or len(stated & words) < MIN_SUPPORTED_SHARE * len(stated):
        return Objection.WORDS
    return None


def find_quotation(text: str, quote: str, cited: Sequence[TurnText]) -> Quotation | None:
    """The cited turn that holds the quote of a statement; None if none does.

    Case, spaces and marks do not count. Parts around an ellipsis must stand in the same turn. The
    quote must share a word with the statement.
    """
    parts = [part for part in map(_flatten, _ELLIPSIS.split(quote)) if part]
    if sum(len(part.encode()) for part in parts) < MIN_QUOTE_BYTES:
        return None
    if not read_content_words(quote) & read_content_words(text):
        return None
    for turn in cited:
        if all(part in _flatten(turn.content) for part in parts):
            return Quotation(turn, " ".join(_list_quoted_sentences(turn.content, parts)))
    return None


def is_dismissal(text: str) -> bool:
    """Whether a text refuses something."""
    return bool(_NEGATION.search(text) or _DISMISSAL.search(text))


def is_named(name: str, source: str) -> bool:
    """Whether a text names a file, symbol or command."""
    return bool(re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", source.lower()))


@cache_by_text
def read_content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry content; of Chinese, pairs of letters."""
    words: set[str] = set()
    normalized = fold_to_simplified(unicodedata.normalize("NFKC", text))
    for match in _WORD.finditer(_CAMEL_BOUNDARY.sub(" ", normalized)):
        word = match[0].lower()
        if not word.isascii() and re.match(f"[{CJK}]", word):
            words |= {word[n : n + 2] for n in range(max(1, len(word) - 1))}
        elif len(word) > 2 and word not in _GENERAL_WORDS and word not in _NUMBER_WORDS:
            # The first five letters of a stem, for `connect` and `connection` say the same.
            root = stem(word)
            is_short = len(root) <= 5 and root.endswith("i")
            words.add(f"{root[:-1]}y" if is_short else root[:5])
    return frozenset(words)


@cache_by_text
def _flatten(text: str) -> str:
    normalized = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES_AND_MARKS.sub("", re.sub(r"[‐-―]", "-", normalized))


def _list_quoted_sentences(content: str, parts: Sequence[str]) -> Iterator[str]:
    """The sentences of a message that a quote touches."""
    sentences = split_sentences(content)
    whole = _flatten(content)
    spans = [(start := whole.find(part), start + len(part)) for part in parts]
    position = 0
    for sentence in sentences:
        flat = _flatten(sentence)
        begin = whole.find(flat, position)
        if begin < 0:
            continue
        position = begin + len(flat)
        if any(start < position and begin < stop for start, stop in spans):
            yield sentence


def _has_numbers(text: str, sources: Sequence[str]) -> bool:
    """Whether the sources hold each number, with its unit where the number has one."""
    given = frozenset[tuple[str, str]]().union(*map(_read_numbers, sources))
    bare = {number for number, _ in given}
    for number, unit in _read_numbers(text):
        if number not in bare:
            return False
        if unit and (number, unit) not in given and (number, "") not in given:
            return False
    return True


@cache_by_text
def _read_numbers(text: str) -> frozenset[tuple[str, str]]:
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    return frozenset(
        (_NUMBER_WORDS.get(number.lower(), number), _UNITS.get(unit.lower(), ""))
        for number, unit in _NUMBER.findall(plain)
    )


def _has_names(text: str, source: str, words: frozenset[str]) -> bool:
    """Whether a source, in small letters, holds every path, symbol and proper name of a text."""
    plain = _CODE_SPAN.sub(" ", text)
    names = set(extract_paths(text)) | extract_identifiers(plain)
    names |= {" ".join(span.split()) for span in _CODE_SPAN.findall(text)}
    names |= {n for n in _NAME_WITH_DIGIT.findall(plain) if not _MEASURE.fullmatch(n)}
    flat = " ".join(source.split())
    if not all(is_named(name, flat) for name in names):
        return False
    capitalised = (match[0] for match in _CAPITALISED.finditer(plain))
    return all(read_content_words(word) <= words for word in capitalised)


def _is_denied(text: str, cited: Sequence[TurnText], quotation: Quotation) -> bool:
    """Whether what comes closest to a clause, in the quoted sentences or else in the turns, denies
    what it states, or states what it denies."""
    sources = [*split_clauses(quotation.sentences)]
    sources += [clause for turn in cited for clause in split_clauses(turn.content)]
    return any(
        _is_clause_denied(clause, sources)
        for clause in split_clauses(text)
        if len(clause.words) > 1
    )


def _is_clause_denied(clause: Clause, sources: Sequence[Clause]) -> bool:
    same = opposite = 0.0
    for source in sources:
        share = len(clause.words & source.words) / len(clause.words)
        if source.is_negated == clause.is_negated:
            same = max(same, share)
        else:
            opposite = max(opposite, share)
    return opposite >= MIN_DENIED_SHARE and opposite - same >= MIN_DENIAL_MARGIN


@cache_by_text
def split_clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that have content words."""
    clauses = (
        Clause(read_content_words(_NEGATION.sub(" ", part)), bool(_NEGATION.search(part)))
        for part in _CLAUSE_END.split(text)
        if part
    )
    return tuple(clause for clause in clauses if clause.words)
