"""Decision records: what one subtopic of a conversation settled, as one memory.

A record gives the problem in the words in which it was reported, what was decided (a summing-up
before all else), what was found out, and which proposals were refused and why. Measured on
conversations with a known decision: benchmarks/quality/decisions.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.records.agent_statements import (
    is_anecdotal,
    is_conversational,
    is_speculative,
)
from reverie.domain.extraction.records.record_statements import (
    ANAPHOR,
    RULES,
    RecordStatement,
)
from reverie.domain.extraction.records.record_text import (
    COMMIT_ID,
    adds_information,
    depends_on_context,
    drop_covered_sentences,
    join_sentences,
    names_its_subject,
    names_subject_first,
    render_lines,
)
from reverie.domain.extraction.records.rejected_alternatives import RejectedAlternative
from reverie.domain.extraction.records.subtopics import (
    is_order,
)
from reverie.domain.extraction.wording.salience import extract_exact_terms, is_question
from reverie.domain.text.markdown import split_sentences, without_code
from reverie.domain.text.turns import TurnText

MAX_PROBLEM_CHARS, MAX_HEADLINE_CHARS, MAX_SHOWN_CHARS = 400, 260, 240
_NEEDLESS_ANSWER = re.compile(r"^(?:Yes|No)\. ")
_SUBJECT = re.compile(r"(?:About `?|(?=`[\w./-]+`: )`)([\w-]+)")


@dataclass(frozen=True)
class DecisionRecord:
    """What one subtopic of a conversation settled; `exchanges` are those it was made of.

    `also_cited`: turns that it cites beside those of its parts, as they say the same. `files`,
    `names`: what else it is about. `produced_by`: as in `ExtractedMemory`. `is_whole`: the
    statements are one reply, and are told in its order. `is_claim`: the problem is what a reviewer
    claims, which may be refuted, and is not shown.
    """

    problem: str
    statements: tuple[RecordStatement, ...]
    refused: tuple[RejectedAlternative, ...]
    exchanges: tuple[Exchange, ...]
    also_cited: tuple[TurnText, ...] = ()
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    produced_by: str = RULES
    is_whole: bool = False
    is_claim: bool = False

    def extend(self, statements: Sequence[RecordStatement], exchange: Exchange) -> DecisionRecord:
        """The record with what a later exchange tells of it."""
        return replace(
            self,
            statements=(*self.statements, *statements),
            exchanges=(*self.exchanges, exchange),
        )

    @property
    def content(self) -> str:
        """The record as text: a line each for what was decided, found, done and refused.

        Before them what the result does not tell of the request; a result alone has no label.
        """
        if self.is_single:
            text = self.statements[0].text
            is_leaning = text in self.problem and ANAPHOR.search(text)
            return self.problem if is_leaning else text
        shown = self.displayed_problem
        parts = {
            "Decided": [s.text for s in self.statements if s.is_decided],
            self._finding_label: [s.text for s in self.statements if s.is_finding],
            "Done": [s.text for s in self.statements if s.is_change],
        }
        if self.is_whole:
            label = "Done" if self.statements[0].is_change else self._finding_label
            parts = {label: [s.text for s in self.statements]}
        told = [
            (label, text)
            for label, texts in parts.items()
            if (text := join_sentences(drop_covered_sentences(t, shown) for t in texts))
        ]
        told += [
            ("Refused", " — ".join(filter(None, (r.proposal, r.reason)))) for r in self.refused
        ]
        if len(told) == 1 and not shown:
            return render_lines([_NEEDLESS_ANSWER.sub("", told[0][1])])
        return render_lines([shown, *(f"{label}: {text}" for label, text in told)])

    @cached_property
    def displayed_problem(self) -> str:
        """What is shown of the request: the first sentences in a row that the result does not tell.

        All of it where the result does not name what it is about, or does not tell what was asked.
        """
        told = join_sentences(s.text for s in self.statements)
        if self.is_claim:
            return ""
        is_asked = self.is_answer
        subject = _SUBJECT.match(self.problem)
        is_unnamed = subject and subject[1].lower() not in told.lower()
        is_named = names_subject_first(_NEEDLESS_ANSWER.sub("", without_code(told)))
        if is_asked and (not is_named or is_unnamed or adds_information(self.problem, told)):
            return self.problem
        shown = ""
        if self.statements[0].is_recap and extract_exact_terms(told.partition(":")[0]):
            # What was said on the way to a summing-up that names its subject is no news.
            request = _find_opening(self.exchanges)
            said = (e.opening for e in self.exchanges if e.opening is not request)
            told = " ".join([told, *(turn.content for turn in said if turn)])
        sentences = [] if is_asked else split_sentences(self.problem)
        if sentences and (is_unnamed or not is_named):
            told = " ".join(s for s in sentences if not (is_speculative(s) or is_question(s)))
            return told or self.problem
        for sentence in sentences:
            if is_order(sentence) and not shown:
                continue
            is_talk = is_question(sentence) or is_speculative(sentence) or is_anecdotal(sentence)
            leans = is_talk or (not shown and ANAPHOR.search(sentence))
            fits = len(shown) + len(sentence) < MAX_SHOWN_CHARS
            if leans or is_order(sentence) or not fits or not adds_information(sentence, told):
                break
            shown = f"{shown} {sentence}".lstrip()
        return shown

    @property
    def _finding_label(self) -> str:
        return "Answer" if self.is_answer else "Found"

    @property
    def is_answer(self) -> bool:
        """Whether it only answers a question."""
        last = next(iter(split_sentences(self.problem)[-1:]), "")
        return is_question(last) and all(s.is_finding for s in self.statements)

    @property
    def is_single(self) -> bool:
        """Whether it is one statement of the user, which needs no heading."""
        first = self.statements[0]
        return len(self.statements) == 1 and not self.refused and first.text[:60] in self.problem

    @property
    def is_self_contained(self) -> bool:
        """Whether it is no chat, and does not point to what is not told with it."""
        if self.is_single:
            return True
        if COMMIT_ID.search(self.problem):
            return False
        if self.is_answer and (
            is_conversational(self.displayed_problem) or depends_on_context(self.content)
        ):
            return False
        said = [s for s in self.statements if s.turn.role == "assistant"]
        first = next(iter(split_sentences(without_code(self.statements[0].text))), "")
        return not any(is_conversational(s.text) for s in said) and bool(
            self.displayed_problem or not ANAPHOR.search(first) or names_subject_first(first)
        )

    @property
    def kind(self) -> Kind:
        """The kind of its weightiest part."""
        if self.is_single:
            return self.statements[0].kind
        if any(s.is_recap for s in self.statements):
            return Kind.DECISION
        weights: Counter[Kind] = Counter()
        for statement in self.statements:
            kind = Kind.DECISION if statement.is_decided else statement.kind
            if kind is Kind.DECISION and self.is_answer:
                kind = Kind.CONTEXT
            weights[kind] += max(statement.score, 0.1)  # type: ignore[assignment]
        return max(weights, key=lambda kind: weights[kind])

    @property
    def headline(self) -> str:
        """One line: the first sentence of the weightiest statement, whole.

        "" where there is none that says by itself what it is about. An answer is an outcome only
        where it tells what was wrong.
        """
        if (self.is_answer or self.is_whole) and self.kind is not Kind.BUG:
            return ""
        weighed = [
            (s.is_decided or s.is_change, s.score, without_code(s.text)) for s in self.statements
        ]
        outcome = next(iter(split_sentences(max(weighed)[2])), "")
        return outcome if names_its_subject(outcome) and len(outcome) <= MAX_HEADLINE_CHARS else ""

    @property
    def score(self) -> float:
        """The weight of its weightiest statement."""
        return max(min(s.score, 5.0) for s in self.statements)

    @property
    def parts(self) -> dict[str, Any]:
        """Its parts by name, each a text or a list of texts, as they are stored."""
        return {
            "problem": self.problem,
            "decided": [s.text for s in self.statements if s.is_decided],
            "found": [s.text for s in self.statements if not s.is_decided],
            "refused": [{"proposal": r.proposal, "reason": r.reason} for r in self.refused],
        }

    @property
    def turns(self) -> list[TurnText]:
        """The turns that it cites, in order."""
        cited = [_find_opening(self.exchanges), *(s.turn for s in self.statements)]
        cited += [*(r.turn for r in self.refused), *self.also_cited]
        unique = {turn.id: turn for turn in cited if turn}
        return sorted(unique.values(), key=lambda turn: turn.ordinal)


def _find_opening(exchanges: Sequence[Exchange]) -> TurnText | None:
    return next((e.opening for e in exchanges if e.request), exchanges[0].opening)
