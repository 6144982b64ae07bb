"""Shortens a record to the sentences that answer a question best, to fit a token budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences

MAX_SENTENCES = 40
OMITTED = "…"
_LABEL = re.compile(r"(?:Decided|Found|Answer|Done|Refused): ")


@dataclass(frozen=True)
class _Sentence:
    """A sentence of a record: its line, and how many words of the question it has."""

    line: int
    text: str
    matches: int


def excerpt_record(content: str, question: str, fits: Callable[[str], bool]) -> str | None:
    """The heading of a record, if any, and the sentences that have most words of a question.

    They are whole and stay in order under their labels, and an ellipsis marks what is left out.
    None where not even one sentence fits.
    """
    heading, *lines = content.splitlines()
    if not lines or _LABEL.match(heading):
        heading, lines = "", [heading, *lines]
    labels = [match[0] if (match := _LABEL.match(line)) else "" for line in lines]
    asked = content_words(question)
    sentences = [
        _Sentence(number, text, len(asked & content_words(text)))
        for number, line in enumerate(lines)
        for text in split_sentences(line[len(labels[number]) :])
    ][:MAX_SENTENCES]
    chosen: list[int] = []
    # Of equals, the first is the weightiest: decisions come before findings.
    for index in sorted(range(len(sentences)), key=lambda n: -sentences[n].matches):
        told = sorted([*chosen, index])
        if fits(_render(heading, labels, sentences, told)):
            chosen = told
    return _render(heading, labels, sentences, chosen) if chosen else None


def _render(
    heading: str, labels: Sequence[str], sentences: Sequence[_Sentence], chosen: Sequence[int]
) -> str:
    told = [heading] if heading else []
    for number, label in enumerate(labels):
        of_line = [n for n, sentence in enumerate(sentences) if sentence.line == number]
        if not any(n in chosen for n in of_line):
            continue
        words: list[str] = []
        for n in of_line:
            if n in chosen:
                words.append(sentences[n].text)
            elif words[-1:] != [OMITTED]:
                words.append(OMITTED)
        told.append(label + " ".join(words))
    return "\n".join(told)
