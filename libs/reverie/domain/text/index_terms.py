"""Terms for the full-text index and its queries: split identifiers, CJK bigrams, folded Chinese.

The output contains only plain words between spaces, so that Postgres' default parser passes them
on unchanged. The index and the query use the same function.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from typing import Any

from reverie.domain.text.characters import CJK, CJK_CHAR
from reverie.domain.text.memory_fence import OMITTED_PLACEHOLDER

# The tables in `opencc/` come from OpenCC (https://github.com/BYVoid/OpenCC, Apache License 2.0):
# `TSCharacters` and `TWVariantsRev` for characters, `TWPhrasesRev` for words. OpenCC itself is not
# used: it would bring a compiled library for these two tables.
_TABLES = files(__package__) / "opencc"
_CHARACTER_PAIRS = (_TABLES / "simplified_characters.txt").read_text("utf-8").split()
_CHARACTER_TABLE = str.maketrans({pair[0]: pair[1] for pair in _CHARACTER_PAIRS})
_MAINLAND_WORDS: dict[str, str] = dict(
    line.split() for line in (_TABLES / "mainland_words.txt").read_text("utf-8").splitlines()
)
_TAIWAN_WORD = re.compile("|".join(sorted(map(re.escape, _MAINLAND_WORDS), key=len, reverse=True)))
_KANA = re.compile("[\u3040-\u30ff]")


def fold_to_simplified(text: str) -> str:
    """Folds `text` to simplified characters; if it used others, to mainland words too.

    A word may have another meaning on the mainland. So simplified text keeps its words, and
    Japanese keeps them too.
    """
    folded = text.translate(_CHARACTER_TABLE)
    if folded == text or _KANA.search(text):
        return folded
    return _TAIWAN_WORD.sub(lambda match: _MAINLAND_WORDS[match[0]], folded)


# Postgres ignores lexemes over 2,046 bytes with a notice; what is longer than this is a blob.
MAX_WORD_BYTES = 256
# to_tsvector refuses more than 1 MiB of lexemes and positions.
MAX_TEXT_BYTES = 384 * 1024
MAX_COMPOUND_CHARS = 80
MAX_JOINED_NAMES = 24
MAX_WORDS_PER_NAME = 4

_COMBINING_MARKS = "\u0300-\u036f\u064b-\u065f\u0900-\u0dff\u0e00-\u0eff"
_WORD = rf"(?:[^\W_]|[{_COMBINING_MARKS}])+"
_COMPOUND = re.compile(rf"{_WORD}(?:[_\-./\\:@#+~]+{_WORD})*")
_PART = re.compile(_WORD)
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+")
_CJK_RUN = re.compile(rf"[{CJK}]+|[^{CJK}]+")
_HAN_CHAR = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
# Characters that carry grammar, as English stop words do: 什么, 怎么, 可以, 我们, ...
_FUNCTION_CHARS = frozenset(
    "的了吗呢吧啊么什怎哪谁是在和与或也都就还会能要可以有没不我你他她它们这那个很"
    "被把给让从到对为所之其而且但及着过得地上下里时"
)


def content_words(text: str) -> frozenset[str]:
    """The words of a text as they are indexed, without the shortest."""
    return frozenset(
        word for word in index_text(text).split() if len(word) > 2 or not word.isascii()
    )


def index_text(text: str) -> str:
    """The words of `text`, space-separated, for `to_tsvector('english', ...)`.

    `getUserById` gives get user by id getuserbyid; `src/middleware/auth.ts` gives its four
    parts, authts, and srcmiddlewareauthts; 连接池 gives 连接 接池 连 接 池, as 連接池 does; 1.25.6
    also gives 1x25x6.
    At most `MAX_TEXT_BYTES` of UTF-8; words over `MAX_WORD_BYTES` are dropped.
    """
    normalized = unicodedata.normalize("NFKC", text)
    if CJK_CHAR.search(normalized):
        normalized = fold_to_simplified(normalized)
    remaining = MAX_TEXT_BYTES
    words: list[str] = []
    for word in _split_words(normalized):
        size = len(word.encode())
        if size <= MAX_WORD_BYTES:
            remaining -= size + 1
            if remaining < 0:
                break
            words.append(word)
    return " ".join(words)


def query_text(query: str) -> str:
    """The words of a question, as `index_text` gives them, each once."""
    return " ".join(dict.fromkeys(index_text(query).split()))


def expand_query_text(query: str) -> str:
    """The words of a question, and neighbours of them as the one name they may be in code.

    `get user by id` also asks for getuserbyid: two to `MAX_WORDS_PER_NAME` plain ASCII words in a
    row, at most `MAX_JOINED_NAMES` such names from the beginning on. One that was never indexed
    finds nothing.
    """
    names = islice(_iter_joined_names(query), MAX_JOINED_NAMES)
    return " ".join(dict.fromkeys([*query_text(query).split(), *names]))


def find_joined_names(query: str) -> list[str]:
    """The names that three or more words in a row may be, at most `MAX_JOINED_NAMES`."""
    return list(islice(_iter_joined_names(query, min_words=3), MAX_JOINED_NAMES))


def _iter_joined_names(query: str, min_words: int = 2) -> Iterator[str]:
    words = [word.strip(".,;:?!\"'()").lower() for word in query.split()]
    for start in range(len(words)):
        name = ""
        for count, word in enumerate(words[start : start + MAX_WORDS_PER_NAME], start=1):
            if not (word.isascii() and word.isalnum() and len(name + word) <= MAX_COMPOUND_CHARS):
                break
            name += word
            if count >= min_words:
                yield name


def _split_words(text: str) -> Iterator[str]:
    for match in _COMPOUND.finditer(text):
        compound = match[0]
        if compound.isascii() and compound.isalnum():
            # Most words of most texts.
            yield from (compound,) if compound.islower() else _split_identifier(compound)
            continue
        parts: list[str] = _PART.findall(compound)
        for run in (run for part in parts for run in _CJK_RUN.findall(part)):
            yield from _cjk_terms(run) if CJK_CHAR.match(run) else _split_identifier(run)
        if len(parts) > 1 and not CJK_CHAR.search(compound):
            yield from _compound_forms(compound, parts)


def _cjk_terms(run: str) -> Iterator[str]:
    """Neighbours in pairs, and Chinese characters singly, but for those of grammar alone."""
    if len(run) == 1:
        yield run
        return
    bigrams = (run[i : i + 2] for i in range(len(run) - 1))
    yield from (bigram for bigram in bigrams if not _FUNCTION_CHARS.issuperset(bigram))
    yield from (char for char in run if char not in _FUNCTION_CHARS and _HAN_CHAR.match(char))


def _split_identifier(word: str) -> Iterator[str]:
    humps = _CAMEL_BOUNDARY.split(word)
    if len(humps) > 1 and len(word) <= MAX_COMPOUND_CHARS:
        yield from (hump.lower() for hump in humps if len(hump) > 1)
    yield word.lower()


def _compound_forms(compound: str, parts: list[str]) -> Iterator[str]:
    """The compound as one word, and a path's last component as one word."""
    if len(compound) > MAX_COMPOUND_CHARS:
        return
    if _VERSION.fullmatch(compound):
        yield "x".join(parts).lower()
        return
    yield "".join(parts).lower()
    name = _PART.findall(re.split(r"[/\\]", compound)[-1])
    if 1 < len(name) < len(parts):
        yield "".join(name).lower()


