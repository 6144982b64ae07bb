"""Decision records: what one matter of a conversation settled, as one memory.

A record gives the problem in the words in which it was reported, what was decided (a summing-up
before all else), what was found out, and which proposals were refused and why. Measured on
conversations with a known decision: benchmarks/quality/decisions.py.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction import discourse_markers, sentence_patterns
from reverie.domain.extraction.exchanges import (
    REMARK,
    Exchange,
    is_slash_command,
)
from reverie.domain.extraction.record_statements import (
    LEAD,
    LEANING_START,
    MIN_SCORE,
    RecordStatement,
    RefusedProposal,
    StatedExchange,
    content_words,
    iter_refused,
    strip_line_places,
    strip_opening,
)
from reverie.domain.extraction.salience import is_question
from reverie.domain.extraction.work_log import select_write_turns
from reverie.domain.text.markdown import shorten, split_sentences
from reverie.domain.text.turns import TurnText

MIN_RECORD_CHARS, MAX_RECORD_CHARS, RECORD_SHARE = 800, 1_400, 0.4
"""Limits of a record in characters (about 350 tokens at most), and its share of what was said."""
MAX_PROBLEM_CHARS, MAX_HEADLINE_CHARS = 360, 220
MAX_REFUSED = 3
MIN_MATTER_CHARS = 2_500
"""Characters of talk after which another request of the same topic begins its own record."""
MAX_WEIGHED = 100
MIN_NOVEL_SHARE = 0.4
"""Share of a statement's words that no chosen statement has."""

_POINTING = re.compile(r"\b(?:this|that|these|those|them|it)\b", re.I)
_POINT_NUMBER = re.compile(r":\s+\d{1,2}[.)]\s+(?=\S)")
_NUMBERING = re.compile(r"^(?:[-*•#]+\s+|\d{1,2}[.)]\s+)+")
_QUOTING_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|now|and|then|next|also)[,.]? )*"
    r"(?:(?:let'?s |please |can you |could you )*(?:address|look at|fix|do|handle|take) "
    r"(?:(?:(?:this|these|that|the)(?: \w+){0,2}(?: \d+)?)?\s*(?:[:：]|-\s)\s*|(?=\d+[.)] ))"
    r"|(?:another|one more|next) (?:review )?comment\s*[:：]\s*"
    r"|implement (?:the following|this) plan\s*[:：.]\s*)"
    r"(?:#*\s*plan\s*[:：]\s*)?|^(?:minor|nit|issue)\s*(?:[:：]|-\s)\s*",
    re.I,
)
"""What comes before a pasted comment or plan."""
_EMPTY_REQUEST = re.compile(
    r"^(?:(?:yes|ok(?:ay)?|please|now|then|go ahead and|let'?s)[,.]? )*"
    r"(?:implement|do|fix|apply|commit|push|merge|try|run|continue|proceed|go)(?: \w+){0,3}[.!]*$"
    r"|^(?:this|that|it) (?:isn'?t|is not|is|looks?) \w+[.!]*$"
    r"|^(?:changes (?:not staged|to be committed)|untracked files|modified:|no changes added)\b"
    r"|^this is the output\b|^(?:ah+|oh|hm+|wow|whoops)\b[^?]*!$|^on branch \S+\.?$|^\[request",
    re.I,
)


