"""The record that a language model answers with, and what of it the turns support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.content_checks import contains_instructions
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.record_validation import (
    DroppedStatement,
    Objection,
    Quotation,
    clean_line,
    find_objection,
    find_quotation,
    find_unsupported,
    is_dismissal,
    is_named,
)
from reverie.domain.extraction.records.decision_records import (
    MAX_PROBLEM_CHARS,
    DecisionRecord,
)
from reverie.domain.extraction.records.record_statements import (
    RULE_SCORE,
    RecordStatement,
)
from reverie.domain.extraction.records.rejected_alternatives import (
    MAX_PROPOSAL_CHARS,
    MAX_REASON_CHARS,
    RejectedAlternative,
)
from reverie.domain.extraction.records.statement_selection import MAX_RECORD_CHARS, MAX_REJECTED
from reverie.domain.extraction.records.subtopics import find_problem
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText, tool_call_status

MAX_ANSWER_CHARS, MAX_ANSWER_ITEMS = 4_000, 20
MAX_NAME_CHARS, MAX_NAMES = 64, 8
MAIN_SCORE, OTHER_SCORE, TOOL_SCORE = RULE_SCORE, RULE_SCORE / 2, 0.8
"""Weights of statements: of the part that gives the record its kind, of the other part, and of what
only a tool said."""


RecordKind = Literal["decision", "bug", "lesson", "spec", "context"]


class StatementAnswer(BaseModel):
    """A statement, the numbers of the turns that say it, and words of one of them."""

    text: str = Field(max_length=MAX_ANSWER_CHARS)
    turns: list[int] = Field(max_length=200)
    quote: str = Field(max_length=MAX_ANSWER_CHARS)


class LastingStatementAnswer(StatementAnswer):
    """A statement that is a memory of its own."""

    kind: Literal["convention", "preference", "task", "skill"]


class RefusedAnswer(BaseModel):
    """A proposal that was refused, and why."""

    proposal: str = Field(max_length=MAX_ANSWER_CHARS)
    reason: str = Field("", max_length=MAX_ANSWER_CHARS)
    turns: list[int] = Field(max_length=200)
    quote: str = Field(max_length=MAX_ANSWER_CHARS)


class RecordAnswer(BaseModel):
    """The record of one subtopic in the model's words."""

    problem: str = Field("", max_length=MAX_ANSWER_CHARS)
    decided: list[StatementAnswer] = Field(default_factory=list, max_length=MAX_ANSWER_ITEMS)
    found: list[StatementAnswer] = Field(default_factory=list, max_length=MAX_ANSWER_ITEMS)
    refused: list[RefusedAnswer] = Field(default_factory=list, max_length=MAX_ANSWER_ITEMS)
    kind: RecordKind = "decision"
    files: list[str] = Field(default_factory=list, max_length=100)
    symbols: list[str] = Field(default_factory=list, max_length=100)
    commands: list[str] = Field(default_factory=list, max_length=100)
    lasting: list[LastingStatementAnswer] = Field(default_factory=list, max_length=MAX_ANSWER_ITEMS)


StatementT = TypeVar("StatementT", bound=StatementAnswer)
ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class CheckedAnswer:
    """What is left of an answer: a record if a statement of one is left."""

    record: DecisionRecord | None
    lasting: Sequence[RecordStatement]
    dropped: Sequence[DroppedStatement]

    @property
    def kept(self) -> int:
        """The number of statements that the turns support."""
        record = self.record
        in_record = len(record.statements) + len(record.refused) if record else 0
        return in_record + len(self.lasting)