GENERATED_KEY_PREFIXES = ("commit:", "file:", "session:", "entity:", "topic:")
"""Beginnings of the keys that the system itself gives: nobody searches for them."""


def get_request(metadata: Mapping[str, Any]) -> str | None:
    """What was asked, as a decision record keeps it; None of other memories."""
    record = metadata.get("record")
    asked = record.get("problem") if isinstance(record, Mapping) else None
    return asked if isinstance(asked, str) and asked else None


def searched_text(content: str, metadata: Mapping[str, Any]) -> str:
    """The text by which a memory is found: its content, and the request that it does not show.

    A record is asked for in the words of the request, and told without them.
    """
    asked = get_request(metadata)
    return content if asked is None or asked in content else f"{asked}\n{content}"


def memory_index_text(
    key: str | None, content: str, tags: Sequence[str], metadata: Mapping[str, Any]
) -> str:
    """The words of a memory: of its key, of the text by which it is found, and its tags."""
    searchable_key = None if key is None or key.lower().startswith(GENERATED_KEY_PREFIXES) else key
    text = searched_text(content, metadata)
    return index_text(" ".join(filter(None, (searchable_key, text, *tags))))


def turn_index_text(role: str, content: str) -> str:
    """Returns the words of a turn: none of a tool's output, and none of recalled memory."""
    return "" if role == "tool" or content == OMITTED_PLACEHOLDER else index_text(content)
