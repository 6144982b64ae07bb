"""What a short text states: its content words in order, what it denies, what it replaces.

Only as deep as telling two statements apart needs: function words are dropped, plain words
lose their endings, names and numbers stay whole, negations of all shapes become one.
English first; Chinese by the character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reverie.domain.keeping import Keeping

NUMBER = re.compile(r"v?\d+(?:\.\d+)*%?")


def spaced(words: str) -> frozenset[str]:
    """The words of a list between spaces."""
    return frozenset(words.split())


_STOP = spaced(
    """a an the of in on at to for from by is are was were be been being it its as and or that
    this these those with we our us you your i my all must should shall will would can could may
    has have had do does did so then there their them they against because since into over than
    before after when while if within per via also always which who instead please 的 了 都 请 也"""
)
MARKERS = spaced("over than before after from to into by instead")
_NOT = "not"
_REWRITES = tuple(
    (re.compile(pattern, re.I), into)
    for pattern, into in (
        (r"\bcan(?:no|['’]\s?)t\b", "can not"),
        (r"\bwon['’]t\b", "will not"),
        (r"\b(\w+)n['’]t\b", r"\1 not"),
        (r"\bno longer\b|\bnever\b|\bavoid\b|\bstop(?= \w+ing\b)|\bno\b(?!\.)", " not "),
        (r"\b(?:rather than|in place of)\b", "instead of"),
        (r"\b(?:turned|switched) on\b|开启|启用|打开", " enabled "),
        (r"\b(?:turned|switched) off\b|关闭|禁用", " disabled "),
        (r"不要|不再|不得|不能|不可|禁止|不", " not "),
        (r"\b(\d+)(ms|s|sec|min|h|[kmg]i?b)\b", r"\1 \2"),
    )
)
_UNITS = {
    name: unit
    for unit, names in {
        "millisecond": "ms millisecond milliseconds",
        "second": "s sec secs second seconds",
        "minute": "min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "day": "d day days",
        "kb": "kb kib",
        "mb": "mb mib",
        "gb": "gb gib",
    }.items()
    for name in names.split()
}
_NUMBERS = dict(
    zip(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        map(str, range(1, 11)),
        strict=True,
    )
) | {"once": "1", "twice": "2"}
_TOKEN = re.compile(
    r"(?P<word>[./]?[A-Za-z0-9_]+(?:[./\\:@#+\-]+[A-Za-z0-9_]+)*%?(?:\(\))?)"
    r"|(?P<cjk>[\u3400-\u9fff])|(?P<other>[^\W\d_]+)|(?P<sep>[,;:!?()，。；：！？（）]|\.(?=\s|$))"
)
_SHAPED = re.compile(r"\d|[._/\\:@#+\-]|[a-z][A-Z]|\(\)")
_REPLACES = re.compile(r"(?:mov|switch|migrat|chang)")
REACH = 64
"""Tokens that a negation or a marker speaks of at most, where no separator ends it before."""


@dataclass(frozen=True)
class Statement:
    """A text taken apart.

    `words`: content words in order. `breaks`: places of words that follow a separator or a
    function word. `denied`: for each negation the words after it up to the next separator.
    `replaced`: words that something else takes the place of. `after`: what follows each
    directional marker.
    """

    words: tuple[str, ...]
    breaks: frozenset[int]
    denied: tuple[tuple[str, ...], ...]
    replaced: frozenset[str]
    after: dict[str, frozenset[str]]

    @cached_property
    def bag(self) -> frozenset[str]:
        """The distinct content words."""
        return frozenset(self.words)


@Keeping
def statement(text: str) -> Statement:
    """Takes a text apart; the texts asked last are kept, for each is judged beside many others."""
    tokens = list(_tokens(_rewritten(text)))
    words: list[str] = []
    breaks: set[int] = set()
    for kind, token in tokens:
        if kind == "word":
            words.append(token)
        else:
            breaks.add(len(words))
    denied, replaced = _denied(tokens), _replaced(tokens)
    return Statement(tuple(words), frozenset(breaks), denied, replaced, _after(tokens))


def is_name(word: str) -> bool:
    """Whether a word is a path, an identifier or a number rather than a plain word."""
    return bool(_SHAPED.search(word))


def _rewritten(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    for pattern, into in _REWRITES:
        text = pattern.sub(into, text)
    return text


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, token): word, stop, not, sep."""
    before = ""
    for match in _TOKEN.finditer(text):
        raw = match[0]
        if match["sep"]:
            yield "sep", raw
            continue
        token = _normal(raw, before)
        before = token
        if token == _NOT:
            yield "not", token
        else:
            yield ("stop" if token in _STOP else "word"), token


def _normal(raw: str, before: str) -> str:
    low = raw.lower().removesuffix("()")
    low = _NUMBERS.get(low, low)
    if low in _UNITS and NUMBER.fullmatch(before):
        return _UNITS[low]
    if low in _STOP or low == _NOT or _SHAPED.search(raw):
        return low
    return stem(low)


def stem(word: str) -> str:
    """A plain word without its ending: uses, used and using become one."""
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word[: -len(ending)]
            break
    word = word.removesuffix("e")
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _next(tokens: list[tuple[str, str]], marker: str) -> Iterator[str]:
    """The content word after each occurrence of a marker."""
    for place, (_, token) in enumerate(tokens):
        if token == marker:
            yield from _first_word(tokens, place + 1)


def _after(tokens: list[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """The content words after the occurrences of each marker."""
    found: dict[str, list[str]] = {marker: [] for marker in MARKERS}
    for place, (_, token) in enumerate(tokens, start=1):
        if token in found:
            found[token] += _first_word(tokens, place)
    return {marker: frozenset(words) for marker, words in found.items()}


def _first_word(tokens: list[tuple[str, str]], place: int) -> list[str]:
    for kind, token in tokens[place : place + REACH]:
        if kind == "word":
            return [token]
        if kind == "sep":
            break
    return []


def _denied(tokens: list[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    clauses = []
    for place, (kind, _) in enumerate(tokens):
        if kind == "not":
            clauses.append(tuple(_clause(tokens, place + 1)))
    return tuple(clauses)


def _clause(tokens: list[tuple[str, str]], place: int) -> Iterator[str]:
    for kind, token in tokens[place : place + REACH]:
        if kind == "sep":
            return
        if kind == "word":
            yield token


def _replaced(tokens: list[tuple[str, str]]) -> frozenset[str]:
    found = set(_next(tokens, "instead"))
    if any(kind == "word" and _REPLACES.match(token) for kind, token in tokens):
        found |= set(_next(tokens, "from"))
    if any(token in {"with", "by"} for _, token in tokens):
        found |= set(_next(tokens, "replac"))
    return frozenset(found)
