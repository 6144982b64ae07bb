"""Counting tokens for budgets: by the embedding model's tokenizer, or by an estimate."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from reverie.domain.keeping import Keeping

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN = ("[UNK]", "<unk>")
"""How vocabularies write a token that they lack: WordPiece, SentencePiece."""
_LONG_WORD = 100
_KEPT_WORDS = 4_096
_BETWEEN = re.compile(r"[^ \t\r\n]+")
_KEPT_CHARS = 131_072
"""Characters of texts whose counts are kept: the same memories are answered again and again."""
_LONG_WORD_CHARS_PER_TOKEN = 3


class TokenCounter(Protocol):
    """Says how many tokens a text takes, and cuts one to a number of them."""

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens not counted."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """The longest start of the text that takes at most `limit` tokens."""
        ...

    def known(self, text: str) -> float:
        """The share of its tokens, 0..1, that the model has a word for; 1 where none can say."""
        ...


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model's folder, without truncation or padding."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class _Word(NamedTuple):
    """What a text between two spaces takes: `tokens` for a budget, of `pieces` some `unknown`."""

    tokens: int
    pieces: int
    unknown: int


class ModelTokenCounter:
    """Counts with a model's own tokenizer.

    A word too long for the vocabulary (over 100 characters: base64, a minified line) is one
    unknown token to the tokenizer, but many to whoever reads it: a token per 3 characters.
    A tokenizer of the BERT family takes what stands between spaces by itself, so each such word
    is read once, and known from then on.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        marks = map(tokenizer.token_to_id, UNKNOWN)
        self._unknown = [mark for mark in marks if mark is not None]
        self._by_word = type(tokenizer.pre_tokenizer).__name__ == "BertPreTokenizer"
        self._words: dict[str, _Word] = {}
        self._counted = Keeping(self._count, _KEPT_CHARS)

    @classmethod
    def load(cls, folder: Path) -> ModelTokenCounter:
        """The counter of the model whose files `resolve` placed in that folder."""
        return cls(load_tokenizer(folder))

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens not counted."""
        return self._counted(text)

    def _count(self, text: str) -> int:
        return sum([word.tokens for word in self._read(text)])

    def cut(self, text: str, limit: int) -> str:
        """The longest start of the text that takes at most `limit` tokens."""
        left = limit
        for start, end in self._spans(text):
            left -= _weight(end - start)
            if left < 0:
                return text[:start].rstrip()
        return text

    def known(self, text: str) -> float:
        """The share of its tokens, 0..1, that the vocabulary has; 1 of a text without any."""
        words = self._read(text)
        pieces = sum([word.pieces for word in words])
        return 1 - sum([word.unknown for word in words]) / pieces if pieces else 1.0

    def _read(self, text: str) -> list[_Word]:
        """The words of a text, or all of it as one where they cannot be told apart, or are long."""
        words = _BETWEEN.findall(text) if self._by_word else [text]
        if not self._by_word or max(map(len, words), default=0) > _LONG_WORD:
            return self._measured([text])
        known = self._words
        fresh = [word for word in dict.fromkeys(words) if word not in known]
        if len(known) + len(fresh) > _KEPT_WORDS:
            # Another one: who is counting meanwhile goes on with theirs.
            known, fresh = {}, list(dict.fromkeys(words))
            self._words = known
        if fresh:
            known.update(zip(fresh, self._measured(fresh), strict=True))
        return [known[word] for word in words]

    def _measured(self, texts: list[str]) -> list[_Word]:
        read = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [
            _Word(
                sum(_weight(end - start) for start, end in one.offsets),
                len(one.ids),
                sum(map(one.ids.count, self._unknown)),
            )
            for one in read
        ]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = encoding.offsets
        return spans


class EstimatingTokenCounter:
    """Counts without a model, on the high side, so that a budget is kept, not filled.

    A run of letters costs a token per 4 characters begun; any other character, digits and letters
    beyond ASCII included, one each; white space is free. On transcripts of coding sessions that is
    about 1.1 times what a WordPiece tokenizer counts, and rarely under 0.95 times.
    """

    def count(self, text: str) -> int:
        """Estimated tokens of the text."""
        return sum(1 for _ in _pieces(text))

    def cut(self, text: str, limit: int) -> str:
        """The longest start of the text that is estimated at `limit` tokens or fewer."""
        beyond = next(islice(_pieces(text), max(limit, 0), None), None)
        return text if beyond is None else text[: beyond.start()].rstrip()

    def known(self, text: str) -> float:
        """1: nothing is known of any vocabulary."""
        return 1.0


_PIECE = re.compile(r"[A-Za-z]{1,4}|\S")


def _pieces(text: str) -> Iterator[re.Match[str]]:
    return _PIECE.finditer(text)


def _weight(chars: int) -> int:
    return 1 if chars <= _LONG_WORD else math.ceil(chars / _LONG_WORD_CHARS_PER_TOKEN)
