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
from reverie.domain.extraction.wording.salience import is_question
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
            return self.problem if ANAPHOR.search(text) else text
        lines = self._list_lines()
        if len(lines) == 1 and not self.displayed_problem:
            return render_lines([_NEEDLESS_ANSWER.sub("", lines[0][1])])
        return render_lines(
            [self.displayed_problem, *(f"{label}: {text}" for label, text in lines)]
        )

    def _list_lines(self) -> list[tuple[str, str]]:
        """What it tells beside the request: a label and a text for each line."""
        if self.is_whole:
            parts = [(self._finding_label, self.statements)]
        else:
            parts = [
                ("Decided", tuple(s for s in self.statements if s.is_decided)),
                (self._finding_label, tuple(s for s in self.statements if s.is_finding)),
                ("Done", tuple(s for s in self.statements if s.is_change)),
            ]
        shown = self.displayed_problem
        lines = [
            (label, join_sentences(drop_covered_sentences(s.text, shown) for s in statements))
            for label, statements in parts
        ]
        lines += [
            ("Refused", " — ".join(filter(None, (r.proposal, r.reason)))) for r in self.refused
        ]
        return [(label, text) for label, text in lines if text]

    @cached_property
    def displayed_problem(self) -> str:
        """What is shown of the request: what the result does not tell of it.

        All of it where the result does not name what it is about, or does not tell what was asked.
        """
        if self.is_claim:
            return ""
        result = join_sentences(s.text for s in self.statements)
        is_named = names_subject_first(_NEEDLESS_ANSWER.sub("", without_code(result)))
        if self.is_answer and (not is_named or self._tells_more_than(result)):
            return self.problem
        if not is_named:
            sentences = split_sentences(self.problem)
            known = " ".join(s for s in sentences if not (is_speculative(s) or is_question(s)))
            return known or self.problem
        return self._find_untold_opening(result)

    def _tells_more_than(self, result: str) -> bool:
        """Whether its question names or tells what the answer does not."""
        subject = _SUBJECT.match(self.problem)
        is_unnamed = subject and subject[1].lower() not in result.lower()
        return bool(is_unnamed) or adds_information(self.problem, result)

    def _find_untold_opening(self, result: str) -> str:
        """The first sentences of the request that the result does not tell, orders aside."""
        told, shown = result, ""
        if self.statements[0].is_recap:
            # What was said on the way to a summing-up is no news.
            request = _find_opening(self.exchanges)
            said = (e.opening for e in self.exchanges if e.opening is not request)
            told = " ".join([result, *(turn.content for turn in said if turn)])
        for sentence in split_sentences(self.problem):
            if is_order(sentence):
                continue
            is_talk = is_question(sentence) or is_speculative(sentence) or is_anecdotal(sentence)
            leans = not shown and ANAPHOR.search(sentence)
            fits = len(shown) + len(sentence) < MAX_SHOWN_CHARS
            if is_talk or leans or not fits or not adds_information(sentence, told):
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
        if COMMIT_ID.search(self.problem):
            return False
        if self.is_answer and (
            is_conversational(self.displayed_problem) or depends_on_context(self.content)
        ):
            return False
        return not any(
            is_conversational(s.text) for s in self.statements if s.turn.role == "assistant"
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
