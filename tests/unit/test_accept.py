"""What is taken in, and what of it is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reverie.contracts.memories import Remember
from reverie.contracts.sessions import NewTurn
from reverie.domain.access import Principal, Role
from reverie.domain.errors import Invalid
from reverie.domain.fence import LEFT_OUT, TITLE, wrap
from reverie.domain.memory import NewMemory
from reverie.domain.slices import is_request
from reverie.domain.turns import TurnText
from reverie.ingest.accept import accept, accept_turn
from reverie.ingest.settings import ingest_settings
from reverie.runtime.settings import Settings

BLOCK = wrap(f"{TITLE}\n\n### Lessons\n- [global 00000001] Drain the queue")
SETTINGS = ingest_settings(Settings())
AT = datetime(2025, 6, 1, tzinfo=UTC)


def _who(agent: str | None = None) -> Principal:
    return Principal(1, "one", "key", Role.ADMIN, ("*",), ("*",), agent=agent)


def _kept(told_by: str | None = None, agent: str | None = None, **fields: Any) -> NewMemory:
    body = Remember.model_validate({"content": "Drain it", **fields})
    return accept(body, _who(agent), SETTINGS, told_by).memory


@pytest.mark.parametrize("key", ["file:src/a.ts", "session:1", "FILE:a", "Session:b"])
def test_a_key_of_the_systems_own_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match=r"^key: "):
        _kept(key=key)


@pytest.mark.parametrize("key", ["file", "files:a", "session-2", "my:file:a"])
def test_a_key_that_only_looks_like_one_is_taken(key: str) -> None:
    assert _kept(key=key).key == key


def test_a_reason_to_replace_needs_a_key_to_replace() -> None:
    with pytest.raises(Invalid, match=r"^supersede_reason: "):
        _kept(supersede_reason="newer")
    assert _kept(supersede_reason="newer", key="k").supersede_reason == "newer"


def test_a_memory_told_in_a_session_is_of_its_agent_where_the_key_has_none() -> None:
    assert _kept("claude").agent == "claude"
    assert _kept("claude", agent="codex").agent == "codex"
    assert _kept().agent is None


def test_recalled_memory_is_cut_out_of_what_is_remembered() -> None:
    kept = _kept(content=f"{BLOCK}\nWe deploy daily", summary=f"Daily\n{BLOCK}")
    assert (kept.content, kept.summary) == ("We deploy daily", "Daily")
    assert kept.content_hash == _kept(content="We deploy daily").content_hash
    assert _kept(summary=BLOCK).summary is None


def test_remembering_recalled_memory_alone_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^content: "):
        _kept(content=f"  \n{BLOCK}\n ")


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_recalled_memory_is_cut_out_of_a_turn(role: str) -> None:
    turn = NewTurn.model_validate({"role": role, "content": f"{BLOCK}\nWhy does it hang?"})
    stored, _ = accept_turn(0, turn, SETTINGS, None)
    assert "Why does it hang?" in stored.content
    assert "queue" not in stored.content + stored.words


def test_a_turn_of_recalled_memory_alone_leaves_a_note_that_nobody_takes_for_a_request() -> None:
    turn = NewTurn.model_validate({"role": "user", "content": BLOCK})
    stored, redactions = accept_turn(0, turn, SETTINGS, None)
    assert (stored.content, stored.words, redactions) == (LEFT_OUT, "", 0)
    assert not is_request(TurnText(stored.id, 0, "user", stored.content, AT))
