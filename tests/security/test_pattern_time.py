"""Every regular expression of the code takes time proportional to the text, on any text.

Expressions are collected from the modules, and texts are made from their syntax trees: a new
expression is covered as soon as it is written. `make fuzz` tries more texts for each.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from reverie.agent.git import hunk_analysis
from reverie.domain.redaction import assignments
from reverie.runtime.http.dispatch import _path_pattern
from tests.security.fuzz_inputs import LONG
from tests.support.patterns import (
    FoundPattern,
    collect_patterns,
    fill,
    hostile_texts,
)

SMALL, LARGE = (8_192, 65_536) if LONG else (1_024, 4_096)
SHORT = (20, 22, 30, 36, 256, 1_024) if LONG else (22, 36, 256)
"""Lengths of texts on which only an exponential expression takes long, the shorter the sooner."""
LEAST_SECONDS = 0.0015 if LONG else 0.0004
"""A square takes longer with `SMALL` characters; what takes less is not measured again."""
GROWTH = 2.4 * LARGE / SMALL
"""The most that time may grow by: 2.4 times as much as where it is linear."""
MOST_TEXTS = 600
"""Of one expression, without `make fuzz`."""
SURE_SECONDS = 0.1
"""A reading of more is not repeated: no pause of the machine is that long."""

LATE_PATTERNS = {
    "reverie.agent.git.anchoring:_lines_with_names": [r"(?<![\w$])name(?![\w$])"],
    "reverie.agent.git.hunk_analysis:_comment_pattern": [
        *{
            hunk_analysis._comment_pattern(extension).pattern
            for extension in hunk_analysis._COMMENT_PATTERNS
        }
    ],
    "reverie.domain.context.open_files:_find_mention": [r"(?<![\w/])\*?\.py\b"],
    "reverie.domain.extraction.content_checks:_compile_lowercase": [],
    "reverie.domain.extraction.record_validation:is_named": [r"(?<!\w)make(?!\w)"],
    "reverie.domain.extraction.wording.lexicon:_compile_cue": [],
    "reverie.domain.extraction.user_corrections:_compile_term": [r"(?<![\w-])npm(?![\w-])"],
    "reverie.domain.redaction.assignments:pattern": [
        # They differ in the words alone.
        keyword.expression
        for keyword in assignments._ASSIGNMENTS[:: 1 if LONG else 8]
    ],
    "reverie.domain.redaction.known_formats:_compile_patterns": [],
    "reverie.domain.retrieval.exact_name_match:contains_name": [
        r"(?<![A-Za-z0-9])name(?![A-Za-z0-9])"
    ],
    "reverie.domain.retrieval.question_parsing:extract_project_mentions": [
        r"(?<![\w-])a[ _-]+b[ _-]+c(?:['’]s)?(?![\w-])"
    ],
    "reverie.domain.text.time_expressions:_compile_rule": [],
    "reverie.runtime.http.dispatch:add_prefix": [_path_pattern("/v1/git") + "(?P<tail>/.*)?"],
    "reverie.runtime.http.dispatch:add_route": [_path_pattern("/v1/memories/{id}/history/{n}")],
    "reverie_services.recall.pipeline.action_warnings:_names_command": [
        r"`make(?![\w.-])[^`]*`",
        r"(?<![\w.-])git\s+push(?![\w-])",
    ],
}
"""Functions that put an expression together, and expressions like those that they make.

None where a module keeps all of them, so that they are collected there.
"""

SLOW = [
    r"^(a+)+$",
    r"\s+$",
    r"^[ \t]*(?:[\w.]+[ \t])?[ \t]*(['\"])x",
    r"([a-z_]+):\s*(\[[^\]]*\]|[^,]*)(?:,\s*|$)",
    r"#+\s+(.+?)\s*#*$",
    r"(?m)^\s*at ",
    r"(?:[A-Z]+_)*ERR(?:_[A-Z]+)+\b",
    r"\w*[A-Z]_[A-Z]\w*$",
]


def least_seconds(found: FoundPattern, text: str, limit: float = 0.0) -> float:
    """The least of three readings of the processor; of fewer if one is below `limit` or sure."""
    least = float("inf")
    subject: Any = text.encode() if isinstance(found.pattern.pattern, bytes) else text
    for _ in range(3):
        began = time.thread_time()
        if found.is_anchored:
            for method in found.methods:
                getattr(found.pattern, method)(subject)
        else:
            for _match in found.pattern.finditer(subject):
                pass
        least = min(least, time.thread_time() - began)
        if least <= limit or least > SURE_SECONDS:
            break
    return least


def find_slow_text(found: FoundPattern) -> tuple[str, str, str] | None:
    """A text on which time grows faster than the text; None if none was found."""
    texts = hostile_texts(found.pattern, thorough=LONG)
    # Thousands are those of a long list of words, which differ by the word alone.
    for text in texts if LONG else texts[:: len(texts) // MOST_TEXTS + 1]:
        # An exponential expression would not come back from a long text.
        if any(least_seconds(found, fill(text, size), 0.03) > 0.03 for size in SHORT):
            return text
        small = least_seconds(found, fill(text, SMALL), LEAST_SECONDS)
        if small <= LEAST_SECONDS:
            continue
        if not LONG and small > 0.03:
            return text
        bound = GROWTH * small
        if least_seconds(found, fill(text, LARGE), bound) > bound:
            return text
    return None


@pytest.mark.timeout(14_400 if LONG else 120)
def test_every_expression_takes_time_proportional_to_the_text() -> None:
    slow = {
        sorted(found.places)[0]: (found.pattern.pattern, text)
        for found in collect_patterns()[0]
        if (text := find_slow_text(found)) is not None
    }
    assert not slow


def test_expressions_made_while_running_take_time_proportional_to_the_text() -> None:
    for place, expressions in LATE_PATTERNS.items():
        for expression in expressions:
            found = FoundPattern(re.compile(expression), {place}, {"search"})
            assert find_slow_text(found) is None, (place, expression)


def test_every_place_that_makes_an_expression_while_running_has_an_example() -> None:
    assert set(collect_patterns()[1]) == set(LATE_PATTERNS)


def test_an_expression_that_takes_longer_is_found() -> None:
    found = [FoundPattern(re.compile(expression), {expression}, {"search"}) for expression in SLOW]
    assert [one.places for one in found if find_slow_text(one) is None] == []
