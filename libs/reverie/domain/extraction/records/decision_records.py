"""Decision records: what one matter of a conversation settled, as one memory.

A record gives the problem in the words in which it was reported, what was decided (a summing-up
before all else), what was found out, and which proposals were refused and why. Measured on
conversations with a known decision: benchmarks/quality/decisions.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.work_log import select_write_turns
from reverie.domain.extraction.records.agent_statements import is_chatty, is_supposed
from reverie.domain.extraction.records.matters import (
    StatedExchange,
    find_problem,
    is_general_question,
    is_order,
    list_informative_sentences,
)
from reverie.domain.extraction.records.record_statements import (
    DECIDED_KINDS,
    POINTING,
    RULES,
    RecordStatement,
    is_near_duplicate,
)
from reverie.domain.extraction.records.record_text import (
    drop_told_sentences,
    is_untold,
    join_sentences,
    leans_on_talk,
    names_itself,
    opens_named,
    render_lines,
)
from reverie.domain.extraction.records.refused_proposals import RefusedProposal, iter_refused
from reverie.domain.extraction.records.statement_selection import (
    MAX_RECORD_CHARS,
    MAX_REFUSED,
    limit_findings,
    proofread,
    select_statements,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import extract_exact_terms, is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences, without_code
from reverie.domain.text.turns import TurnText

MAX_PROBLEM_CHARS, MAX_HEADLINE_CHARS, MAX_SHOWN_CHARS = 400, 260, 240
_TIDYING = re.compile(
    r"\b(?:comments?|unused|typos?|wording|grammar|blank lines?|visual\w*|whitespace"
    r"|indentation)\b|\brenam(?:ed|es)\b",
    re.I,
)
_OUTCOME = re.compile(
    r"\b(?:now|no longer|fixed|added|changed|removed|renamed|moved|updated|replaced|reverted"
    r"|created|implemented|the fix|the change|already)\b|(?:现在|已|修复|改为)",
    re.I,
)
_REASON = re.compile(
    r"\b(?:because|since|due to|so|cause[sd]?|reason|not)\b|n't\b|因为|由于|原因", re.I
)
_NEEDLESS_ANSWER = re.compile(r"^(?:Yes|No)\. ")
_SUBJECT = re.compile(r"(?:About `?|(?=`[\w./-]+`: )`)([\w-]+)")


@dataclass(frozen=True)
class DecisionRecord:
    """What one matter of a conversation settled; `exchanges` are those it was made of.

    `is_claim`: the problem is what a reviewer claims, which may be refuted, and is not shown.
    `also_cited`: turns that it cites beside those of its parts, as they say the same. `files`,
    `names`: what else it is about. `produced_by`: as in `ExtractedMemory`. `is_whole`: the
    statements are one reply, and are told in its order.
    """

    problem: str
    statements: tuple[RecordStatement, ...]
    refused: tuple[RefusedProposal, ...]
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
            is_leaning = text in self.problem and POINTING.search(text)
            return self.problem if is_leaning else text
        shown = self.shown_problem
        parts = {
            "Decided": [s.text for s in self.statements if s.is_decided],
            self._finding_label: [s.text for s in self.statements if s.is_found],
            "Done": [s.text for s in self.statements if s.is_done],
        }
        if self.is_whole:
            label = "Done" if self.statements[0].is_done else self._finding_label
            parts = {label: [s.text for s in self.statements]}
        told = [
            (label, text)
            for label, texts in parts.items()
            if (text := join_sentences(drop_told_sentences(t, shown) for t in texts))
        ]
        told += [
            ("Refused", " — ".join(filter(None, (r.proposal, r.reason)))) for r in self.refused
        ]
        if len(told) == 1 and not shown:
            return render_lines([_NEEDLESS_ANSWER.sub("", told[0][1])])
        return render_lines([shown, *(f"{label}: {text}" for label, text in told)])

    @cached_property
    def shown_problem(self) -> str:
        """What is shown of the request: the first sentences in a row that the result does not tell.

        All of it where the result does not name what it is about, or does not tell what was asked.
        """
        if self.is_claim:
            return ""
        told = join_sentences(s.text for s in self.statements)
        is_asked = self.is_answer
        subject = _SUBJECT.match(self.problem)
        is_unnamed = subject and subject[1].lower() not in told.lower()
        is_named = opens_named(_NEEDLESS_ANSWER.sub("", without_code(told)))
        if is_asked and (not is_named or is_unnamed or is_untold(self.problem, told)):
            return self.problem
        shown = ""
        is_headed = self.statements[0].is_recap and extract_exact_terms(told.partition(":")[0])
        sentences = [] if is_asked or is_headed else split_sentences(self.problem)
        if sentences and (is_unnamed or not is_named):
            told = " ".join(s for s in sentences if not (is_supposed(s) or is_question(s)))
            return told or self.problem
        for sentence in sentences:
            if is_order(sentence) and not shown:
                continue
            is_talk = is_question(sentence) or is_supposed(sentence)
            leans = is_talk or (not shown and POINTING.search(sentence))
            is_fitting = len(shown) + len(sentence) < MAX_SHOWN_CHARS
            if leans or is_order(sentence) or not is_fitting or not is_untold(sentence, told):
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
        return is_question(last) and all(s.is_found for s in self.statements)

    @property
    def is_single(self) -> bool:
        """Whether it is one statement of the user, which needs no heading."""
        first = self.statements[0]
        return len(self.statements) == 1 and not self.refused and first.text[:60] in self.problem

    @property
    def stands_by_itself(self) -> bool:
        """Whether it is no chat, and does not point to what is not told with it."""
        if self.is_single:
            return True
        if self.is_answer and (is_chatty(self.shown_problem) or leans_on_talk(self.content)):
            return False
        said = [s for s in self.statements if s.turn.role == "assistant"]
        first = next(iter(split_sentences(without_code(self.statements[0].text))), "")
        return not any(is_chatty(s.text) for s in said) and bool(
            self.shown_problem or not POINTING.search(first) or opens_named(first)
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
            (s.is_decided or s.is_done, s.score, without_code(s.text)) for s in self.statements
        ]
        outcome = next(iter(split_sentences(max(weighed)[2])), "")
        return outcome if names_itself(outcome) and len(outcome) <= MAX_HEADLINE_CHARS else ""

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


def settles(matter: Sequence[StatedExchange]) -> bool:
    """Whether a matter of mere talk settles something, and does not only ask and answer.

    What a first message wants is its request; what the agent repeats settles nothing by itself.
    """
    return any(_is_settled(s, item.exchange) for item in matter for s in item.statements) or any(
        True for item in matter for _ in iter_refused(item.exchange)
    )


def _is_settled(statement: RecordStatement, exchange: Exchange) -> bool:
    if statement.stands_alone:
        return False
    if statement.turn.role != "user":
        opening = exchange.opening.content if exchange.opening else ""
        is_musing = discourse_markers.MUSING.search(f"{opening} {statement.text}")
        is_decided = statement.is_decided and exchange.is_reply
        return statement.is_recap or (is_decided and not is_musing)
    if sentence_patterns.CAUSE_LABEL.match(statement.text):
        return True
    return is_user_decision(statement) and exchange.previous_subject != ""


def is_user_decision(statement: RecordStatement) -> bool:
    """Whether the user decides something in it."""
    return (
        statement.turn.role == "user"
        and statement.is_decided
        and not statement.stands_alone
        and statement.kind in DECIDED_KINDS
    )


def build_matter_record(matter: Sequence[StatedExchange], is_work: bool) -> DecisionRecord | None:
    """Builds the record of one matter; None if nothing was settled.

    `is_work`: whether the agent used tools in the topic, and did not only talk about it.
    """
    exchanges = [item.exchange for item in matter]
    statements = [
        statement
        for item in matter
        if not (is_work and is_general_question(item.exchange))
        for statement in item.statements
        if not statement.stands_alone
    ]
    refused = [r for exchange in exchanges for r in iter_refused(exchange)]
    reasons = {r.reason for r in refused if r.is_option}
    statements = [s for s in statements if s.text not in reasons]
    opening_exchanges = [item.exchange for item in matter if not _only_lasting(item)]
    problem = find_problem(opening_exchanges, MAX_PROBLEM_CHARS) or find_problem(
        exchanges, MAX_PROBLEM_CHARS
    )
    last_words = _keep_last_words(statements, exchanges, is_work)
    max_findings = MAX_RECORD_CHARS if is_work else limit_findings(last_words)
    chosen = select_statements(last_words, problem, refused, max_findings) or select_statements(
        last_words, "", refused, max_findings
    )
    alone = " ".join(s.text for item in matter for s in item.statements if s.stands_alone)
    problem = drop_told_sentences(problem, alone) or problem
    if not problem and all(statement.is_done for statement in chosen):
        return None
    leans = discourse_markers.LEANING_START.match
    is_fragment = len(chosen) == 1 and leans(chosen[0].text)
    if not chosen or (is_fragment and (not problem or leans(problem))):
        return None
    if is_work and not any(map(_tells_outcome, _drop_asked(chosen, exchanges))):
        outcome = _find_outcome(statements)
        has_written = select_write_turns(turn for e in exchanges for turn in e.replies)
        if not (has_written and outcome):
            # What was asked for is no outcome, and neither is what was merely looked up.
            chosen = _drop_asked(chosen, exchanges)
            tells = is_question(problem) or any(map(_tells_why, chosen))
            if has_written or not chosen or not tells:
                return None
        chosen += [outcome] if outcome else []
    told = proofread(chosen if is_work else _drop_passing(chosen))
    claims = [e for e in exchanges if e.opening and _is_quoted(e.opening)] if is_work else []
    if not told or (claims and all(map(_is_tidying, told))):
        return None
    answered = [turn for e in claims for turn in e.replies]
    return DecisionRecord(
        problem,
        tuple(told),
        _drop_covered_reasons(refused, chosen),
        tuple(exchanges),
        tuple(_find_repetitions(chosen, statements, exchanges)),
        is_claim=bool(claims) and any(s.is_found or s.turn not in answered for s in told),
    )


def _drop_passing(chosen: Sequence[RecordStatement]) -> list[RecordStatement]:
    """Without what was merely found beside what was decided; a reason stays."""
    if all(s.is_found for s in chosen):
        return list(chosen)
    return [s for s in chosen if not s.is_found or _tells_why(s)]


def _tells_why(statement: RecordStatement) -> bool:
    """Whether it tells a reason, or that something is not as it looked."""
    return statement.kind in (Kind.BUG, Kind.LESSON) or bool(_REASON.search(statement.text))


def _drop_asked(
    chosen: Sequence[RecordStatement], exchanges: Sequence[Exchange]
) -> list[RecordStatement]:
    request = next((e.opening for e in exchanges if e.opening), None)
    return [s for s in chosen if s.turn is not request]


def _tells_outcome(statement: RecordStatement) -> bool:
    return statement.is_done or statement.is_decided or bool(_OUTCOME.search(statement.text))


def _find_outcome(statements: Iterable[RecordStatement]) -> RecordStatement | None:
    """What the last report that names a change says of it."""
    outcomes = [s for s in statements if s.turn.role == "assistant" and _tells_outcome(s)]
    return max(outcomes, key=lambda s: (s.turn.ordinal, s.score), default=None)


def _keep_last_words(
    statements: Sequence[RecordStatement], exchanges: Sequence[Exchange], is_work: bool
) -> Sequence[RecordStatement]:
    """Without what a later statement tells again, or settles.

    A summing-up settles all before it, causes excepted. Of work, its reports tell what was found
    on the way.
    """
    recap = next((s.turn for s in reversed(statements) if s.is_recap), None)
    if recap:
        return [
            s
            for s in statements
            if (s.is_decided and s.turn.ordinal >= recap.ordinal)
            or sentence_patterns.CAUSE_LABEL.match(s.text)
        ]
    if not is_work:
        return statements
    # What was planned before the first change is told by the report on it.
    first = next((n for n, e in enumerate(exchanges) if select_write_turns(e.replies)), 0)
    reports = {e.last_reply.id for e in exchanges[first:] if e.last_reply}
    return [
        s
        for s in statements
        if s.turn.role != "assistant" or s.turn.id in reports or s.is_decided or _names_fault(s)
    ]


def _is_quoted(opening: TurnText) -> bool:
    return sentence_patterns.QUOTED_REVIEW.search(opening.content[:300]) is not None


def _is_tidying(statement: RecordStatement) -> bool:
    """Whether it tells of comments, names and wordings that were changed: the code shows them."""
    is_one = "; " not in statement.text
    return statement.is_done and is_one and bool(_TIDYING.search(statement.text))


def _names_fault(statement: RecordStatement) -> bool:
    return statement.kind is Kind.BUG or bool(sentence_patterns.ROOT_CAUSE.search(statement.text))


def _find_repetitions(
    chosen: Sequence[RecordStatement],
    statements: Iterable[RecordStatement],
    exchanges: Iterable[Exchange],
) -> Iterator[TurnText]:
    """Finds the turns that say what was chosen too, in the same words or in nearly the same."""
    for statement in statements:
        if any(is_near_duplicate(statement.words, other.words) for other in chosen):
            yield statement.turn
    for turn in (turn for exchange in exchanges for turn in exchange.replies):
        if turn.role == "assistant" and any(s.text in turn.content for s in chosen):
            yield turn


def _only_lasting(item: StatedExchange) -> bool:
    """Whether a message only states rules and preferences, which open no matter."""
    exchange = item.exchange
    statements = [s for s in item.statements if s.turn is exchange.opening]
    if not statements or not all(s.stands_alone for s in statements):
        return False
    stated = " ".join(s.text for s in statements)
    return all(sentence in stated for sentence in list_informative_sentences(exchange.request))


def _find_opening(exchanges: Sequence[Exchange]) -> TurnText | None:
    return next((e.opening for e in exchanges if e.request), exchanges[0].opening)


def _drop_covered_reasons(
    refused: Sequence[RefusedProposal], chosen: Sequence[RecordStatement]
) -> tuple[RefusedProposal, ...]:
    covered = frozenset().union(*(s.words for s in chosen))
    return tuple(
        RefusedProposal(
            r.proposal,
            "" if len(content_words(r.reason) - covered) < 3 else r.reason,
            r.turn,
        )
        for r in refused[-MAX_REFUSED:]
    )
