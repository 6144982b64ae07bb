"""Statements of a conversation that may enter a decision record, by what the discourse tells.

What counts depends on who speaks, on what the next message confirms or refuses, and on what sums
up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction import discourse_markers, sentence_patterns
from reverie.domain.extraction.exchanges import (
    MAX_STATEMENT,
    REMARK,
    Exchange,
    extract_statements,
    is_slash_command,
    split_exchanges,
)
from reverie.domain.extraction.key_statements import KeyStatement, extract_key_statements
from reverie.domain.extraction.salience import (
    DECISION_LABEL,
    SentenceRating,
    extract_exact_terms,
    is_question,
    rate_agent_statement,
    rate_correction,
    rate_user_sentence,
)
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import parse_blocks, split_sentences, to_plain_text
from reverie.domain.text.turns import TurnText, trace_status

RULES = "rules"
"""What wrote a record or statement that no language model wrote."""
RULE_SCORE = 4.0
"""The least rating of a sentence that states a rule or a preference by its own words."""
MIN_SCORE = 1.6
"""Statements below are not worth their room."""
MIN_RECAP_CHARS = 60
"""A shorter sentence announces a list; it does not sum up."""
MIN_STATEMENT_BYTES = 24
"""Eight Chinese characters say as much as a few English words."""
RECAP_SCORE = 6.0
MIN_OUTCOME_SCORE, OUTCOME_SCORE = -4.0, 2.5
"""The best point in the report on a request that was worked on weighs the latter at least, unless
it is below the former: then it points to a place, and says nothing."""
DISCOVERY_SCORE = 2.5
"""What an agent says that it has found out weighs as much as a cause."""
MAX_CODE_SPAN = 70
"""A longer one is a line of code, not a name."""

_OPENING_WORDS = re.compile(
    r"^(?:(?:got it|understood|ok(?:ay)?|right|noted|makes sense|agreed|sure|done|perfect"
    r"|excellent|great|yes|yup|no|nope|careful|hold on|wait|exactly|correct|well|so|and|but|also"
    r"|hmm|heads up|ah|oh|i see|that makes sense|good (?:point|to know)"
    r"|(?:hey|hi|hello)(?: @?\w+){0,2})\s*[,.:;!—–-]+\s*)+|^(?:so|and|but)\s+|^\(?\d[.)]\s+",
    re.I,
)
LEANING_START = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|both|same|such|deliberately|first|second"
    r"|otherwise|because|which|then|here|there|the \w+ of (?:which|it|this|these)|expected)\b"
    r"|^(?:它|这|那|因此|所以|否则)",
    re.I,
)
POINTING_ORDER = re.compile(
    r"(?:(?:please|don'?t|do not|never|always|just|leave|keep) )+(?:\w+ )?(?:it|that|them|this)\b",
    re.I,
)
"""An order about what was named in the sentence before."""
NOTE_OPENING = re.compile(r"(?:fyi|for the record|note|remember|for context)\b[:,]?", re.I)
LEAD = re.compile(r"(?:`[^`]*`|[^`:;.]|[:.](?=\S)){3,140}: (?=\S)")
"""The heading in front of a statement."""
_OWN_WORD_KINDS = frozenset({Kind.PREFERENCE, Kind.DECISION})
"""Kinds that a user states in the first person."""
_DECIDED_KINDS = frozenset(
    {Kind.DECISION, Kind.CONVENTION, Kind.PREFERENCE, Kind.TASK, Kind.LESSON}
)
_OWN_MEMORY_KINDS = frozenset({Kind.TASK, Kind.SKILL})
"""A task has a state of its own, and a command is looked up by itself."""


@dataclass(frozen=True)
class RecordStatement:
    """A statement of a record, the turn that makes it, and its weight.

    `stands_alone`: it is a memory of its own. `produced_by`: as in `ExtractedMemory`.
    """

    text: str
    turn: TurnText
    score: float
    kind: Kind
    is_decided: bool
    is_recap: bool = False
    stands_alone: bool = False
    produced_by: str = RULES

    @property
    def is_done(self) -> bool:
        """Whether it tells what was changed."""
        text = self.text.partition(": ")[2] if LEAD.match(self.text) else self.text
        changed = discourse_markers.COMPLETED_CHANGE.match(text)
        return not self.is_decided and bool(
            (changed and not changed[0].endswith("s"))
            or sentence_patterns.DONE_HEADING.match(self.text)
        )

    @property
    def is_found(self) -> bool:
        """Whether it tells what was found out."""
        return not self.is_decided and not self.is_done

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words as they are indexed."""
        return content_words(self.text)

    @cached_property
    def exact_terms(self) -> frozenset[str]:
        """The names, figures and quoted words in it."""
        return extract_exact_terms(self.text)


