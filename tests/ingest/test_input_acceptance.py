"""Validation and cleaning of remembered texts and turns before they are stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from reverie.contracts.memories.memories import RememberRequest
from reverie.contracts.sessions import NewTurnBody
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.memory import NewMemory
from reverie.domain.extraction.conversation.topic_segmentation import is_request
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR
from reverie.domain.text.memory_fence import MEMORY_TITLE, OMITTED_PLACEHOLDER, wrap_in_fence
from reverie.domain.text.turns import TurnText
from reverie.runtime.settings.settings import Settings
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.ingest.write.prepared_records import prepare_memory, prepare_turn
from tests.support.store_setup import principal

BLOCK = wrap_in_fence(f"{MEMORY_TITLE}\n\n### Lessons\n- [global 00000001] Drain the queue")
SETTINGS = Settings()
AT = datetime(2025, 6, 1, tzinfo=UTC)


def _prepare(
    session_agent: str | None = None, agent: str | None = None, **fields: Any
) -> NewMemory:
    body = RememberRequest.model_validate({"content": "Drain it", **fields})
    nothing = None, None, None, None
    session = session_agent and SessionRecord(
        UUID(int=1), session_agent, "project/p", *nothing, 0, AT, None, None
    )
    who = principal(1, "one", agent=agent)
    return prepare_memory(body, who, CREDENTIAL_REDACTOR, SETTINGS, session or None).memory


@pytest.mark.parametrize("key", ["file", "files:a", "session-2", "my:file:a"])
def test_a_key_that_resembles_a_reserved_one_is_accepted(key: str) -> None:
    assert _prepare(key=key).key == key


def test_a_reason_to_supersede_requires_a_key() -> None:
    with pytest.raises(InvalidInput, match=r"^supersede_reason: "):
        _prepare(supersede_reason="newer")
    assert _prepare(supersede_reason="newer", key="k").supersede_reason == "newer"


def test_a_memory_written_in_a_session_belongs_to_its_agent_if_the_key_has_none() -> None:
    assert _prepare("claude").agent == "claude"
    assert _prepare("claude", agent="codex").agent == "codex"
    assert _prepare().agent is None


def test_recalled_memory_is_stripped_from_a_new_memory() -> None:
    memory = _prepare(content=f"{BLOCK}\nWe deploy daily", summary=f"Daily\n{BLOCK}")
    assert (memory.content, memory.summary) == ("We deploy daily", "Daily")
    assert memory.content_hash == _prepare(content="We deploy daily").content_hash
    assert _prepare(summary=BLOCK).summary is None


def test_remembering_only_recalled_memory_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^content: "):
        _prepare(content=f"  \n{BLOCK}\n ")


def test_recalled_memory_is_stripped_from_a_turn() -> None:
    for role in ("user", "assistant", "tool"):
        turn = NewTurnBody.model_validate({"role": role, "content": f"{BLOCK}\nWhy does it hang?"})
        stored, _ = prepare_turn(0, turn, CREDENTIAL_REDACTOR, SETTINGS, None)
        assert "Why does it hang?" in stored.content
        assert "queue" not in stored.content + stored.words
    turn = NewTurnBody.model_validate({"role": "user", "content": BLOCK})
    stored, redactions = prepare_turn(0, turn, CREDENTIAL_REDACTOR, SETTINGS, None)
    assert (stored.content, stored.words, redactions) == (OMITTED_PLACEHOLDER, "", 0)
    assert not is_request(TurnText(stored.id, 0, "user", stored.content, AT))
