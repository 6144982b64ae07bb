"""Normalization of short statements: content words, negated clauses and replaced words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import islice
from threading import Lock
from typing import TypeVar

from cachetools import LRUCache, cached

from reverie.domain.text.characters import word_set

NUMBER = re.compile(r"v?\d+(?:\.\d+)*%?")


_STOP_WORDS = word_set(
    """a an the of in on at to for from by is are was were be been being it its as and or that
    this these those with we our us you your i my all must should shall will would can could may
    has have had do does did so then there their them they against because since into over than
    before after when while if within per via also always which who instead please 的 了 都 请 也"""
)
DIRECTION_MARKERS = word_set("over than before after from to into by instead for")
_NEGATION = "not"
_NAMED = r"[^\s,;:，。；：]{1,60}"
_CJK_NAMED = r"[^\s,;:，。；：]{1,60}?"
# Forms that state a replacement, as "instead of" what was replaced, which each names `old`.
_REPLACED = (
    rf"(?P<old>{_NAMED}) (?:is|are|was|were|has been|have been|got) (?:now |since )?"
    r"(?:replaced|superseded) (?:by|with)\b",
    r"\b(?:dropp?|ditch|swapp?|trad|abandon|retir|remov|replac)(?:e|es|s|ed|ing)? (?:out )?"
    rf"(?:the )?(?P<old>{_NAMED}) in favou?r of\b",
    # Of what is dropped "for" something, only a name is replaced: support for a platform is not.
    r"\b(?:dropp?|ditch|swapp?|trad|abandon)(?:e|s|ed|ing)? (?:out )?"
    r"(?P<old>(?-i:[A-Z])[^\s,;:]{0,59}) for (?=(?-i:[A-Z]))",
    rf"(?:从|由)\s*(?P<old>{_CJK_NAMED})\s*(?:迁移|切换|替换|换|改|转)(?:到|至|成|为|用)",
    rf"(?:把|将)\s*(?P<old>{_CJK_NAMED})\s*(?:迁移到|切换到|替换成|替换为|换成|换为|改成|改为)",
    r"(?P<old>[A-Za-z][\w.+-]{0,40})\s?已?被(?=[^,;，。；]{1,30}(?:取代|代替|替代|替换))",
)
_REPLACING = (
    r"\b(?:replaces|supersedes|takes the place of|took the place of)\b",
    r"(?<!被)(?:取代|代替|替代|弃用)了?",
)
_REWRITES = tuple(
    (re.compile(pattern, re.I), into)
    for pattern, into in (
        (r"不再(?:使用|用)\s*|\bno longer us(?:e|es|ing)\b", " not use instead of "),
        *((pattern, r" instead of \g<old> , ") for pattern in _REPLACED),
        *((pattern, " instead of ") for pattern in _REPLACING),
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
_IDENTIFIER_SHAPE = re.compile(r"\d|[._/\\:@#+\-]|[a-z][A-Z]|\(\)")
_CHANGE_VERB = re.compile(r"(?:mov|switch|migrat|chang)")
MAX_CLAUSE_TOKENS = 64
"""Longest clause, in tokens, after a negation or a marker."""


@dataclass(frozen=True)
class NormalizedStatement:
    """A statement as content words, with its negations and replacements.

    `words` are the content words in order. `breaks` are the positions of words that follow a
    separator or a function word. `negated` has, for each negation, the words up to the next
    separator. `replaced` are words that something else replaces. `after_marker` has the content
    words after each directional marker. `label_ends` are the numbers of words before each colon.
    """

    words: tuple[str, ...]
    breaks: frozenset[int]
    negated: tuple[tuple[str, ...], ...]
    replaced: frozenset[str]
    after_marker: dict[str, frozenset[str]]
    label_ends: frozenset[int] = frozenset()

    @cached_property
    def bag(self) -> frozenset[str]:
        """The distinct content words."""
        return frozenset(self.words)


Result = TypeVar("Result")
MAX_CACHED_CHARS = 65_536
"""Total length of the texts whose results one function caches."""


def cache_by_text(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """Keeps the results for the texts used last; callers must not change a result."""
    cache: LRUCache[str, tuple[str, Result]] = LRUCache(
        MAX_CACHED_CHARS, getsizeof=lambda entry: len(entry[0])
    )

    @cached(cache, key=lambda text: text, lock=Lock())
    def entry(text: str) -> tuple[str, Result]:
        return text, function(text)

    @wraps(function)
    def cached_function(text: str) -> Result:
        return entry(text)[1]

    return cached_function


@cache_by_text
def normalize_statement(text: str) -> NormalizedStatement:
    """Parses a statement. The result is cached, because a text is compared with many others."""
    text = unicodedata.normalize("NFKC", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    tokens = list(_tokenize(text))
    words: list[str] = []
    breaks: set[int] = set()
    label_ends: set[int] = set()
    for kind, token in tokens:
        if kind == "word":
            words.append(token)
        else:
            breaks.add(len(words))
            if token in {":", "："}:
                label_ends.add(len(words))
    return NormalizedStatement(
        words=tuple(words),
        breaks=frozenset(breaks),
        negated=tuple(
            tuple(_clause_words(tokens, index))
            for index, (kind, _) in enumerate(tokens, start=1)
            if kind == "not"
        ),
        replaced=_replaced_words(tokens),
        after_marker=_words_after(tokens, DIRECTION_MARKERS),
        label_ends=frozenset(label_ends),
    )


def is_identifier(word: str) -> bool:
    """Whether a word is a path, an identifier or a number rather than a plain word."""
    return bool(_IDENTIFIER_SHAPE.search(word))


def _tokenize(text: str) -> Iterator[tuple[str, str]]:
    """(kind, token): word, stop, not, sep."""
    previous = ""
    for match in _TOKEN.finditer(text):
        raw = match[0]
        if match["sep"]:
            yield "sep", raw
            continue
        token = _normalize_token(raw, previous)
        previous = token
        if token == _NEGATION:
            yield "not", token
        else:
            yield ("stop" if token in _STOP_WORDS else "word"), token


def _normalize_token(raw: str, previous: str) -> str:
    lower = raw.lower().removesuffix("()")
    lower = _NUMBERS.get(lower, lower)
    if lower in _UNITS and NUMBER.fullmatch(previous):
        return _UNITS[lower]
    if lower in _STOP_WORDS or lower == _NEGATION or _IDENTIFIER_SHAPE.search(raw):
        return lower
    return stem(lower)


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


def _words_after(
    tokens: list[tuple[str, str]], markers: frozenset[str]
) -> dict[str, frozenset[str]]:
    """The content word after each occurrence of a marker, by marker."""
    found: dict[str, list[str]] = {marker: [] for marker in markers}
    for index, (_, token) in enumerate(tokens, start=1):
        if token in found:
            found[token] += islice(_clause_words(tokens, index), 1)
    return {marker: frozenset(words) for marker, words in found.items()}


def _clause_words(tokens: list[tuple[str, str]], index: int) -> Iterator[str]:
    """The content words from a place up to the next separator."""
    for kind, token in tokens[index : index + MAX_CLAUSE_TOKENS]:
        if kind == "sep":
            return
        if kind == "word":
            yield token


def _replaced_words(tokens: list[tuple[str, str]]) -> frozenset[str]:
    markers = {"instead"}
    if any(kind == "word" and _CHANGE_VERB.match(token) for kind, token in tokens):
        markers.add("from")
    if any(token in {"with", "by"} for _, token in tokens):
        markers.add("replac")
    return frozenset().union(*_words_after(tokens, frozenset(markers)).values())