@dataclass(frozen=True)
class DecisionRecord:
    """What one matter of a conversation settled; `exchanges` are those it was made of."""

    problem: str
    statements: tuple[RecordStatement, ...]
    refused: tuple[RefusedProposal, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def content(self) -> str:
        """The record as text: a line each for the problem, what was decided, found and refused."""
        if self.is_single:
            text = self.statements[0].text
            is_leaning = text in self.problem and _POINTING.search(text)
            return self.problem if is_leaning else text
        decided = _join_sentences(
            self._drop_told_sentences(s.text) for s in self.statements if s.is_decided
        )
        found = _join_sentences(s.text for s in self.statements if s.is_found)
        done = _join_sentences(s.text for s in self.statements if s.is_done)
        lines = [
            self.problem,
            decided and f"Decided: {decided}",
            found and f"Found: {found}",
            done and f"Done: {done}",
        ]
        lines += [
            f"Refused: {' — '.join(filter(None, (r.proposal, r.reason)))}" for r in self.refused
        ]
        return "\n".join(filter(None, lines))

    def _drop_told_sentences(self, text: str) -> str:
        untold = [s for s in split_sentences(text) if s not in self.problem]
        return " ".join(untold)

    @property
    def is_single(self) -> bool:
        """Whether it is one statement of the user, which needs no heading."""
        first = self.statements[0]
        return len(self.statements) == 1 and not self.refused and first.text[:60] in self.problem

    @property
    def kind(self) -> Kind:
        """The kind of its weightiest part."""
        if self.is_single:
            return self.statements[0].kind
        weights: Counter[Kind] = Counter()
        for statement in self.statements:
            kind = Kind.DECISION if statement.is_decided else statement.kind
            weights[kind] += max(statement.score, 0.1)  # type: ignore[assignment]
        return max(weights, key=lambda kind: weights[kind])

    @property
    def headline(self) -> str:
        """One line: the problem, and the statement that weighs most."""
        whole = [s for s in self.statements if len(s.text) <= MAX_HEADLINE_CHARS]
        best = max(whole or self.statements, key=lambda s: s.score).text
        problem = next(iter(split_sentences(self.problem)), "")
        if self.is_single or not problem:
            return shorten(best, MAX_HEADLINE_CHARS)
        return f"{shorten(problem, MAX_HEADLINE_CHARS)} {shorten(best, MAX_HEADLINE_CHARS)}"

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
        cited += [r.turn for r in self.refused]
        unique = {turn.id: turn for turn in cited if turn}
        return sorted(unique.values(), key=lambda turn: turn.ordinal)


def build_decision_records(stated: Sequence[StatedExchange]) -> Iterator[DecisionRecord]:
    """Builds the records of a topic, one per matter, in order; none where nothing was settled."""
    is_work = any(turn.role == "tool" for item in stated for turn in item.exchange.replies)
    records = (build_matter_record(matter, is_work) for matter in split_matters(stated))
    return filter(None, records)


def build_matter_record(matter: Sequence[StatedExchange], is_work: bool) -> DecisionRecord | None:
    """Builds the record of one matter; None if nothing was settled.

    `is_work`: whether the agent used tools in the topic, and did not only talk about it.
    """
    exchanges = [item.exchange for item in matter]
    statements = [
        statement
        for item in matter
        if not (is_work and _is_general_question(item.exchange))
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
    chosen = _select_statements(statements, problem, refused) or _select_statements(
        statements, "", refused
    )
    is_fragment = len(chosen) == 1 and LEANING_START.match(chosen[0].text)
    if not chosen or (is_fragment and (not problem or LEANING_START.match(problem))):
        return None
    return DecisionRecord(
        problem, tuple(chosen), _drop_covered_reasons(refused, chosen), tuple(exchanges)
    )


def _drop_reviews(stated: Iterable[StatedExchange]) -> Iterator[StatedExchange]:
    """Leaves out the reviews of changes, and the context that a command for one brings."""
    is_review = is_context = False
    for item in stated:
        # A command is a message without a reply, and its context is the next one.
        is_review = item.exchange.is_review or (is_review and is_context)
        is_context = not item.exchange.replies
        if not is_review:
            yield item


def split_matters(stated: Iterable[StatedExchange]) -> Iterator[list[StatedExchange]]:
    """Splits a topic into matters, without the reviews of somebody's changes."""
    matter: list[StatedExchange] = []
    size = 0
    for item in _drop_reviews(stated):
        if matter and _is_new_request(item.exchange) and _is_closed(matter, size, item.exchange):
            yield matter
            matter, size = [], 0
        matter.append(item)
        size += sum(len(t.content) for t in item.exchange.replies if t.role == "assistant")
    if matter:
        yield matter


def _is_new_request(exchange: Exchange) -> bool:
    opening = exchange.opening.content if exchange.opening else ""
    return (
        len(exchange.request.split()) >= 6
        and not discourse_markers.REFUSAL.search(opening[:200])
        and not discourse_markers.CONFIRMATION.match(opening)
        and bool(_list_informative_sentences(exchange.request))
    )


def _is_closed(matter: Sequence[StatedExchange], size: int, following: Exchange) -> bool:
    """Whether a matter of `size` characters of messages is over before another request.

    Talk is over once it is long; work, once its report does not wait for an answer.
    """
    if matter[-1].exchange.last_reply is None:
        return False
    replies = [turn for item in matter for turn in item.exchange.replies]
    is_work = any(turn.role == "tool" for turn in replies)
    is_done = not following.is_reply or bool(select_write_turns(replies))
    return size >= MIN_MATTER_CHARS or (is_work and is_done)


def _only_lasting(item: StatedExchange) -> bool:
    """Whether a message only states rules and preferences, which open no matter."""
    exchange = item.exchange
    statements = [s for s in item.statements if s.turn is exchange.opening]
    if not statements or not all(s.stands_alone for s in statements):
        return False
    stated = " ".join(s.text for s in statements)
    return all(sentence in stated for sentence in _list_informative_sentences(exchange.request))


def _is_general_question(exchange: Exchange) -> bool:
    """Whether the agent answered a question without a look at the project."""
    return is_question(exchange.request) and all(t.role == "assistant" for t in exchange.replies)


def _find_opening(exchanges: Sequence[Exchange]) -> TurnText | None:
    return next((e.opening for e in exchanges if e.request), exchanges[0].opening)


def find_problem(exchanges: Sequence[Exchange], limit: int) -> str:
    """The first two sentences of the first request that names a matter; "" if none does.

    Assents, remarks on a result, and states of a branch name none. A guess of the user does not
    stand where something else was told. Of a slash command its title is taken.
    """
    command = ""
    for exchange in exchanges:
        request = exchange.request
        if is_slash_command(request):
            arguments = request.partition(" ")[2]
            command = command or request
            request = arguments if len(arguments.split()) >= 3 else ""
        sentences = _list_informative_sentences(request)
        if sentences:
            reported = [s for s in sentences if not sentence_patterns.GUESS.match(s)] or sentences
            both = " ".join(reported[:2])
            return both if len(both) <= limit else shorten(reported[0], limit)
    return shorten(command, limit)


def _list_informative_sentences(request: str) -> list[str]:
    bare = _QUOTING_OPENING.sub("", request)
    sentences = [
        strip_line_places(strip_opening(_NUMBERING.sub("", _POINT_NUMBER.sub(": ", s))))
        for s in split_sentences(bare)
    ]
    return [
        s[:1].upper() + s[1:] if re.match(r"[a-z]+\b(?![._-]\w)", s) else s
        for s in sentences
        if (len(s) > 12 or not s.isascii())
        and not discourse_markers.PLEASANTRY.match(s)
        and not discourse_markers.ASSENT.match(s)
        and not REMARK.match(s)
        and not sentence_patterns.TRANSIENT.search(s)
        and not sentence_patterns.LINE_REFERENCE.match(s)
        and not discourse_markers.SUGGESTION.match(s)
        and not discourse_markers.ASIDE_OPENING.match(s)
        and not _EMPTY_REQUEST.match(s)
    ]


def _select_statements(
    statements: Sequence[RecordStatement], problem: str, refused: Sequence[RefusedProposal]
) -> list[RecordStatement]:
    """Selects the last summing-up, then the weightiest statements that add something and fit."""
    reserved = sum(len(r.proposal) + 12 for r in refused[-MAX_REFUSED:])
    spoken = sum({s.turn.id: len(s.turn.content) for s in statements}.values())
    limit = min(max(int(RECORD_SHARE * spoken), MIN_RECORD_CHARS), MAX_RECORD_CHARS)
    remaining = limit - len(problem) - reserved - 20
    recap_turn = next((s.turn for s in reversed(statements) if s.is_recap), None)
    chosen: list[RecordStatement] = []
    told = content_words(problem)
    covered: frozenset[str] = frozenset()
    covered_terms: frozenset[str] = frozenset()
    counts = Counter(word for s in statements for word in s.words)
    central = frozenset(word for word, count in counts.items() if count > 1)

    def measure_novelty(s: RecordStatement) -> float:
        # What was done about a problem is told in the words of the problem.
        known = covered if s.is_done else covered | told
        return len(s.words - known) / max(1, len(s.words))

    def weigh(s: RecordStatement) -> float:
        if s.is_recap:
            return s.score if s.turn is recap_turn else 0.0
        novelty = measure_novelty(s)
        words = s.words or frozenset(("",))
        score = s.score + 1.5 * len(words & central) / len(words)
        score += 0.25 * min(len(s.exact_terms - covered_terms), 6)
        return score * (0.3 + 0.7 * novelty)

    pool = heapq.nlargest(MAX_WEIGHED, statements, key=weigh)
    while pool:
        best = max(pool, key=weigh)
        pool.remove(best)
        if weigh(best) < MIN_SCORE:
            break
        is_novel = best.is_recap or measure_novelty(best) >= MIN_NOVEL_SHARE
        if is_novel and len(best.text) < remaining:
            chosen.append(best)
            remaining -= len(best.text) + 1
            covered |= best.words
            covered_terms |= best.exact_terms
    positions = {id(s): n for n, s in enumerate(statements)}
    return sorted(chosen, key=lambda s: (not s.is_recap, positions[id(s)]))


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


def _join_sentences(texts: Iterable[str]) -> str:
    """Joins statements; of neighbours with the same heading, only the first keeps it."""
    joined: list[str] = []
    lead = ""
    for text in filter(None, texts):
        match = LEAD.match(text)
        if match and match[0] == lead:
            joined[-1] = f"{joined[-1].rstrip('.;')}; {text[len(lead) :]}"
        else:
            joined.append(text)
        lead = match[0] if match else ""
    texts = joined
    return " ".join(t if t[-1] in ".!?:;。！？；" else f"{t}." for t in texts)
