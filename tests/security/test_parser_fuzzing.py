"""Parsers accept any input or raise a typed error, in linear time and memory.

Never another exception, in time and memory that grow with the text as it does. `make fuzz` tries
thousands of texts in place of a few.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import unwrap
from itertools import product
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agent.git.diff import parse_diff
from reverie.agent.rules.block import (
    RuleItem,
    hash_text,
    normalize_text,
    parse_block,
    replace_block,
    split_block,
)
from reverie.agent.rules.files import COPILOT_FILE, RULE_FILE_NAMES, parse_sections
from reverie.agent.transcripts import files as transcript_files
from reverie.contracts.base import RequestBody, Timestamp
from reverie.domain.access import scopes
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.entities import file_paths, recognition
from reverie.domain.extraction import learned_facts, user_corrections
from reverie.domain.formats.memory_md import build_segment, parse_memory_file, render_memory_file
from reverie.domain.redaction.redactor import redact
from reverie.domain.retrieval.question_parsing import extract_keywords
from reverie.domain.retrieval.question_parsing import parse_question as read_question
from reverie.domain.staleness.file_changes import parse_merged_branch, parse_reverted_commit
from reverie.domain.text import markdown, memory_fence, normalization
from reverie.domain.text.time_expressions import parse_time_range
from reverie.runtime.http.validation import parse_body, parse_value
from tests.agent.agent_files import WRITERS
from tests.agent.transcript_samples import AIDER, CLAUDE, CODEX, OLD_CODEX, SPECSTORY, lines
from tests.security.fuzz_inputs import LONG, filled, made_of, spliced, tried

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SMALL, LARGE = (16_384, 131_072) if LONG else (1_024, 8_192)
MOST_BYTES = 400
"""Bytes of memory for each of a text: JSON and lists of short lines take most."""


@dataclass(frozen=True)
class Door:
    """What reads texts, the marks it looks for, and good texts of it."""

    name: str
    read: Callable[[str], object]
    marks: tuple[str, ...]
    samples: tuple[str, ...] = ("",)


class _At(RequestBody):
    at: Timestamp


def _transcript(form: transcript_files.TranscriptFormat, suffix: str) -> Callable[[str], object]:
    def parse(text: str) -> object:
        with NamedTemporaryFile(suffix=suffix) as file:
            path = Path(file.name)
            path.write_bytes(text.encode(errors="surrogatepass"))
            transcript_files.detect_format(path)
            given = transcript_files.TranscriptLines(path, lambda _: None, lambda _: None)
            return list(transcript_files.read_turns(given, form, "shop"))

    return parse


def _written(agent: str) -> str:
    """The text of a transcript of an agent."""
    with TemporaryDirectory() as folder:
        return WRITERS[agent](Path(folder)).read_text()


def _question(text: str) -> object:
    reading = read_question(text, NOW)
    return extract_keywords(text, reading), parse_time_range(text, NOW)


def _scope(text: str) -> object:
    canonical = scopes.parse_scope(text)
    assert scopes.parse_scope(canonical) == canonical
    names = scopes.parse_display_names(text)
    assert scopes.parse_scope(scopes.format_scope(canonical, names)) == canonical
    return scopes.parse_pattern(f"{text}/*")


def _redaction(text: str) -> object:
    """What is redacted once has nothing more to redact."""
    found = redact(text)
    assert redact(found.text).text == found.text
    return found


def _diff(text: str) -> object:
    """Of what git prints, the part that holds the text of others."""
    return parse_diff(f"{CHANGED}{text}".encode(errors="surrogatepass"))


def _rules(name: str) -> Callable[[str], object]:
    return lambda text: parse_sections(name, text)


def _marks(told: str) -> tuple[str, ...]:
    return tuple(told.split("¦"))


MARKDOWN = _marks(
    "# a¦## b\n¦###### c #¦```\n¦~~~~¦`x`¦- ¦  ¦---\n¦globs: *¦@a/b¦@~/c ¦"
    "<!-- reverie:begin -->\n¦<!-- reverie:end¦ -->¦\n"
)
ID = "01936f1e-5b7a-7c11-9d2e-3a4b5c6d7e8f"
BLOCK = _marks(
    f"<!-- reverie:begin¦ -->\n¦<!-- reverie:item {ID} 0123456789ab -->\n¦- a\n¦  b\n¦"
    f"<!-- reverie:end¦ -{ID}¦## What is remembered\n¦\n¦\r"
)
SEGMENTS = _marks(
    "<!-- segment: a -->\n¦<!-- scope: global -->\n¦<!-- summary -->\n¦"
    '<!-- id: 1a, kind: bug, key: x, keywords: [a, "b"], priority: 0.5 -->\n¦'
    '<!-- ¦<!-- \\segment: a -->¦-->¦key: ¦"¦[¦]¦,¦\\¦priority: nan'
)
MEMORY_MD = f"# p\n\n{SEGMENTS[1]}\n{SEGMENTS[2]}Now.\n\n{SEGMENTS[0]}{SEGMENTS[3]}Text.\n"
CHANGED = ":100644 100644 1234567 89abcde M\0a.py\0:100644 000000 1234567 000000 R090\0a\0b\0\0"
PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +3 @@ def f():\n-a\n+b\n"
DIFF = _marks(
    ":100644 100644 1234567 89abcde M\x00¦a.py\x00¦\x00\x00¦R100¦"
    "diff --git a/a b/b\n¦@@ -1,2 +3,4 @@ f\n¦@@ -0,0 +1 @@¦"
    "Binary files a and b differ\n¦+¦-¦:"
)
JSONL = _marks(
    '{"type": "user"¦"message": {¦"content": [¦"payload": {¦}¦]¦{¦[¦"a": ¦, ¦\n¦'
    '\\ud800¦\\u0000¦1e999¦null¦"'
)
QUESTION = _marks(
    "why ¦when did ¦last week¦3 weeks ago¦2026-02-31¦in march 1¦99999 ¦years ago¦"
    '三天前¦上周¦a.b.c¦a::b¦x->¦`¦"a"¦src/a.py¦?'
)
SCOPE = _marks(
    "project/¦feature/¦topic/¦agent/¦/sub/¦global¦vp/¦user/¦*¦/¦..¦.¦a¦-¦_¦feat/login.v2"
)
SUBJECT = _marks(
    "Merge branch 'a'¦Merge pull request #1 from a/b¦ into ¦Revert \"¦"
    "This reverts commit ¦aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa¦"
    "See merge request a!1¦'¦\"¦\n"
)
TIME = _marks("2026-01-31¦T¦10:00:00¦Z¦+14:00¦-23:59¦9999-12-31¦0001-01-01¦.¦24:00:00¦-¦:¦60¦ ")
PROSE = _marks(
    "not ¦instead of ¦because ¦from a to b¦no, ¦i.e. ¦(¦)¦*¦_¦[¦](¦https://a.b/¦"
    "a->¦::¦import ¦pip install ¦:8080¦Error: ¦. "
)
CREDENTIALS = _marks(
    "password ¦password: ¦pw ¦ as the password¦pass? ¦log in as a with ¦a / ¦api key ¦"
    "aB3dE5gH7jK9mN1p¦hunter27¦ -u a -p ¦--db-password ¦?token=¦密码¦| password |\n|--|\n| ¦"
    "Cookie: sid=¦://a:¦@¦curl ¦"
    "<password>¦SECRET_KEY=¦authorization: ¦echo a | su ¦wifi ¦[REDACTED_PASSWORD] "
)
FENCE = _marks('<recalled¦>¦</recalled¦> ¦<¦/¦memory¦ source=¦"¦\n')
CHATS = _marks(
    "# aider chat started at 2026-03-02 10:00:00\n¦#### x\n¦> y\n¦```\n¦"
    "_**User**_\n<tool-use><details>\n¦"
    "_**User**_¦_**User (¦<tool-use><details>\n¦</details></tool-use>\n¦"
    "<think><details>"
)

TASKS = _marks(
    '[{"role": "user", "content": "¦"}]¦<task>¦</task>¦<environment_details>¦<hook_context a=¦'
    "[execute_command for '¦'] Result:\n¦<attempt_completion><result>¦<execute_command>¦"
    "# Current Working Directory (¦) Files"
)

DOORS = (
    Door("memory.md", parse_memory_file, SEGMENTS, (MEMORY_MD,)),
    *(
        Door(name, _rules(name), MARKDOWN)
        for name in (*RULE_FILE_NAMES, COPILOT_FILE, ".cursor/rules/a.mdc")
    ),
    Door("block", parse_block, BLOCK),
    Door("claude-code", _transcript("claude-code", ".jsonl"), JSONL, (lines(CLAUDE),)),
    Door("codex", _transcript("codex", ".jsonl"), JSONL, (lines(CODEX), lines(OLD_CODEX))),
    Door("aider", _transcript("aider", ".md"), CHATS, (AIDER,)),
    Door("specstory", _transcript("specstory", ".md"), CHATS, (SPECSTORY,)),
    Door("task", _transcript("task", ".json"), TASKS, (_written("roo"), _written("cline"))),
    Door("cursor", _transcript("cursor", ".jsonl"), TASKS, (_written("cursor"),)),
    Door("windsurf", _transcript("windsurf", ".jsonl"), JSONL, (_written("windsurf"),)),
    Door("gemini-cli", _transcript("gemini-cli", ".jsonl"), JSONL, (_written("gemini-cli"),)),
    Door("gemini-cli, old", _transcript("gemini-cli", ".json"), JSONL, (_written("gemini-cli"),)),
    Door("goose", _transcript("goose", ".jsonl"), JSONL, (_written("old goose"),)),
    Door("diff", _diff, DIFF, (PATCH,)),
    Door("question", _question, QUESTION),
    Door("scope", _scope, SCOPE),
    Door("agent", scopes.normalize_agent_name, SCOPE),
    Door("subject", lambda text: (parse_merged_branch(text), parse_reverted_commit(text)), SUBJECT),
    Door("time", lambda text: parse_value(_At, {"at": text}), TIME, ("2026-01-31T10:00:00Z",)),
    Door("body", lambda text: parse_body(_At, text.encode(errors="surrogatepass")), JSONL),
    Door("entities", recognition.extract_entities, PROSE),
    Door("paths", file_paths.extract_paths, PROSE),
    Door("sentences", markdown.split_sentences, PROSE),
    # As it is made: what is kept of the texts asked last would cost nothing.
    Door("statement", unwrap(normalization.normalize_statement), PROSE),
    Door("redaction", _redaction, CREDENTIALS),
    Door("corrections", user_corrections.find_corrections, PROSE),
    Door("domain", learned_facts.extract_root_domain, PROSE),
    Door(
        "fence",
        lambda text: (memory_fence.strip_fenced(text), memory_fence.escape_fence_tags(text)),
        FENCE,
    ),
)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_any_text_is_parsed_or_refused_by_a_typed_error(door: Door) -> None:
    @tried
    @given(made_of(door.marks) | spliced(door.samples))
    def holds(text: str) -> None:
        _read(door, text)

    holds()


def _patterns(door: Door) -> Iterator[str]:
    yield from door.marks
    if LONG:
        yield from (one + two for one, two in product((*door.marks, " ", "a"), repeat=2))
        yield from (f"{one}\n{two}" for one, two in product(door.marks, repeat=2))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_time_and_memory_grow_linearly_with_the_text(door: Door) -> None:
    slow = {}
    for pattern in _patterns(door):
        short = _processor_seconds(door, filled(pattern, SMALL))
        long = _processor_seconds(door, filled(pattern, LARGE))
        # Four times the proportion: a square would be eight times it.
        if long > LARGE / SMALL * 4 * short + 0.03:
            slow[pattern] = (short, long)
    assert not slow
    tracemalloc.start()
    try:
        for mark in door.marks if LONG else door.marks[:3]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            _read(door, filled(mark, SMALL))
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES * SMALL, mark
    finally:
        tracemalloc.stop()


def _processor_seconds(door: Door, text: str) -> float:
    """The least of two readings; one where it is nothing."""
    taken = []
    for _ in range(2):
        began = time.process_time()
        _read(door, text)
        taken.append(time.process_time() - began)
        if taken[0] < 0.01:
            break
    return min(taken)


def _read(door: Door, text: str) -> None:
    try:
        door.read(text)
    except ReverieError:
        return


said = made_of((*SEGMENTS, "Text", " b")).map(
    lambda text: text.encode(errors="replace").decode().replace("\0", "")
)
word = said.map(lambda text: text.strip()[:40]).filter(lambda text: bool(text.strip()))


@st.composite
def memories(draw: Any) -> Memory:
    """A memory as it may stand in a scope."""
    return Memory(
        id=UUID(int=draw(st.integers(1, 2**128 - 1))),
        scope="project/shop",
        kind=draw(st.sampled_from(list(Kind))),
        content=draw(word),
        key=draw(st.none() | word),
        tags=tuple(draw(st.lists(word, max_size=3))),
        confidence=draw(st.sampled_from([0.0, 0.25, 1.0])),
        pinned=draw(st.booleans()),
        created_at=NOW,
        tier=Tier.WARM, status=MemoryStatus.ACTIVE, version=1, content_hash="", updated_at=NOW,
    )  # fmt: skip


@tried
@given(st.lists(memories(), max_size=3), said)
def test_a_memory_file_parses_back_to_what_was_written(many: list[Memory], summary: str) -> None:
    back = parse_memory_file(render_memory_file("project/shop", summary, many))
    assert back.scope == "project/shop"
    assert (back.summary or "") == summary.replace("\r\n", "\n").strip()
    shown = [build_segment(one) for one in many]
    for (_, found), wanted in zip(back.segments, shown, strict=True):
        assert found.text == wanted.text.replace("\r\n", "\n")
        assert (found.id, found.kind, found.key) == (wanted.id, wanted.kind, wanted.key)
        assert (found.priority, bool(found.pinned)) == (wanted.priority, wanted.pinned)
        assert found.keywords == wanted.keywords


@tried
@given(made_of(MARKDOWN[:-3]), st.lists(word.map(normalize_text).filter(bool), max_size=3))
def test_a_block_parses_back_and_leaves_the_surrounding_file_unchanged(
    text: str, told: list[str]
) -> None:
    items = [RuleItem(one, str(UUID(int=n)), hash_text(one)) for n, one in enumerate(told)]
    try:
        before, _, after = split_block("CLAUDE.md", text)
    except ReverieError:
        return
    made = replace_block("CLAUDE.md", text, items, frozenset())
    first, block, behind = split_block("CLAUDE.md", made)
    assert first.startswith(before)
    assert behind == after
    assert replace_block("CLAUDE.md", made, items, frozenset()) == made
    if items:
        assert block
        assert [(one.id, one.is_edited) for one in parse_block(block).items] == [
            (one.id, False) for one in items
        ]
