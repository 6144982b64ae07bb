"""Classifies the failures of a model: a message without quotations, and whether to fall back."""

from __future__ import annotations

from json import JSONDecodeError

import httpx2
from pydantic import ValidationError
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)

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
