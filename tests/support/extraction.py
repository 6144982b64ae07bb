"""Conversations in short notation, and what the rules extract from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.domain.text.turns import TurnText, condense_tool_output

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
UPLOADS = (
    ("user", "Uploads of large videos fail at the proxy with a 413. Can you fix upload_limits?"),
    ("assistant", "I'll raise the limit to 2 GB for every route, so that nothing is refused."),
    (
        "user",
        "No, not for every route: only /videos may take 2 GB, everything else stays at 10 MB.",
    ),
    ("assistant", "Understood. Should a refused upload be retried in smaller parts?"),
    ("user", "No retries. The client must say at once that the file is too large."),
    (
        "assistant",
        "Recap of upload_limits: /videos takes at most 2 GB, every other route at most 10 MB, and "
        "a refused upload is answered at once with the limit, without a retry.",
    ),
)
"""A conversation that ends with one decision."""


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