@dataclass(frozen=True)
class StatedExchange:
    """An exchange with the statements that it makes."""

    exchange: Exchange
    statements: tuple[RecordStatement, ...]


def read_exchanges(segment: TopicSegment) -> list[StatedExchange]:
    """Reads the statements of each exchange of a topic."""
    return [_read_exchange(exchange) for exchange in split_exchanges(segment)]


def _read_exchange(exchange: Exchange) -> StatedExchange:
    """Reads an exchange; the best point of the report on a request worked on has weight."""
    statements = list(_iter_statements(exchange))
    outcome = [n for n, s in enumerate(statements) if s.turn is exchange.last_reply]
    is_worked_on = any(turn.role == "tool" for turn in exchange.replies)
    if exchange.request and is_worked_on and outcome:
        best = max(outcome, key=lambda n: statements[n].score)
        if MIN_OUTCOME_SCORE <= statements[best].score < OUTCOME_SCORE:
            statements[best] = replace(statements[best], score=OUTCOME_SCORE)
    return StatedExchange(exchange, tuple(statements))


def _iter_statements(exchange: Exchange) -> Iterator[RecordStatement]:
    if exchange.opening and not is_slash_command(exchange.request):
        yield from _iter_user_statements(exchange)
    for turn in exchange.replies:
        if turn.role == "assistant":
            yield from _iter_agent_statements(turn, exchange)
        elif turn.role == "tool":
            yield from _iter_user_answers(turn)


def _iter_user_statements(exchange: Exchange) -> Iterator[RecordStatement]:
    turn = exchange.opening
    assert turn is not None
    is_quoted = bool(sentence_patterns.QUOTED_REVIEW.search(turn.content[:300]))
    is_refusal = exchange.previous_subject != "" and bool(
        discourse_markers.REFUSAL.search(turn.content[:200])
    )
    for number, statement in enumerate(_join_leaning(extract_statements(turn.content))):
        aside = discourse_markers.ASIDE_OPENING.match(statement)
        text = strip_opening(statement[aside.end() :] if aside else statement)
        if aside:
            text = text[:1].upper() + text[1:]
        if not _says_something(text, is_refusal):
            continue
        ratings = [rate_user_sentence(part, is_quoted) for part in (text, *split_sentences(text))]
        rating = next(filter(None, ratings), rate_correction(text) if is_refusal else None)
        if rating is None and (is_quoted or not (exchange.is_reply or is_refusal)):
            continue
        if discourse_markers.OBSERVATION.search(text) and not (
            rating and rating.kind in _OWN_WORD_KINDS
        ):
            continue
        is_outcry = text.endswith("!") and not re.search(r"[`\d/]", text)
        if is_outcry or REMARK.match(text) or sentence_patterns.TRANSIENT.search(text):
            continue
        score = 0.5 + (rating.score / 2 if rating else 0.0) + _rate_detail(text)
        score += 0.5 * is_refusal
        score -= 2.5 * bool(discourse_markers.ASIDE.search(text))
        kind = rating.kind if rating else Kind.SPEC
        is_rule = kind is not Kind.LESSON and rating is not None and rating.score >= RULE_SCORE
        is_report = discourse_markers.COMPLETED_CHANGE.match(text)
        stands_alone = (
            ((is_rule and not exchange.is_reply) or kind in _OWN_MEMORY_KINDS)
            and not LEANING_START.match(text)
            and not is_report
            and not sentence_patterns.GUESS.match(text)
        )
        if aside and number and not stands_alone:
            continue
        is_passing = sentence_patterns.FOR_THIS_TIME.search(text)
        if stands_alone and is_passing and not sentence_patterns.EVERY_TIME.search(text):
            continue
        if rating and (stands_alone or sentence_patterns.CAUSE_LABEL.match(text)):
            score = rating.score
        # What was the matter is found out, not decided; so is what a user merely tells.
        is_decided = kind in _DECIDED_KINDS or (
            kind is not Kind.BUG and bool(discourse_markers.NORMATIVE.search(text))
        )
        yield RecordStatement(text, turn, score, kind, is_decided, stands_alone=stands_alone)


