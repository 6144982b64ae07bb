"""Real coding sessions and their project's git history, through the gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import pytest

from reverie.agent.transcripts.turns import ParsedTurn
from reverie.contracts.memories.git import GitChange
from reverie.domain.entities.file_paths import is_same_file
from tests.support.real_history import PROJECT, needs_history, read_history
from tests.support.real_transcripts import (
    Fed,
    answers,
    feed,
    listed,
    needs_transcripts,
    questions,
    transcripts,
)
from tests.support.stack import Stack

LONGEST_MEMORY = 2_000
SESSIONS = (
    *("2026-01-23_14-20", "2026-01-25_14-58", "2026-01-25_21-28"),
    *("2026-01-25_22-47", "2026-01-28_13-10"),
)
"""Starts of the files that are taken: one of them speaks of a file that a commit deletes."""
MOST_CHANGES = 100
"""Of 521: one of them deletes that file."""


@needs_transcripts
@needs_history
@pytest.mark.timeout(300)
async def test_real_sessions_are_digested_found_and_marked_by_their_git_history(
    stack: Stack,
) -> None:
    given = transcripts(SESSIONS)
    fed = await feed(stack, given)
    memories = [one async for one in listed(stack, "/v1/memories?limit=200")]
    runs = [run async for run in listed(stack, "/v1/dreams?limit=200")]
    _each_session_was_digested_once(fed, memories, runs)
    _each_memory_names_its_turns(fed, memories)
    _no_tool_output_is_stored_whole(given, memories)
    await stack.settled(90)
    await _questions_are_answered(stack, fed)
    history = list(islice(read_history(), MOST_CHANGES))
    await _replay(stack, history)
    await _marks_name_the_right_commits(stack, history)


def _each_session_was_digested_once(
    fed: Fed, memories: list[dict[str, Any]], runs: list[dict[str, Any]]
) -> None:
    assert sum(run["turns"] for run in runs) == len(fed.turns)
    assert {session for run in runs for session in run["sessions"]} == set(fed.sessions.values())
    about = [m["provenance"]["session"] for m in memories if m["kind"] == "session"]
    assert len(set(about)) == len(about)
    # A session whose records say all of it has no memory of its own.
    assert {m["provenance"]["session"] for m in memories} == set(fed.sessions.values())


def _each_memory_names_its_turns(fed: Fed, memories: list[dict[str, Any]]) -> None:
    stems = {session: stem for stem, session in fed.sessions.items()}
    for memory in memories:
        cited = memory["provenance"]["turns"]
        assert cited, memory
        told = {fed.turns[turn][0] for turn in cited}
        assert stems[memory["provenance"]["session"]] in told


def _no_tool_output_is_stored_whole(
    given: Mapping[str, Sequence[ParsedTurn]], memories: list[dict[str, Any]]
) -> None:
    outputs = [
        " ".join(turn.content.split())
        for transcript in given.values()
        for turn in transcript
        if turn.role == "tool" and len(turn.content) > 300
    ]
    assert outputs
    for memory in memories:
        text = " ".join(memory["content"].split())
        assert len(text) <= LONGEST_MEMORY
        assert not any(output in text for output in outputs)


async def _questions_are_answered(stack: Stack, fed: Fed) -> None:
    asked = [one for one in questions() if one.transcript in fed.sessions]
    assert len(asked) >= 13
    missed = []
    for question in asked:
        body = {"query": question.text, "include": ["turns"], "limit": 5}
        found = await stack.post("/v1/recall", body)
        assert found["degraded"] == []
        if not any(answers(question, hit, fed) for hit in found["memories"]):
            missed.append(question.id)
    share = 1 - len(missed) / len(asked)
    print(f"any@5 over memories and turns: {share:.3f} (n = {len(asked)}), missed {missed}")
    assert share >= 0.8


async def _replay(stack: Stack, history: list[GitChange]) -> None:
    for change in history:
        await stack.post("/v1/git/changes", change.model_dump(mode="json"))
    await stack.settled(90)


async def _marks_name_the_right_commits(stack: Stack, history: list[GitChange]) -> None:
    """Each mark names a commit that did that to that path, after the memory was learned; each
    deleted file that a memory names is told as gone."""
    done = {(c.after, f.path): (f.status, c) for c in history for f in c.files}
    items = [one async for one in listed(stack, f"/v1/stale?project={PROJECT}&limit=200")]
    assert items
    for item in items:
        learned = item["memory"]["valid_from"] or item["memory"]["created_at"]
        for mark in item["evidence"]:
            status, change = done[(mark["commit"], mark["path"])]
            # Only what a commit said is contradicted by one that edits the same lines.
            is_of_commit = item["memory"]["provenance"]["source"] == "commit"
            assert mark["change"] == status or (is_of_commit and mark["change"] == "contradicted")
            assert mark["subject"] == change.commits[0].subject
            assert _time(learned) < _time(mark["committed_at"])
    evidence = [mark for item in items for mark in item["evidence"]]
    told = {(mark["commit"], mark["path"]) for mark in evidence}
    gone = {(mark["commit"], mark["path"]) for mark in evidence if mark["grade"] == "gone"}
    memories = [one async for one in listed(stack, "/v1/memories?limit=200")]
    details = [await stack.get(f"/v1/memories/{memory['id']}") for memory in memories]
    assert _deletions_that_memories_know(history, details) <= told
    # What a commit said may hold without its files.
    conversed = [one for one in details if one["provenance"]["source"] != "commit"]
    expected = _deletions_that_memories_know(history, conversed)
    assert expected
    assert expected <= gone


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _deletions_that_memories_know(
    history: list[GitChange], memories: list[dict[str, Any]]
) -> set[tuple[str, str]]:
    """Deletions (commit, path) of files that a memory learned before names."""
    deletions = [(c, f) for c in history for f in c.files if f.status == "deleted"]
    return {
        (change.deduplication_key, file.path)
        for change, file in deletions
        for memory in memories
        if _time(memory["valid_from"]) < change.commits[0].committed_at
        for near in memory["neighbours"]
        if near["kind"] == "file" and is_same_file(near["label"], file.path)
    }
