"""Counts tokens and truncates texts, by a model's tokenizer or by an estimate."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN_TOKENS = ("[UNK]", "<unk>")
"""Forms of an unknown token in vocabularies: WordPiece, SentencePiece."""
_LONG_WORD = 100
_MAX_CACHED_WORDS = 4_096
_WORD_PATTERN = re.compile(r"[^ \t\r\n]+")
_LONG_WORD_CHARS_PER_TOKEN = 3


class TokenCounter(Protocol):
    """Counts the tokens of a text, and cuts a text to a number of tokens."""

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens not counted."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """Returns the longest prefix of the text with at most `limit` tokens."""
        ...

    def vocabulary_share(self, text: str) -> float:
        """The share of its tokens, 0..1, that are in the model's vocabulary; 1 if unknown."""
        ...


_TOKENIZERS: dict[bytes, Tokenizer] = {}


def load_tokenizer(folder: Path) -> Tokenizer:
    """Returns the tokenizer of a model's folder, without truncation or padding.

    Models with the same tokenizer share one: it needs 7 MB, that of some models 300.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256(tokenizer.to_str().encode()).digest()
    return _TOKENIZERS.setdefault(digest, tokenizer)


class _TokenTotals(NamedTuple):
    """Tokens of a text or a word: `tokens` for a budget; of its `pieces`, some are `unknown`."""

    tokens: int
    pieces: int
    unknown: int


class ModelTokenCounter:
    """Counts with a model's own tokenizer.

    A word over 100 characters (base64, a minified line) is one unknown token to the tokenizer but
    many to a language model: it counts as one token per 3 characters. A tokenizer of the BERT
    family splits texts at spaces first, so the tokens of single words are cached.
    """

    def __init__(self, folder: Path) -> None:
        """`folder`: the files of the model; its tokenizer is loaded with the first use."""
        self._folder = folder
        self._encode_word = lru_cache(_MAX_CACHED_WORDS)(self._encode)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return load_tokenizer(self._folder)

    @cached_property
    def _unknown_ids(self) -> list[int]:
        ids = map(self.tokenizer.token_to_id, UNKNOWN_TOKENS)
        return [token_id for token_id in ids if token_id is not None]

    @cached_property
    def _splits_at_spaces(self) -> bool:
        return type(self.tokenizer.pre_tokenizer).__name__ == "BertPreTokenizer"

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens not counted."""
        return sum([word.tokens for word in self._encode_words(text)])

    def cut(self, text: str, limit: int) -> str:
        """Returns the longest prefix of the text with at most `limit` tokens."""
        remaining = limit
        for start, end in self.tokenizer.encode(text, add_special_tokens=False).offsets:
            remaining -= _count_word_tokens(end - start)
            if remaining < 0:
                return text[:start].rstrip()
        return text

    def vocabulary_share(self, text: str) -> float:
        """The share of its tokens, 0..1, that the vocabulary has; 1 of a text without any."""
        words = self._encode_words(text)
        pieces = sum([word.pieces for word in words])
        return 1 - sum([word.unknown for word in words]) / pieces if pieces else 1.0

    def _encode_words(self, text: str) -> list[_TokenTotals]:
        """Totals of each word; of the whole text if words depend on each other or are long."""
        if self._splits_at_spaces:
            words = _WORD_PATTERN.findall(text)
            if max(map(len, words), default=0) <= _LONG_WORD:
                return [self._encode_word(word) for word in words]
        return [self._encode(text)]

    def _encode(self, text: str) -> _TokenTotals:
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return _TokenTotals(
            sum(_count_word_tokens(end - start) for start, end in encoding.offsets),
            len(encoding.ids),
            sum(map(encoding.ids.count, self._unknown_ids)),
        )


class EstimatingTokenCounter:
    """Counts without a model, on the high side, so that a budget is kept, not filled.

    A run of letters costs a token per 4 characters begun; any other character, digits and letters
    beyond ASCII included, one each; white space is free. On transcripts of coding sessions that is
    about 1.1 times what a WordPiece tokenizer counts, and rarely under 0.95 times.
    """

    def count(self, text: str) -> int:
        """Estimated tokens of the text."""
        return sum(1 for _ in _find_pieces(text))

    def cut(self, text: str, limit: int) -> str:
        """The longest start of the text that is estimated at `limit` tokens or fewer."""
        next_piece = next(islice(_find_pieces(text), max(limit, 0), None), None)
        return text if next_piece is None else text[: next_piece.start()].rstrip()

    def vocabulary_share(self, text: str) -> float:
        """1: nothing is known of any vocabulary."""
        return 1.0


_PIECE_PATTERN = re.compile(r"[A-Za-z]{1,4}|\S")


def _find_pieces(text: str) -> Iterator[re.Match[str]]:
    return _PIECE_PATTERN.finditer(text)


def _count_word_tokens(chars: int) -> int:
    return 1 if chars <= _LONG_WORD else math.ceil(chars / _LONG_WORD_CHARS_PER_TOKEN)