def _says_something(text: str, is_refusal: bool) -> bool:
    """Whether a sentence of the user is no order for the work at hand, question, or courtesy."""
    is_order = (sentence_patterns.DIRECTIVE.match(text) and not is_refusal) or (
        sentence_patterns.ONE_OFF_ORDER.match(text)
        and not sentence_patterns.GENERAL.search(text)
        and not sentence_patterns.CAUSE_LABEL.match(text)
    )
    asks = is_question(text) or any(map(is_question, split_sentences(text)[:1]))
    is_short = len(text.encode()) < MIN_STATEMENT_BYTES
    return not (is_order or asks or is_short or discourse_markers.PLEASANTRY.match(text))


def _iter_agent_statements(turn: TurnText, exchange: Exchange) -> Iterator[RecordStatement]:
    is_final = exchange.last_reply is turn
    if exchange.is_review:
        return
    used_tools = any(reply.role == "tool" for reply in exchange.replies)
    recap = _find_recap(turn.content) if is_final and not exchange.is_refused else []
    yield from (RecordStatement(s, turn, RECAP_SCORE, Kind.DECISION, True, True) for s in recap)
    is_restated = (
        is_final
        and bool(discourse_markers.ACKNOWLEDGEMENT.match(turn.content))
        and exchange.is_reply
    )
    points = [] if recap or exchange.is_refused else extract_key_statements(turn.content)
    discovers = bool(discourse_markers.DISCOVERY.match(turn.content))
    for number, point in enumerate(points):
        text = strip_line_places(strip_opening(point.full_text))
        is_proposal = bool(discourse_markers.PROPOSAL.search(text))
        is_chosen = is_proposal and bool(exchange.later_choices & content_words(text))
        if (
            is_question(text)
            or len(text.encode()) < MIN_STATEMENT_BYTES
            or (is_proposal and not (exchange.is_confirmed or is_chosen))
            or (LEANING_START.match(text) and (number or exchange.previous_subject))
            or sentence_patterns.GUESS.match(text)
            or not _is_lasting_point(point, text)
        ):
            continue
        is_discovery = discovers and number == 0
        # Before its last reply, an agent at work tells what it does; only what it learns lasts.
        if used_tools and not is_final and not (is_discovery or _is_learned(text)):
            continue
        rating = rate_agent_statement(point.text, point.lead)
        if is_discovery:
            rating = SentenceRating(Kind.BUG, max(rating.score, 0.0) + DISCOVERY_SCORE)
        if _is_mostly_code(text) and rating.kind is not Kind.SKILL:
            continue
        score = rating.score + 0.5 * is_final + 0.5 * (is_final and is_question(exchange.request))
        if is_restated or is_chosen or (is_final and exchange.is_confirmed):
            score = max(rating.score, 0.0) + 1.0 + is_chosen + _rate_detail(text)
        is_done = used_tools and bool(discourse_markers.COMPLETED_CHANGE.match(point.text))
        score += 1.0 * (is_done and not sentence_patterns.TEST_NAME.search(text))
        score += 1.0 * bool(discourse_markers.MISMATCH.search(text))
        score -= 2.5 * bool(discourse_markers.ASIDE.search(text))
        is_accepted_choice = text.startswith("Use ") and exchange.verdict is not None
        is_decided = (
            is_restated
            or is_accepted_choice
            or (exchange.is_confirmed and rating.kind is Kind.DECISION)
            or is_chosen
        )
        is_answer = is_question(exchange.request)
        stands_alone = (
            rating.kind in _OWN_MEMORY_KINDS
            and score >= MIN_SCORE
            and not (rating.kind is Kind.SKILL and is_answer)
        )
        kind = rating.kind
        if kind is Kind.DECISION and is_answer and not (is_decided or is_done):
            kind = Kind.CONTEXT
        if stands_alone and (
            LEANING_START.match(text)
            or discourse_markers.OBSERVATION.search(text)
            or (rating.kind is Kind.TASK and re.search(r"\b(?:always|never)\b", text, re.I))
        ):
            continue
        yield RecordStatement(text, turn, score, kind, is_decided, stands_alone=stands_alone)


