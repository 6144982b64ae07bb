"""Conversations in short notation, and what the rules extract from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.domain.text.turns import TurnText, condense_tool_output

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def build_turns(*said: tuple[str, str]) -> list[TurnText]:
    return [
        TurnText(
            UUID(int=n + 1),
            n,
            role,
            condense_tool_output("Bash", text) if role == "tool" else text,
            START + timedelta(minutes=n),
            "Bash" if role == "tool" else None,
        )
        for n, (role, text) in enumerate(said)
    ]


def memories(*said: tuple[str, str]) -> list[ExtractedMemory]:
    return extract_memories(segment_turns(build_turns(*said)))


def records(*said: tuple[str, str]) -> list[ExtractedMemory]:
    return [memory for memory in memories(*said) if memory.record]
