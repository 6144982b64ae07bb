"""The result of a turn, and the result that each failure leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from pydantic_ai.exceptions import IncompleteToolCall, UsageLimitExceeded

from reverie_services.engine.turns.capabilities import RepeatedCalls, SpendExceeded, StopRequested
from reverie_services.engine.turns.model_errors import describe_model_error, may_be_fault

log = structlog.get_logger("reverie.engine")


@dataclass(frozen=True)
class TurnResult:
    """How a turn ended. `outcome`: the reason in a word; `waits`: calls that a person decides."""

    status: str
    outcome: str
    content: str = ""
    error: str | None = None
    waits: Mapping[str, Any] = field(default_factory=dict)


def end_by_failure(error: Exception, said: str) -> TurnResult:
    """The result of a turn that failed before its answer; the text so far is kept.

    Raises the error if it is unexpected.
    """
    match error:
        case StopRequested():
            return TurnResult("stopped", "stopped", said)
        case RepeatedCalls():
            reason = f"the same calls came again and again: {error}"
            return TurnResult("failed", "loop", said, reason)
        case SpendExceeded() | UsageLimitExceeded():
            return TurnResult("failed", "limit", said, f"a limit is reached: {error}")
        case IncompleteToolCall():
            return TurnResult("failed", "max_tokens", said, "a tool call met max_tokens")
    described = describe_model_error(error)
    if described is None:
        raise error
    if may_be_fault(error):
        log.error("turn_failed", error=type(error).__name__, exc_info=error)
    else:
        log.info("turn_failed", error=type(error).__name__)
    return TurnResult("failed", "interrupted" if said else "error", said, described)
