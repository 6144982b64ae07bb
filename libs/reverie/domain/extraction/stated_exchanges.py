"""The exchanges of a topic with the statements that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reverie.domain.extraction.agent_statements import iter_agent_statements
from reverie.domain.extraction.exchanges import Exchange, is_slash_command, split_exchanges
from reverie.domain.extraction.record_statements import RecordStatement
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.extraction.user_statements import iter_user_answers, iter_user_statements

MIN_OUTCOME_SCORE, OUTCOME_SCORE = -4.0, 2.5
"""The best point in the report on a request that was worked on weighs the latter at least, unless
it is below the former: then it points to a place, and says nothing."""


@dataclass(frozen=True)
class StatedExchange:
    """An exchange with the statements that it makes."""

    exchange: Exchange
    statements: tuple[RecordStatement, ...]


def read_exchanges(segment: TopicSegment) -> list[StatedExchange]:
    """Reads the statements of each exchange of a topic."""
    is_work = any(turn.role == "tool" for turn in segment.turns)
    return [_read_exchange(exchange, is_work) for exchange in split_exchanges(segment)]


def _read_exchange(exchange: Exchange, is_work: bool) -> StatedExchange:
    """Reads an exchange; the best point of the report on a request worked on has weight."""
    statements = list(_iter_statements(exchange, is_work))
    outcome = [n for n, s in enumerate(statements) if s.turn is exchange.last_reply]
    is_worked_on = any(turn.role == "tool" for turn in exchange.replies)
    if exchange.request and is_worked_on and outcome:
        best = max(outcome, key=lambda n: statements[n].score)
        if MIN_OUTCOME_SCORE <= statements[best].score < OUTCOME_SCORE:
            statements[best] = replace(statements[best], score=OUTCOME_SCORE)
    return StatedExchange(exchange, tuple(statements))


def _iter_statements(exchange: Exchange, is_work: bool) -> Iterator[RecordStatement]:
    if exchange.opening and not is_slash_command(exchange.request):
        yield from iter_user_statements(exchange)
    for turn in exchange.replies:
        if turn.role == "assistant":
            yield from iter_agent_statements(turn, exchange, is_work)
        elif turn.role == "tool":
            yield from iter_user_answers(turn)