def check_answer(
    answer: RecordAnswer,
    turns: Sequence[TurnText],
    exchanges: Sequence[Exchange],
    produced_by: str,
) -> CheckedAnswer:
    """Keeps of an answer what the turns support.

    `turns`: as the model was shown them, cited by their numbers from 1. `exchanges`: the same
    turns as exchanges. Nothing in an answer raises an error.
    """
    check = _AnswerCheck(turns, exchanges, produced_by)
    own_words = [turn for turn in turns if turn.role != "tool"]
    problem = clean_line(answer.problem)
    if problem and (objection := find_unsupported(problem, own_words)):
        check.dropped.append(DroppedStatement(problem, objection))
        problem = ""
    if not problem or len(problem) > MAX_PROBLEM_CHARS:
        problem = find_problem(exchanges, MAX_PROBLEM_CHARS)
    refused = list(check.iter_rejected(answer.refused))[:MAX_REJECTED]
    remaining = MAX_RECORD_CHARS - len(problem) - 40
    remaining -= sum(len(r.proposal) + len(r.reason) + 16 for r in refused)
    statements: list[RecordStatement] = []
    for statement in (
        *check.iter_decided(answer.decided, answer.kind == "decision"),
        *check.iter_found(answer.found, answer.kind),
    ):
        if len(statement.text) >= remaining:
            check.dropped.append(
                DroppedStatement(statement.text, Objection.SPACE, (statement.turn.id,))
            )
        elif statement.text not in {s.text for s in statements}:
            statements.append(statement)
            remaining -= len(statement.text) + 1
    lasting = list(check.iter_lasting(answer.lasting))
    record = None
    if statements:
        text = "\n".join(turn.content for turn in turns)
        record = DecisionRecord(
            problem,
            tuple(statements),
            tuple(refused),
            tuple(exchanges),
            also_cited=tuple(check.cited.values()),
            files=tuple(_find_files(answer.files, text)),
            names=tuple(islice(_find_names([*answer.symbols, *answer.commands], text), MAX_NAMES)),
            produced_by=produced_by,
        )
    return CheckedAnswer(record, lasting, check.dropped)


def list_cited(numbers: Sequence[int], items: Sequence[ItemT]) -> list[ItemT]:
    """The items of these numbers from 1; none if one of them is not there."""
    if not all(1 <= number <= len(items) for number in numbers):
        return []
    return [items[number - 1] for number in sorted(set(numbers))]


