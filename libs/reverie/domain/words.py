"""Text for the word index: identifiers in parts and whole, Chinese, Japanese, Korean in pairs.

Chinese characters count singly too, as those who say the same in other words share characters
more than pairs; traditional Chinese is folded to simplified.

Postgres' default parser has ideas of its own about paths, URLs, e-mail addresses, hyphens and
versions (one `file` token, several overlapping ones, ...). So it is given nothing but plain
words between spaces, each a run of letters and digits: those it passes on as they are, and
`english` stems the ASCII ones. Index and question go through the same function.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from reverie.domain.hanzi import simplified
from reverie.domain.letters import CJK

# Postgres ignores lexemes over 2,046 bytes with a notice; what is longer than this is a blob.
MAX_WORD_BYTES = 256
# to_tsvector refuses more than 1 MiB of lexemes and positions.
MAX_TEXT_BYTES = 384 * 1024
MAX_WHOLE = 80
MAX_JOINED = 24
JOINED_WORDS = 4

_MARKS = "\u0300-\u036f\u064b-\u065f\u0900-\u0dff\u0e00-\u0eff"
_WORD = rf"(?:[^\W_]|[{_MARKS}])+"
_COMPOUND = re.compile(rf"{_WORD}(?:[_\-./\\:@#+~]+{_WORD})*")
_PART = re.compile(_WORD)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+")
_CJK_RUN = re.compile(rf"[{CJK}]+|[^{CJK}]+")
_IS_CJK = re.compile(rf"[{CJK}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
# Characters that carry grammar, as English stop words do: 什么, 怎么, 可以, 我们, ...
_GRAMMAR = frozenset(
    "的了吗呢吧啊么什怎哪谁是在和与或也都就还会能要可以有没不我你他她它们这那个很"
    "被把给让从到对为所之其而且但及着过得地上下里时"
)


def index_text(text: str) -> str:
    """The words of `text`, space-separated, for `to_tsvector('english', ...)`.

    `getUserById` gives get user by id getuserbyid; `src/middleware/auth.ts` gives its four
    parts, authts, and srcmiddlewareauthts; 连接池 gives 连接 接池 连 接 池, as 連接池 does; 1.25.6
    also gives 1x25x6.
    At most `MAX_TEXT_BYTES` of UTF-8; words over `MAX_WORD_BYTES` are dropped.
    """
    plain = unicodedata.normalize("NFKC", text)
    if _IS_CJK.search(plain):
        plain = simplified(plain)
    return " ".join(_bounded(_words(plain)))


def query_text(query: str) -> str:
    """The words of a question, as `index_text` gives them, each once."""
    return " ".join(dict.fromkeys(index_text(query).split()))


def asking_text(query: str) -> str:
    """The words of a question, and neighbours of them as the one name they may be in code.

    `get user by id` also asks for getuserbyid: two to `JOINED_WORDS` plain ASCII words in a row,
    at most `MAX_JOINED` such names from the beginning on. One that was never indexed finds nothing.
    """
    return " ".join(
        dict.fromkeys([*query_text(query).split(), *islice(_joined(query), MAX_JOINED)])
    )


def spelled_names(query: str) -> list[str]:
    """The names that three or more words in a row of a question may be, `MAX_JOINED` at most."""
    return list(islice(_joined(query, least=3), MAX_JOINED))


def _joined(query: str, least: int = 2) -> Iterator[str]:
    words = [word.strip(".,;:?!\"'()").lower() for word in query.split()]
    for start in range(len(words)):
        name = ""
        for count, word in enumerate(words[start : start + JOINED_WORDS], start=1):
            if not (word.isascii() and word.isalnum() and len(name + word) <= MAX_WHOLE):
                break
            name += word
            if count >= least:
                yield name


def _bounded(words: Iterator[str]) -> Iterator[str]:
    room = MAX_TEXT_BYTES
    for word in words:
        size = len(word.encode())
        if size > MAX_WORD_BYTES:
            continue
        room -= size + 1
        if room < 0:
            return
        yield word


def _words(text: str) -> Iterator[str]:
    for match in _COMPOUND.finditer(text):
        compound = match[0]
        if compound.isascii() and compound.isalnum():
            # Most words of most texts.
            yield from (compound,) if compound.islower() else _identifier(compound)
            continue
        parts: list[str] = _PART.findall(compound)
        for part in parts:
            yield from _part_words(part)
        if len(parts) > 1 and not _IS_CJK.search(compound):
            yield from _wholes(compound, parts)


def _part_words(part: str) -> Iterator[str]:
    for run in _CJK_RUN.findall(part):
        if _IS_CJK.match(run):
            yield from _pairs(run)
        else:
            yield from _identifier(run)


def _pairs(run: str) -> Iterator[str]:
    """Neighbours in pairs, and Chinese characters singly, but for those of grammar alone."""
    if len(run) == 1:
        yield run
        return
    pairs = (run[i : i + 2] for i in range(len(run) - 1))
    yield from (pair for pair in pairs if not _GRAMMAR.issuperset(pair))
    yield from (one for one in run if one not in _GRAMMAR and _HAN.match(one))


def _identifier(word: str) -> Iterator[str]:
    humps = _CAMEL.split(word)
    if len(humps) > 1 and len(word) <= MAX_WHOLE:
        yield from (hump.lower() for hump in humps if len(hump) > 1)
    yield word.lower()


def _wholes(compound: str, parts: list[str]) -> Iterator[str]:
    """The compound as one word, and a path's last component as one word."""
    if len(compound) > MAX_WHOLE:
        return
    if _VERSION.fullmatch(compound):
        yield "x".join(parts).lower()
        return
    yield "".join(parts).lower()
    name = _PART.findall(re.split(r"[/\\]", compound)[-1])
    if 1 < len(name) < len(parts):
        yield "".join(name).lower()
