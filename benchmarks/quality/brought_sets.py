"""Loads LongMemEval, BEAM and LoCoMo from files that the user brings.

- LongMemEval: `longmemeval_s.json` or `longmemeval_oracle.json`
  (https://github.com/xiaowu0162/LongMemEval).
- BEAM: a folder of chats, each with `chat.json` and `probing_questions/probing_questions.json`
  (https://github.com/mohammadtavakoli78/BEAM).
- LoCoMo: `locomo10.json` (https://github.com/snap-research/locomo).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality.question_sets import (
    Document,
    LabelledQuestion,
    QuestionSet,
    locomo_sessions,
    locomo_turns,
)

_ANSWER_FIELDS = ("answer", "ideal_answer", "ideal_response", "expected_compliance")


@dataclass(frozen=True)
class ExpectedAnswer:
    """What a good answer says: the claims that it must make."""

    question: str
    claims: tuple[str, ...]


@dataclass(frozen=True)
class BroughtSet:
    """One history with its questions, and the expected answer of each question."""

    questions: QuestionSet
    answers: dict[str, ExpectedAnswer]


def load_brought(kind: str, path: Path) -> Iterator[BroughtSet]:
    """The histories of a benchmark, each in a project of its own. Raises `ValueError`."""
    match kind:
        case "longmemeval":
            yield from _load_longmemeval(path)
        case "beam":
            yield from _load_beam(path)
        case "locomo":
            conversations = json.loads(path.read_text("utf-8"))
            answers = {
                one["question"]: ExpectedAnswer(one["question"], (str(one["answer"]),))
                for conversation in conversations
                for one in conversation["qa"]
                if "answer" in one
            }
            for questions in (*locomo_turns(conversations), *locomo_sessions(conversations)):
                yield BroughtSet(questions, answers)
        case _:
            raise ValueError(f"{kind} is none of longmemeval, beam, locomo")


def _load_longmemeval(path: Path) -> Iterator[BroughtSet]:
    """A history for each question; those that nothing answers have no gold and are left out."""
    for one in json.loads(path.read_text("utf-8")):
        documents = [
            Document(
                name,
                "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns),
                at=_parse_time(day, "%Y/%m/%d (%a) %H:%M"),
            )
            for name, day, turns in zip(
                one["haystack_session_ids"],
                one["haystack_dates"],
                one["haystack_sessions"],
                strict=True,
            )
        ]
        gold = frozenset(one["answer_session_ids"]) & {document.name for document in documents}
        if not gold or str(one["question_id"]).endswith("_abs"):
            continue
        question = LabelledQuestion(one["question"], gold, one["question_type"])
        project = f"longmemeval-{one['question_id']}".lower()
        yield BroughtSet(
            QuestionSet("LongMemEval sessions", project, documents, [question]),
            {one["question"]: ExpectedAnswer(one["question"], (str(one["answer"]),))},
        )


def _load_beam(folder: Path) -> Iterator[BroughtSet]:
    """A chat is a history, and each of its messages a document."""
    for file in sorted(folder.rglob("chat.json")):
        messages = [
            message
            for batch in json.loads(file.read_text("utf-8"))
            for turn in batch["turns"]
            for message in turn
        ]
        documents = [
            Document(
                str(message["id"]),
                f"{message['role']}: {message['content'].partition(' ->-> ')[0]}",
                group=file.parent.name,
                at=_parse_time(message.get("time_anchor") or "", "%B-%d-%Y"),
            )
            for message in messages
        ]
        asked = json.loads((file.parent / "probing_questions/probing_questions.json").read_text())
        known = {document.name for document in documents}
        questions, answers = [], {}
        for ability, listed in asked.items():
            for one in listed:
                gold = frozenset(map(str, _flatten(one.get("source_chat_ids") or []))) & known
                if gold:
                    questions.append(LabelledQuestion(one["question"], gold, ability))
                    claims = tuple(one.get("rubric") or _find_answer(one))
                    answers[one["question"]] = ExpectedAnswer(one["question"], claims)
        name = "-".join(file.parent.parts[-2:]).lower()
        yield BroughtSet(
            QuestionSet("BEAM messages", f"beam-{name}", documents, questions), answers
        )


def _find_answer(one: dict[str, Any]) -> tuple[str, ...]:
    return next(((str(one[field]),) for field in _ANSWER_FIELDS if one.get(field)), ())


def _flatten(value: Any) -> Iterator[Any]:
    """The ids in lists and in lists by name."""
    match value:
        case dict():
            for inner in value.values():
                yield from _flatten(inner)
        case list():
            for inner in value:
                yield from _flatten(inner)
        case _:
            yield value


def _parse_time(text: str, form: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    return None
