"""The result of a turn, and the result that each failure of its model or its limits leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any

import httpx2
import structlog
from pydantic import ValidationError
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    IncompleteToolCall,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)

from reverie_services.engine.turns.capabilities import RepeatedCalls, SpendExceeded, StopRequested

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


_USELESS = "the model's answer cannot be used"
_UNCHECKED = (TypeError, AttributeError, LookupError, ValueError)
"""Errors of a provider's client for JSON of an unexpected shape, which it does not check."""


def describe_model_error(error: Exception) -> str | None:
    """The reason of a failure, without quotations; None if it is unexpected."""
    match error:
        case ModelContextWindowExceededError():
            return "the conversation is too long for the model"
        case ModelHTTPError():
            return f"the model's endpoint answered {error.status_code}"
        case ModelAPIError() | httpx2.HTTPError():
            return "the model's endpoint does not answer, or broke off"
        case ContentFilterError():
            return "the model refused to answer"
        case UnexpectedModelBehavior() | AgentRunError() | ValidationError() | JSONDecodeError():
            return _USELESS
    return _USELESS if isinstance(error, _UNCHECKED) else None


def may_be_fault(error: Exception) -> bool:
    """Whether a failure may be a fault of the engine, so that its stack is logged."""
    is_checked = isinstance(error, ValidationError | JSONDecodeError)
    return isinstance(error, _UNCHECKED) and not is_checked


def falls_back(error: Exception) -> bool:
    """Whether another model may answer instead. A context that is too long is cut first."""
    return isinstance(error, ModelAPIError) and not isinstance(
        error, ModelContextWindowExceededError
    )
