"""What the failures of a model mean: in words that quote nothing, and for the next model."""

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
"""What JSON of another shape than that of the provider leads to: its client does not check it."""


def describe_model_error(error: Exception) -> str | None:
    """The reason of a failure in words that quote nothing; None for one that is not expected."""
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
    """Whether a failure may be a fault of the engine, which only its stack can tell."""
    is_checked = isinstance(error, ValidationError | JSONDecodeError)
    return isinstance(error, _UNCHECKED) and not is_checked


def falls_back(error: Exception) -> bool:
    """Whether another model may answer instead: a context that is too long is cut first."""
    return isinstance(error, ModelAPIError) and not isinstance(
        error, ModelContextWindowExceededError
    )
