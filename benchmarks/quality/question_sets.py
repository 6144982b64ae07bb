"""Loads the question sets that recall is judged on.

Public sets are read where they lie and never copied; the others are in `benchmarks/sets`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.real_transcripts import TRANSCRIPTS, questions, transcripts

PASSAGE_CHARS, PASSAGE_TURN_CHARS = 3_000, 8_000
DATA = Path(__file__).parents[3] / "shared" / "data"
OWN = Path(__file__).parent / "sets"
LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}


@dataclass(frozen=True)
class Document:
    """A text to remember; `group` is the conversation it was said in, `at` when.

    `project`: where it belongs, if not to the set's own.
    """

    name: str
    text: str
    group: str | None = None
    at: datetime | None = None
    project: str | None = None


@dataclass(frozen=True)
class LabelledQuestion:
    """A question, the names of the documents that answer it, its type, and its half of the set."""

    text: str
    gold: frozenset[str]
    type: str
    half: str = ""


@dataclass(frozen=True)
class QuestionSet:
    """Documents of one project and the questions asked of them."""

    name: str
    project: str
    documents: Sequence[Document]
    questions: Sequence[LabelledQuestion] = field(default_factory=list)

    @property
    def scopes(self) -> list[str]:
        """Where its documents lie."""
        projects = {one.project or self.project for one in self.documents}
        return [f"project/{project}" for project in sorted(projects)]


def sets_named(words: Collection[str]) -> Iterator[QuestionSet]:
    """Those that are there and whose names hold one of `words`, in any case; without words all."""
    sought = [word.lower() for word in words]
    return (one for one in all_sets() if not sought or any(w in one.name.lower() for w in sought))


def all_sets() -> Iterator[QuestionSet]:
    """Those that are there; a set in several parts comes in several projects of one name."""
    if (DATA / "locomo").exists():
        conversations = read_locomo()
        yield from locomo_turns(conversations)
        yield from locomo_sessions(conversations)
    if (DATA / "devmembench").exists():
        yield devmembench()
    if (DATA / "sde").exists():
        yield sde_talks()
    if TRANSCRIPTS.exists():
        yield long_passages()
    yield from (own(file.stem) for file in sorted(OWN.glob("*.json")))


def read_locomo() -> list[dict[str, Any]]:
    """The conversations of LoCoMo that are here."""
    found: list[dict[str, Any]] = json.loads((DATA / "locomo/locomo-dev.json").read_text())
    return found


def _sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, datetime, list[dict[str, Any]]]]:
    talk = conversation["conversation"]
    number = 1
    while f"session_{number}" in talk:
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        yield f"D{number}", at.replace(tzinfo=UTC), talk[f"session_{number}"]
        number += 1


def _line(turn: dict[str, Any]) -> str:
    return f"{turn['speaker']}: {turn['text']}"


def locomo_turns(conversations: Sequence[dict[str, Any]]) -> Iterator[QuestionSet]:
    """Every turn is a document."""
    for place, conversation in enumerate(conversations):
        documents = [
            Document(turn["dia_id"], _line(turn), session, at)
            for session, at, turns in _sessions(conversation)
            for turn in turns
        ]
        yield _locomo(conversation, f"turns-{place}", "LoCoMo turns", documents, str)


def locomo_sessions(conversations: Sequence[dict[str, Any]]) -> Iterator[QuestionSet]:
    """Every session is a document."""
    for place, conversation in enumerate(conversations):
        documents = [
            Document(session, "\n".join(map(_line, turns)), None, at)
            for session, at, turns in _sessions(conversation)
        ]
        session_of = lambda turn: turn.split(":")[0]  # noqa: E731
        yield _locomo(conversation, f"sessions-{place}", "LoCoMo sessions", documents, session_of)


def _locomo(
    conversation: dict[str, Any],
    project: str,
    name: str,
    documents: Sequence[Document],
    gold_of: Any,
) -> QuestionSet:
    known = {document.name for document in documents}
    questions = []
    for one in conversation["qa"]:
        gold = frozenset(map(gold_of, one.get("evidence", ()))) & known
        if gold and one["category"] in LOCOMO_CATEGORIES:
            questions.append(
                LabelledQuestion(one["question"], gold, LOCOMO_CATEGORIES[one["category"]])
            )
    return QuestionSet(name, project, documents, questions)


def devmembench() -> QuestionSet:
    """Sessions between a developer and an assistant, each in its project; some are of both."""
    folder = DATA / "devmembench"
    documents = [
        Document(
            one["sessionId"],
            "\n".join(f"{said['role']}: {said['content']}" for said in one["messages"]),
            at=datetime.fromisoformat(one["metadata"]["date"]).replace(tzinfo=UTC),
            project=one["metadata"]["project"].replace("both", "") or None,
        )
        for one in json.loads((folder / "sessions.json").read_text())
    ]
    questions = [
        LabelledQuestion(one["question"], frozenset(one["haystackSessionIds"]), one["questionType"])
        for one in json.loads((folder / "questions-dev.json").read_text())
        if one["haystackSessionIds"]
    ]
    return QuestionSet("DevMemBench sessions", "devmembench", documents, questions)


def sde_talks() -> QuestionSet:
    """Every talk of sde-bench is a document; the bug reports that talks with a decision answer."""
    folder = DATA / "sde"
    talks = [talk["turns"] for talk in json.loads((folder / "decoys.json").read_text("utf-8"))]
    questions = []
    for task in json.loads((folder / "tasks-dev.json").read_text("utf-8")):
        if task["source"].startswith("conversation"):
            told = task["conversations"]
            own_talks = told if isinstance(told[0], list) else [told]
            gold = frozenset(str(len(talks) + place) for place in range(len(own_talks)))
            questions.append(LabelledQuestion(task["bug_report"], gold, "bug report"))
            talks += own_talks
    documents = [
        Document(str(place), "\n".join(f"{turn['role']}: {turn['text']}" for turn in talk))
        for place, talk in enumerate(talks)
    ]
    return QuestionSet("Sde-bench talks", "sde-talks", documents, questions)


def long_passages() -> QuestionSet:
    """Runs of turns of the real sessions, without outputs of tools: 3,000 characters and more."""
    documents: list[Document] = []
    document_of: dict[tuple[str, str], str] = {}
    for stem, transcript in transcripts().items():
        parts: list[str] = []
        ids: list[str] = []
        turns = [turn for turn in transcript if turn.role != "tool" and turn.content.strip()]
        for place, turn in enumerate(turns, start=1):
            parts.append(f"{turn.role}: {turn.content[:PASSAGE_TURN_CHARS]}")
            ids.append((turn.external_id or "").split(".")[0])
            if sum(map(len, parts)) > PASSAGE_CHARS or place == len(turns):
                name = f"{stem}/{len(documents)}"
                documents.append(Document(name, "\n\n".join(parts)))
                document_of |= {(stem, turn_id): name for turn_id in ids}
                parts, ids = [], []
    asked = []
    for question in questions():
        keys = {(question.transcript, turn) for turn in question.turns}
        gold = frozenset(document_of[key] for key in keys & document_of.keys())
        if gold:
            asked.append(LabelledQuestion(question.text, gold, "real session"))
    return QuestionSet("Long passages", "long-passages", documents, asked)


def own(name: str) -> QuestionSet:
    """A set of our own: `{"documents": {name: text}, "questions": {half: [[text, names, type]]}}`.

    Halves are `dev`, which may be looked at, and `held_out`, which only counts.
    """
    read = json.loads((OWN / f"{name}.json").read_text(encoding="utf-8"))
    return QuestionSet(
        name.capitalize(),
        name,
        [Document(one, text) for one, text in read["documents"].items()],
        [
            LabelledQuestion(text, frozenset(gold), type_, half.replace("_", " "))
            for half, asked in read["questions"].items()
            for text, gold, type_ in asked
        ],
    )