def _is_learned(text: str) -> bool:
    """Whether a sentence tells a cause, a pitfall, or that something is not as it looked."""
    return bool(
        sentence_patterns.ROOT_CAUSE.search(text)
        or sentence_patterns.PITFALL.search(text)
        or discourse_markers.MISMATCH.search(text)
    )


def _is_lasting_point(point: KeyStatement, text: str) -> bool:
    """Whether a point of a report is no option, plan, list of places, or state of the work."""
    return not (
        sentence_patterns.TRANSIENT.search(text)
        or sentence_patterns.LINE_REFERENCE.search(text)
        or sentence_patterns.OPTIONS.search(point.full_text)
        or (point.is_item and sentence_patterns.PLANNED.search(point.lead))
        or (point.is_item and LEANING_START.match(point.lead.rpartition(", ")[2]))
    )


def _iter_user_answers(turn: TurnText) -> Iterator[RecordStatement]:
    """The user's answers to an agent's question, and the reason of a refused call, from a trace."""
    text = turn.content.partition("\n")[2].strip()
    status = trace_status(turn.content)
    if status == "answered" and text:
        for answer in text.splitlines():
            yield RecordStatement(f"Asked and answered: {answer}", turn, 3.5, Kind.DECISION, True)
    elif status == "rejected" and len(text.split()) >= 4 and not is_question(text):
        yield RecordStatement(f"The user corrected the agent: {text}", turn, 4.0, Kind.LESSON, True)


def _find_recap(content: str) -> list[str]:
    """The sentences of a message from its summing-up to the end of that paragraph."""
    for block in parse_blocks(content):
        sentences = split_sentences(to_plain_text(block.text)) if block.type != "heading" else []
        for n, sentence in enumerate(sentences):
            sums_up = block.type == "text" and len(sentence) >= MIN_RECAP_CHARS
            if DECISION_LABEL.match(sentence) or (
                sums_up and discourse_markers.RECAP.search(sentence)
            ):
                return [s for s in sentences[n:] if not is_question(s)]
    return []


def _is_mostly_code(text: str) -> bool:
    if any(len(span) > MAX_CODE_SPAN for span in re.findall(r"`[^`]*`", text)):
        return True
    return len(re.sub(r"`[^`]*`", "", text)) * 4 < len(text)


def strip_line_places(text: str) -> str:
    """Without the numbers of lines, which do not hold after the next change."""
    return sentence_patterns.LINE_PLACE.sub(lambda m: m["extension"] or "", text).strip()


def strip_opening(sentence: str) -> str:
    text = _OPENING_WORDS.sub("", sentence).strip()
    return text if text == sentence.strip() else text[:1].upper() + text[1:]


def _join_leaning(statements: Iterable[str]) -> list[str]:
    """Joins a statement that leans on the one before to it, and a short choice to its reason.

    So is a short refusal. What follows "FYI: ..." is to be remembered with it.
    """
    joined: list[str] = []
    for statement in statements:
        is_after_choice = (
            joined
            and len(joined[-1].encode()) < MIN_STATEMENT_BYTES
            and (
                sentence_patterns.CHOICE.search(joined[-1])
                or discourse_markers.REFUSAL.match(joined[-1])
            )
        )
        is_noted = (
            joined
            and NOTE_OPENING.match(joined[-1])
            and len(joined[-1]) + len(statement) < MAX_STATEMENT
            and not is_question(statement)
        )
        leans = LEANING_START.match(strip_opening(statement)) or POINTING_ORDER.match(statement)
        if joined and (is_after_choice or is_noted or leans):
            joined[-1] = f"{joined[-1]} {statement}"
        else:
            joined.append(statement)
    return joined


def _rate_detail(text: str) -> float:
    return (
        min(len(discourse_markers.NORMATIVE.findall(text)), 4) * 0.4
        + min(len(extract_exact_terms(text)), 4) * 0.3
    )


def is_near_duplicate(first: AbstractSet[str], second: AbstractSet[str]) -> bool:
    shared, smaller = len(first & second), min(len(first), len(second))
    return smaller > 0 and (shared / len(first | second) >= 0.65 or shared / smaller >= 0.88)
