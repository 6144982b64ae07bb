"""Redacts the output of a model before it is stored, and removes characters that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, TextPart, ThinkingPart, ToolCallPart

from reverie.domain.redaction.redactor import Redactor


def make_storable(text: str) -> str:
    """The text without NUL characters and lone surrogates, which Postgres refuses."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def clean_text(text: str, redactor: Redactor) -> str:
    """The text as it can be stored, without credentials."""
    return redactor.redact(make_storable(text)).text


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
        given = part.args_as_json_str()
        arguments = clean_text(given, redactor)
        return part if arguments == given else replace(part, args=arguments)
    if not isinstance(part, TextPart | ThinkingPart):
        return part
    clean = clean_text(part.content, redactor)
    if clean == part.content:
        return part
    # A provider refuses a thought that differs from its signature.
    if isinstance(part, ThinkingPart):
        return replace(part, content=clean, signature=None)
    return replace(part, content=clean)
