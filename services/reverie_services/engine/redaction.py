"""Redacts the messages of a model before they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, TextPart, ThinkingPart, ToolCallPart

from reverie.domain.redaction.redactor import Redactor


def redact_messages(messages: Sequence[ModelMessage], redactor: Redactor) -> list[ModelMessage]:
    """The messages without credentials that the model made up or repeated.

    Results of tools and texts of users are redacted before the model sees them.
    """
    clean: list[ModelMessage] = []
    for message in messages:
        parts: Any = [_redact_part(part, redactor) for part in message.parts]
        clean.append(replace(message, parts=parts))
    return clean


def _redact_part(part: Any, redactor: Redactor) -> Any:
    if isinstance(part, ToolCallPart):
        arguments = redactor.redact(part.args_as_json_str())
        return replace(part, args=arguments.text) if arguments.count else part
    if not isinstance(part, TextPart | ThinkingPart):
        return part
    clean = redactor.redact(part.content)
    if not clean.count:
        return part
    # A provider refuses a thought that was changed under its signature.
    if isinstance(part, ThinkingPart):
        return replace(part, content=clean.text, signature=None)
    return replace(part, content=clean.text)
