"""`reverie import mem0` and `reverie import hindsight` through a running gateway."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reverie.client import AsyncReverie
from tests.support.commands import command
from tests.support.stack import Stack

OWN_ID = "0191d6a0-0000-7000-8000-00000000000a"


async def _import(stack: Stack, home: Path, *words: str) -> tuple[int, dict[str, Any]]:
    port = stack.url.rsplit(":", 1)[1]
    env = {"REVERIE_API_KEY": stack.key, "REVERIE_RECALL_PORT": port}
    code, said, told = await command(env, "import", *words, "--json", "--home", str(home))
    return code, json.loads(said) if said else {"told": told}


async def _stored(stack: Stack) -> dict[str, Any]:
    async with AsyncReverie(stack.url, stack.key) as client:
        found = client.list_memories(status=["active", "archived"])
        return {one.content: one async for one in found}


def _archive(path: Path, entries: dict[str, Any]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in entries.items():
            archive.writestr(name, json.dumps(value))


async def test_memories_of_mem0_keep_users_ids_and_times(stack: Stack, tmp_path: Path) -> None:
    tea = {
        "id": OWN_ID,
        "memory": "Ada drinks green tea.",
        "user_id": "ada",
        "agent_id": "butler",
        "hash": "5f2c",
        "metadata": {"room": "kitchen", "fact": "a name that is taken"},
        "categories": ["drinks"],
        "created_at": "2025-03-01T10:00:00.250000-07:00",
        "updated_at": "2025-04-01T10:00:00Z",
        "expiration_date": "2099-12-31",
    }
    bus = {"id": "bus-7", "memory": "The bus leaves at nine.", "run_id": "trip", "metadata": None}
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"results": [tea, bus]}))
    tried = await _import(stack, tmp_path, "mem0", str(file), "--dry-run")
    counts = [await _import(stack, tmp_path, "mem0", str(file)) for _ in range(2)]
    assert (tried[0], tried[1]["created"], tried[1]["dry_run"]) == (0, 2, True)
    assert [(code, made["created"], made["skipped"]) for code, made in counts] == [
        (0, 2, 0),
        (0, 0, 2),
    ]
    stored = await _stored(stack)
    ada, trip = stored["Ada drinks green tea."], stored["The bus leaves at nine."]
    assert (str(ada.id), ada.scope, trip.scope) == (OWN_ID, "user/ada", "topic/trip")
    assert sorted(ada.tags) == ["agent_id:butler", "drinks", "user_id:ada"]
    assert ada.metadata == {
        "room": "kitchen",
        "mem0_fact": "a name that is taken",
        "hash": "5f2c",
        "mem0_id": OWN_ID,
    }
    assert ada.created_at == datetime(2025, 3, 1, 17, 0, 0, 250_000, tzinfo=UTC)
    assert ada.updated_at == datetime(2025, 4, 1, 10, tzinfo=UTC)
    assert ada.valid_to == datetime(2100, 1, 1, tzinfo=UTC)
    assert trip.metadata["mem0_id"] == "bus-7"


async def test_a_bank_of_hindsight_is_a_project(stack: Stack, tmp_path: Path) -> None:
    document = {
        "id": "log/1",
        "original_text": "Day one.",
        "tags": ["ship"],
        "created_at": "2025-01-02T00:00:00Z",
        "facts": [
            {
                "source_id": OWN_ID,
                "text": "The keel was laid.",
                "fact_type": "world",
                "tags": ["yard"],
                "metadata": {"page": "3"},
                "entities": ["keel"],
                "mentioned_at": "2025-01-01T08:00:00+00:00",
                "occurred_start": "2024-12-30T00:00:00Z",
            },
            {"text": "The mast came later.", "fact_type": "experience"},
        ],
    }
    seen = {"text": "Ships are built bottom up.", "proof_count": 2, "event_date": "2025-02-01"}
    file = tmp_path / "bank.zip"
    entries = {"manifest.json": {"schema_version": 1, "source_bank_id": "yard"}}
    _archive(file, entries | {"documents/000000.json": document, "observations.json": [seen]})
    counts = [await _import(stack, tmp_path, "hindsight", str(file)) for _ in range(2)]
    assert [(made["created"], made["skipped"]) for _, made in counts] == [(3, 0), (0, 3)]
    stored = await _stored(stack)
    keel, mast = stored["The keel was laid."], stored["The mast came later."]
    assert {one.scope for one in stored.values()} == {"project/yard"}
    assert (str(keel.id), sorted(keel.tags)) == (OWN_ID, ["ship", "yard"])
    assert keel.created_at == datetime(2025, 1, 1, 8, tzinfo=UTC)
    assert mast.created_at == datetime(2025, 1, 2, tzinfo=UTC)
    assert keel.metadata == {
        "page": "3",
        "fact_type": "world",
        "document_id": "log/1",
        "entities": ["keel"],
        "occurred_start": "2024-12-30T00:00:00Z",
        "hindsight_id": OWN_ID,
    }
    observed = stored["Ships are built bottom up."]
    assert observed.created_at == datetime(2025, 2, 1, tzinfo=UTC)
    assert (observed.metadata["fact_type"], observed.metadata["proof_count"]) == ("observation", 2)


async def test_a_list_of_a_bank_needs_a_scope(stack: Stack, tmp_path: Path) -> None:
    items = [
        {"id": "1", "text": "The gate is green.", "date": "2025-01-01T00:00:00Z", "state": "valid"},
        {"id": "2", "text": "The gate is red.", "date": "", "state": "invalidated"},
    ]
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"items": items, "total": 2, "limit": 100, "offset": 0}))
    code, refused = await _import(stack, tmp_path, "hindsight", str(file))
    assert (code, refused["told"].split()[0]) == (2, "--scope:")
    code, _ = await _import(stack, tmp_path, "hindsight", str(file), "--scope", "project/gates")
    stored = await _stored(stack)
    assert code == 0
    assert {one.content: (one.scope, one.status) for one in stored.values()} == {
        "The gate is green.": ("project/gates", "active"),
        "The gate is red.": ("project/gates", "archived"),
    }


@pytest.mark.parametrize("system", ["mem0", "hindsight"])
@pytest.mark.parametrize(
    "text", ["", "[1]", '{"results": 1}', '{"items": [{}]}', '[{"id": "1"}]', "\x00\xff"]
)
async def test_what_is_no_export_is_refused(tmp_path: Path, system: str, text: str) -> None:
    file = tmp_path / "some.json"
    file.write_text(text)
    words = ("import", system, str(file), "--scope", "user/ada", "--home", str(tmp_path / "home"))
    code, _, told = await command({}, *words)
    assert (code, "is no such export" in " ".join(told.split())) == (2, True)
