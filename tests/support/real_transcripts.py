"""Real coding sessions as turns to send, and labelled questions about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.transcripts.specstory import parse_markdown
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.domain.text.truncation import truncate_middle
from tests.support.real_history import DATA, PROJECT
from tests.support.stack import Stack, eventually

TRANSCRIPTS = DATA / "transcripts"
QUESTIONS = Path(__file__).with_name("transcript_questions.json")
TURN_BYTES = 100_000
BATCH = 100

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.exists(), reason=f"the real transcripts are not here: expected {TRANSCRIPTS}"
)


@dataclass(frozen=True)
class Question:
    """What a developer would ask, and the turns (by external id) that answer it."""

    id: str
    text: str
    transcript: str
    turns: frozenset[str]


def questions() -> list[Question]:
    """The labelled questions."""
    return [
        Question(one["id"], one["question"], one["transcript"], frozenset(one["turns"]))
        for one in json.loads(QUESTIONS.read_text())
    ]


def read_turns(path: Path) -> list[ParsedTurn]:
    """The turns of a session's file."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        return list(parse_markdown(file))


def transcripts(starts: tuple[str, ...] = ("",)) -> dict[str, list[ParsedTurn]]:
    """The turns of sessions whose files' names start so, by the stem of the file."""
    return {
        path.stem: read_turns(path)
        for path in sorted(TRANSCRIPTS.glob("*.md"))
        if path.name.startswith(starts)
    }


def bodies(transcript: Sequence[ParsedTurn]) -> Iterator[list[dict[str, Any]]]:
    """The turns of a session, a batch a request."""
    turns = iter(transcript)
    while batch := list(islice(turns, BATCH)):
        yield [
            {
                "role": turn.role,
                "content": truncate_middle(turn.content, TURN_BYTES),
                "at": turn.at.isoformat() if turn.at else None,
                "tool": turn.tool,
                "external_id": turn.external_id,
            }
            for turn in batch
            if turn.content.strip()
        ]


@dataclass(frozen=True)
class Fed:
    """What was handed over: each file's session, and each stored turn's external id."""

    sessions: dict[str, str]
    turns: dict[str, tuple[str, str]]


async def feed(stack: Stack, given: Mapping[str, Sequence[ParsedTurn]]) -> Fed:
    """Hands the transcripts over and waits until they are digested and enriched."""
    sessions = {}
    for stem, transcript in given.items():
        start = {
            "agent": "claude-code",
            "project": PROJECT,
            "branch": "main",
            "external_id": stem,
        }
        session = (await stack.post("/v1/sessions/start", start))["session"]
        for turns in bodies(transcript):
            await stack.post("/v1/turns", {"session": session, "turns": turns})
        await stack.post(f"/v1/sessions/{session}/end", {})
        sessions[stem] = session
    await eventually(lambda: digested(stack, set(sessions.values())), seconds=90, pause=0.2)
    known = {
        turn["id"]: (stem, turn["external_id"])
        for stem, session in sessions.items()
        async for turn in listed(stack, f"/v1/sessions/{session}/turns?limit=200")
    }
    return Fed(sessions, known)


async def digested(stack: Stack, sessions: set[str]) -> bool:
    """Whether every session is in a dream that is done, and none is running."""
    runs = [run async for run in listed(stack, "/v1/dreams?limit=200")]
    done = {session for run in runs if run["status"] == "done" for session in run["sessions"]}
    return sessions <= done and all(run["status"] != "running" for run in runs)


async def listed(stack: Stack, path: str) -> Any:
    """Every item of a list, page by page."""
    cursor = ""
    while True:
        page = await stack.get(path + (f"&cursor={cursor}" if cursor else ""))
        for item in page["items"]:
            yield item
        if not (cursor := page["next"]):
            return


def answers(question: Question, hit: dict[str, Any], fed: Fed) -> bool:
    """Whether a hit is, or was made of, a turn that answers the question."""
    cited = (fed.turns.get(turn) for turn in hit["provenance"]["turns"])
    return any(
        one is not None and one[0] == question.transcript and one[1].split(".")[0] in question.turns
        for one in cited
    )
