"""The statements of an agent that may enter a record: paragraphs, whole lists, summings-up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.key_statements import (
    CHANGE_VERBS,
    KeyStatement,
    extract_key_statements,
)
from reverie.domain.extraction.conversation.work_log import select_write_turns
from reverie.domain.extraction.records.record_statements import (
    MIN_SCORE,
    MIN_STATEMENT_BYTES,
    OWN_MEMORY_KINDS,
    RecordStatement,
    rate_detail,
    strip_line_places,
    strip_opening,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.proofreading import drop_label
from reverie.domain.extraction.wording.salience import (
    DECISION_LABEL,
    SentenceRating,
    is_question,
    rate_agent_statement,
)
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import (
    parse_blocks,
    split_sentences,
    to_plain_text,
    without_code,
)
from reverie.domain.text.turns import TurnText

MIN_RECAP_CHARS = 60
"""A shorter sentence announces a list; it does not sum up."""
RECAP_SCORE = 6.0
DISCOVERY_SCORE = 2.5
"""What an agent says that it has found out weighs as much as a cause."""
DONE_SCORE = 5.0
"""What the report on a piece of work says that it changed."""
MIN_EDGE_SCORE = -2.5
"""A sentence below, as on tests that passed, is left out where a paragraph begins or ends."""
MAX_CODE_SPAN = 70
"""A longer one is a line of code, not a name."""


def iter_agent_statements(
    turn: TurnText, exchange: Exchange, is_work: bool
) -> Iterator[RecordStatement]:
    """Yields the summing-up of a message, or its points that last.

    `is_work`: code that an agent reports of its work is in the files; in talk it is the answer.
    """
    reply = _Reply(turn, exchange, is_work)
    if exchange.is_review or exchange.is_refused:
        return
    recap = _find_recap(turn.content) if reply.is_final else []
    decided = [drop_label(strip_opening(s)) for s in recap]
    yield from (RecordStatement(s, turn, RECAP_SCORE, Kind.DECISION, True, True) for s in decided)
    points = extract_key_statements(turn.content, not is_work)
    if recap:
        points = list(_iter_points_beside(recap, points, reply.restates))
    for number, point in enumerate(points):
        is_apart = number > 0 or exchange.previous_subject != ""
        parts = _select_parts(point, exchange, is_apart)
        is_lasting = parts and is_lasting_point(point)
        if is_lasting and (statement := reply.build(replace(point, parts=parts), number == 0)):
            yield statement


def _iter_points_beside(
    recap: Sequence[str], points: Iterable[KeyStatement], restates: bool
) -> Iterator[KeyStatement]:
    """Yields what lasts beside a summing-up: causes, and the answer that a reply restates."""
    summary = " ".join(recap)
    for number, point in enumerate(points):
        if point.lead and point.lead in summary:
            continue
        is_restated = number == 0 and restates
        yield replace(
            point,
            parts=tuple(
                part
                for part in point.parts
                if part not in recap and (is_restated or _names_cause(part, point.lead))
            ),
        )


def _names_cause(part: str, lead: str) -> bool:
    text = f"{lead}: {part}" if lead else part
    return bool(
        sentence_patterns.ROOT_CAUSE.search(text) or sentence_patterns.CAUSE_LABEL.match(text)
    )


_LOOKED_UP_KINDS = frozenset({Kind.CONTEXT, Kind.SPEC, Kind.REFERENCE})
_IN_PLACE = re.compile(r"\b(?:is|are) (?:now )?(?:in place|verified|done)\b", re.I)
_FIRST_PERSON = re.compile(r"\b(?:I(?:['’](?:m|d|ve|ll))?|my|me)\b(?!/)")
_INQUIRY_VERBS = (
    "checked|compared|confirmed|inspected|measured|noted|profiled|reproduced|reviewed|searched"
    "|tested|traced|tried|verified"
)
# "What should I add?" asks, and "I added ..." or "I measured ..." reports: neither is chat.
_SELF = re.compile(
    r"(?<!\bdo )(?<!\bcan )(?<!\bshould )\b(?:I(?:['’](?:m|d|ve|ll))?|my|me"
    r"|My (?:\w+ )?(?:comment|review|mistake))\b"
    r"(?!/| (?:(?:\w+ly|also|first|had|have|just|now|then) )?"
    rf"(?:{CHANGE_VERBS}|{_INQUIRY_VERBS})\b)"
)


def is_speculative(part: str) -> bool:
    """Whether somebody supposes, and does not know."""
    prose = without_code(part)
    cues = (discourse_markers.THINKING_ALOUD, sentence_patterns.HEDGE, sentence_patterns.GUESS)
    return any(cue.search(prose) for cue in cues)


def is_tentative(part: str) -> bool:
    """Whether somebody supposes, or speaks of himself or in the tone of a chat."""
    prose = without_code(part)
    return is_speculative(part) or bool(
        discourse_markers.COLLOQUIAL.search(prose) or _FIRST_PERSON.search(prose)
    )


def is_anecdotal(part: str) -> bool:
    """Whether somebody tells, in the tone of a chat, what he did when he came upon the subject."""
    cues = (discourse_markers.COLLOQUIAL.search, discourse_markers.OBSERVATION.match)
    is_talk = any(cue(part) for cue in cues)
    return bool(is_talk) and not discourse_markers.FAILURE.search(part)


def is_conversational(part: str) -> bool:
    """Whether somebody speaks of what he thinks or does, or in the tone of a chat."""
    prose = without_code(part)
    return bool(discourse_markers.COLLOQUIAL.search(prose) or _SELF.search(prose))


@dataclass(frozen=True)
class _Reply:
    """A message of an agent in its exchange."""

    turn: TurnText
    exchange: Exchange
    is_work: bool

    @cached_property
    def is_research(self) -> bool:
        """Whether it reports what an agent looked up for work that it was told to do."""
        replies = self.exchange.replies
        return self.used_tools and not self.is_answer and not select_write_turns(replies)

    @cached_property
    def is_final(self) -> bool:
        return self.exchange.last_reply is self.turn

    @cached_property
    def is_answer(self) -> bool:
        return is_question(self.exchange.request)

    @cached_property
    def used_tools(self) -> bool:
        return any(reply.role == "tool" for reply in self.exchange.replies)

    @cached_property
    def restates(self) -> bool:
        """Whether it repeats what the user has just told on a question or a proposal."""
        restates = discourse_markers.ACKNOWLEDGEMENT.match(self.turn.content)
        return (
            self.is_final and bool(restates) and self.exchange.is_reply and not self.exchange.asks
        )

    def build(self, point: KeyStatement, is_first: bool) -> RecordStatement | None:
        """Builds the statement of a point; None if it does not last."""
        is_discovery = is_first and bool(discourse_markers.DISCOVERY.match(self.turn.content))
        if self.used_tools and not self.is_final and not is_discovery:
            # Before its last reply, an agent at work tells what it does; what it learns lasts.
            parts = point.parts if point.is_item else (point.text,)
            point = replace(point, parts=tuple(filter(_is_learned, parts)))
        text = strip_line_places(strip_opening(point.full_text))
        if not point.parts or len(text.encode()) < MIN_STATEMENT_BYTES:
            return None
        rating = rate_best_part(point.parts, point.lead)
        if is_discovery:
            rating = SentenceRating(Kind.BUG, max(rating.score, 0.0) + DISCOVERY_SCORE)
        if _is_mostly_code(text) and rating.kind is not Kind.SKILL:
            return None
        is_done = self._reports_change(point)
        score = self._score(text, rating, is_done)
        is_decided = self._is_decided(text)
        is_settled = is_decided or is_done
        if not is_settled and self._is_passing(point, rating.kind):
            return None
        is_advice = rating.kind is Kind.DECISION and self.is_answer and not is_settled
        kind = Kind.CONTEXT if is_advice else rating.kind
        is_own_memory = self._is_own_memory(point, kind, score)
        if is_own_memory and _is_remark(text, kind):
            return None
        if kind is Kind.TASK and not is_own_memory:
            kind = Kind.CONTEXT
        return RecordStatement(
            text, self.turn, score, kind, is_decided, is_own_memory=is_own_memory
        )

    def _reports_change(self, point: KeyStatement) -> bool:
        is_change = discourse_markers.COMPLETED_CHANGE.match(point.parts[0])
        is_report = is_change or sentence_patterns.DONE_HEADING.match(point.lead)
        return bool(is_report) and (self.used_tools or not self.is_answer)

    def _is_own_memory(self, point: KeyStatement, kind: Kind, score: float) -> bool:
        is_single = point.is_item or len(point.parts) == 1
        is_told = kind is Kind.SKILL and self.is_answer
        return kind in OWN_MEMORY_KINDS and is_single and score >= MIN_SCORE and not is_told

    def _is_passing(self, point: KeyStatement, kind: Kind) -> bool:
        """Whether it is a supposition of talk, or a list of what an agent looked up."""
        if self.restates:
            return False
        if not self.is_work:
            has_cause = sentence_patterns.CAUSE_LABEL.match(point.full_text)
            return not has_cause and not point.is_item and any(map(is_tentative, point.parts))
        return self.is_research and point.is_item and kind in _LOOKED_UP_KINDS

    def _score(self, text: str, rating: SentenceRating, is_done: bool) -> float:
        is_chosen = _is_chosen(text, self.exchange)
        score = rating.score + 0.5 * self.is_final + 0.5 * (self.is_final and self.is_answer)
        if self.restates or is_chosen or (self.is_final and self.exchange.is_confirmed):
            score = max(rating.score, 0.0) + 1.0 + is_chosen + rate_detail(text)
        if is_done and not sentence_patterns.TEST_NAME.search(text):
            score = max(score + 1.0, self.is_final * DONE_SCORE)
        return score - 2.5 * bool(discourse_markers.ASIDE.search(text))

    def _is_decided(self, text: str) -> bool:
        """Whether the user accepted or chose it; who thinks aloud decides nothing."""
        is_accepted_choice = text.startswith("Use ") and self.exchange.verdict is not None
        is_confirmed = self.exchange.is_confirmed and discourse_markers.PROPOSAL.search(text)
        return not discourse_markers.THINKING_ALOUD.search(text) and bool(
            self.restates or is_accepted_choice or is_confirmed or _is_chosen(text, self.exchange)
        )


def _select_parts(point: KeyStatement, exchange: Exchange, is_apart: bool) -> tuple[str, ...]:
    """The sentences or items that last: no question, guess, open proposal, or state of the work.

    `is_apart`: nothing is told before the paragraph that it could lean on.
    """
    parts = point.parts
    lasting = [_is_lasting_part(part, exchange) for part in parts]
    if point.is_item:
        return tuple(compress(parts, lasting))
    leans = [bool(discourse_markers.ANAPHORIC_START.match(strip_opening(part))) for part in parts]
    if not exchange.asks:
        lasting = _trim_edges(parts, lasting)
    _keep_antecedents(parts, lasting, leans, exchange)
    first = next((n for n, k in enumerate(lasting) if k and not (leans[n] and is_apart)), None)
    return () if first is None else tuple(compress(parts[first:], lasting[first:]))


def _trim_edges(parts: Sequence[str], lasting: list[bool]) -> list[bool]:
    """Leaves out what says nothing where a paragraph begins and ends."""
    scores = [rate_agent_statement(part).score for part in parts]
    worth = [n for n, k in enumerate(lasting) if k and scores[n] > MIN_EDGE_SCORE]
    return [k and worth[0] <= n <= worth[-1] for n, k in enumerate(lasting)] if worth else lasting


def _keep_antecedents(
    parts: Sequence[str], lasting: list[bool], leans: Sequence[bool], exchange: Exchange
) -> None:
    """Keeps the sentence that one leans on; leaves out what leans on a place in a file."""
    for n in range(len(parts) - 1, 0, -1):
        before = parts[n - 1]
        is_told = not (is_question(before) or _is_open(before, exchange) or _places(before))
        lasting[n - 1] |= lasting[n] and leans[n] and is_told
    for n in range(1, len(parts)):
        lasting[n] &= not (leans[n] and _places(parts[n - 1]))


def _is_lasting_part(part: str, exchange: Exchange) -> bool:
    part = without_code(part)
    return not (
        _is_open(part, exchange)
        or is_question(part)
        or sentence_patterns.GUESS.match(part)
        or sentence_patterns.TRANSIENT.search(part)
        or sentence_patterns.ADDRESSED.search(part)
        or _places(part)
    )


def _places(part: str) -> bool:
    """Whether it tells of a place in a file, or in a list that is not told with it."""
    return sentence_patterns.LINE_REFERENCE.search(strip_line_places(part)) is not None


def _is_open(part: str, exchange: Exchange) -> bool:
    """Whether a text proposes what the user has neither confirmed nor chosen."""
    is_proposal = discourse_markers.PROPOSAL.search(part)
    return bool(is_proposal) and not (exchange.is_confirmed or _is_chosen(part, exchange))


def _is_chosen(text: str, exchange: Exchange) -> bool:
    """Whether the user chose what a text proposes."""
    return bool(
        discourse_markers.PROPOSAL.search(text) and exchange.later_choices & content_words(text)
    )


def rate_best_part(parts: Iterable[str], lead: str) -> SentenceRating:
    """The rating of the best part; a part that is of a kind names it."""
    ratings = [rate_agent_statement(part, lead) for part in parts]
    best = max(ratings, key=lambda r: r.score)
    named = max(ratings, key=lambda r: (r.kind is not Kind.CONTEXT and r.score > 0, r.score))
    return replace(best, kind=named.kind)


def _is_learned(text: str) -> bool:
    """Whether a sentence tells a cause or a pitfall."""
    return bool(sentence_patterns.ROOT_CAUSE.search(text) or sentence_patterns.PITFALL.search(text))


def is_lasting_point(point: KeyStatement) -> bool:
    """Whether a point of a report is no list of options or plans, and its lead says what of."""
    return not (
        sentence_patterns.OPTIONS.search(point.full_text)
        or discourse_markers.ACKNOWLEDGEMENT.match(point.lead)
        or sentence_patterns.ADDRESSED.search(point.lead)
        or (point.is_item and sentence_patterns.PLANNED.search(point.lead))
        or (
            point.is_item
            and discourse_markers.ANAPHORIC_START.match(point.lead.rpartition(", ")[2])
        )
    )


def _find_recap(content: str) -> list[str]:
    """The sentences of a message from its summing-up to the end of that paragraph."""
    for block in parse_blocks(content):
        sentences = split_sentences(to_plain_text(block.text)) if block.type != "heading" else []
        for n, sentence in enumerate(sentences):
            sums_up = block.type == "text" and len(sentence) >= MIN_RECAP_CHARS
            if DECISION_LABEL.match(sentence) or (
                sums_up and discourse_markers.RECAP.search(sentence)
            ):
                states = (sentence_patterns.TRANSIENT, _IN_PLACE)
                return [
                    s
                    for s in sentences[n:]
                    if not (is_question(s) or any(cue.search(s) for cue in states))
                ]
    return []


def _is_remark(text: str, kind: Kind) -> bool:
    """Whether it leans on something, or tells of what somebody saw or always does."""
    return bool(
        discourse_markers.ANAPHORIC_START.match(text)
        or discourse_markers.OBSERVATION.search(text)
        or (kind is Kind.TASK and re.search(r"\b(?:always|never)\b", text, re.I))
    )


def _is_mostly_code(text: str) -> bool:
    text = without_code(text)
    if any(len(span) > MAX_CODE_SPAN for span in re.findall(r"`[^`]*`", text)):
        return True
    return len(re.sub(r"`[^`]*`", "", text)) * 4 < len(text)