@dataclass
class _AnswerCheck:
    """The turns that an answer is checked against, the turns it cites, and what was dropped."""

    turns: Sequence[TurnText]
    exchanges: Sequence[Exchange]
    produced_by: str
    cited: dict[UUID, TurnText] = field(default_factory=dict)
    dropped: list[DroppedStatement] = field(default_factory=list)

    def iter_decided(
        self, answers: Sequence[StatementAnswer], is_main: bool
    ) -> Iterator[RecordStatement]:
        """The decided statements that are supported, and that somebody could decide."""
        for answer, text, cited, quotation in self._iter_supported(answers):
            if objection := self._find_missing_decision(quotation):
                self._drop(text, objection, answer.turns)
                continue
            self.cited |= {turn.id: turn for turn in cited}
            score = MAIN_SCORE if is_main else OTHER_SCORE
            yield self._build(text, quotation, score, Kind.DECISION, is_decided=True)

    def iter_found(
        self, answers: Sequence[StatementAnswer], kind: RecordKind
    ) -> Iterator[RecordStatement]:
        """The found statements that are supported; a proposal is no finding."""
        main_kind = None if kind == "decision" else Kind(kind)
        for answer, text, cited, quotation in self._iter_supported(answers):
            if self._is_open(quotation):
                self._drop(text, Objection.ACCEPTANCE, answer.turns)
                continue
            self.cited |= {turn.id: turn for turn in cited}
            score = MAIN_SCORE if main_kind else OTHER_SCORE
            if quotation.turn.role == "tool":
                score = TOOL_SCORE
            yield self._build(text, quotation, score, main_kind or Kind.CONTEXT)

    def iter_lasting(self, answers: Sequence[LastingStatementAnswer]) -> Iterator[RecordStatement]:
        """The memories of their own that are supported; rules are the user's to state."""
        for answer, text, _, quotation in self._iter_supported(answers):
            role = quotation.turn.role
            is_rule = answer.kind in ("convention", "preference")
            if (is_rule and role != "user") or (answer.kind == "task" and role == "tool"):
                self._drop(text, Objection.SPEAKER, answer.turns)
            elif discourse_markers.ANAPHORIC_START.match(text):
                self._drop(text, Objection.WORDS, answer.turns)
            else:
                scores = {"user": MAIN_SCORE, "tool": TOOL_SCORE}
                score = scores.get(role, OTHER_SCORE)
                statement = self._build(text, quotation, score, Kind(answer.kind), is_decided=True)
                yield replace(statement, is_own_memory=True)

    def iter_rejected(self, answers: Sequence[RefusedAnswer]) -> Iterator[RejectedAlternative]:
        """The refused proposals that are supported, without reasons that are not."""
        for answer in answers:
            proposal, reason = clean_line(answer.proposal), clean_line(answer.reason)
            cited = list_cited(answer.turns, self.turns)
            if reason and find_unsupported(reason, cited):
                self._drop(reason, Objection.WORDS, answer.turns)
                reason = ""
            objection = find_unsupported(proposal, cited) if cited else Objection.TURNS
            quotation = find_quotation(f"{proposal} {reason}", answer.quote, cited)
            objection = objection or _find_missing_refusal(quotation)
            if objection or quotation is None:
                self._drop(proposal, objection or Objection.QUOTE, answer.turns)
                continue
            self.cited |= {turn.id: turn for turn in cited}
            yield RejectedAlternative(
                shorten(proposal, MAX_PROPOSAL_CHARS),
                shorten(reason, MAX_REASON_CHARS),
                quotation.turn,
            )

    def _iter_supported(
        self, answers: Sequence[StatementT]
    ) -> Iterator[tuple[StatementT, str, Sequence[TurnText], Quotation]]:
        for answer in answers:
            text = clean_line(answer.text)
            cited = list_cited(answer.turns, self.turns)
            objection = find_unsupported(text, cited) if cited else Objection.TURNS
            objection = objection or (Objection.QUESTION if is_question(text) else None)
            quotation = None if objection else find_quotation(text, answer.quote, cited)
            if quotation is None:
                self._drop(text, objection or Objection.QUOTE, answer.turns)
            elif objection := find_objection(text, cited, quotation):
                self._drop(text, objection, answer.turns)
            else:
                yield answer, text, cited, quotation

    def _build(
        self,
        text: str,
        quotation: Quotation,
        score: float,
        kind: Kind,
        is_decided: bool = False,
    ) -> RecordStatement:
        return RecordStatement(
            text, quotation.turn, score, kind, is_decided, produced_by=self.produced_by
        )

    def _find_missing_decision(self, quotation: Quotation) -> Objection | None:
        """Why what was quoted is not decided; None if it is."""
        turn = quotation.turn
        if turn.role == "tool" and tool_call_status(turn.content) not in ("answered", "rejected"):
            return Objection.SPEAKER
        exchange = self._find_exchange(turn)
        is_refused = exchange is not None and exchange.is_refused
        return Objection.ACCEPTANCE if is_refused or self._is_open(quotation) else None

    def _is_open(self, quotation: Quotation) -> bool:
        """Whether what was quoted is a question, or a proposal that nobody confirmed."""
        if is_question(quotation.sentences):
            return True
        if quotation.turn.role != "assistant":
            return False
        exchange = self._find_exchange(quotation.turn)
        is_confirmed = exchange is not None and exchange.is_confirmed
        return not is_confirmed and bool(discourse_markers.PROPOSAL.search(quotation.sentences))

    def _find_exchange(self, reply: TurnText) -> Exchange | None:
        """The exchange that a turn is the last reply of."""
        replies = ((e, e.last_reply) for e in self.exchanges)
        return next(
            (e for e, last_reply in replies if last_reply and last_reply.id == reply.id), None
        )

    def _drop(self, text: str, objection: Objection, numbers: Sequence[int]) -> None:
        cited = tuple(turn.id for turn in list_cited(numbers, self.turns))
        self.dropped.append(DroppedStatement(text, objection, cited))


def _find_missing_refusal(quotation: Quotation | None) -> Objection | None:
    """Why a quote shows no refusal; None if it does."""
    if quotation is None:
        return Objection.QUOTE
    if contains_instructions(quotation.sentences):
        return Objection.INSTRUCTIONS
    is_refusal = is_dismissal(quotation.sentences) or discourse_markers.REFUSAL.search(
        quotation.sentences
    )
    return None if is_refusal else Objection.REFUSAL


def _find_files(names: Sequence[str], text: str) -> Iterator[str]:
    """The paths among the names that the turns name."""
    for name in map(clean_line, names):
        yield from (path for path in extract_paths(name) if is_named(name, text))


def _find_names(names: Sequence[str], text: str) -> Iterator[str]:
    """The symbols and commands that the turns name."""
    for name in map(clean_line, names):
        if 1 < len(name) <= MAX_NAME_CHARS and is_named(name, text):
            yield name
