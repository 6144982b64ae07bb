"""Compares the storage backend with CrewAI's own on LanceDB, and tests its search by text."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord

from reverie.adapters.crewai import ReverieStorage, carry_text
from reverie.client import Reverie

START = datetime(2026, 1, 1, 12, 0, 0, 250)
PATHS = ["/", "/shop", "/shop/till", "/shop/till/tax", "/post", "/" + "long-name-of-a-place/" * 5]
NAMES = ["money", "people", "two words"]
STEPS = 15


def build_record(pick: random.Random, number: int) -> MemoryRecord:
    """A record with something in every field; its vector is no text, as nothing searches it."""
    return MemoryRecord(
        id=f"record-{number}",
        content=f"Statement {number} of the ledger.",
        scope=pick.choice(PATHS).rstrip("/") or "/",
        categories=pick.sample(NAMES, pick.randint(0, 2)),
        metadata={"page": pick.randint(1, 3), "nested": {"of": ["it"]}},
        importance=pick.choice([0.0, 0.5, 1.0]),
        created_at=START + timedelta(hours=number),
        last_accessed=START + timedelta(hours=number, minutes=1),
        source=pick.choice([None, "ada"]),
        private=pick.random() < 0.3,
        embedding=[0.0, 1.0],
    )


def change(pick: random.Random, records: list[MemoryRecord]) -> tuple[str, dict[str, Any]]:
    """A call that writes, and its arguments."""
    known = pick.choice(records)
    match pick.randint(0, 7):
        case 0:
            return "delete", {"record_ids": [known.id, "none"]}
        case 1:
            return "delete", {"categories": pick.sample(NAMES, 1), "metadata_filter": {"page": 1}}
        case 2:
            return "delete", {"older_than": known.created_at}
        case 3:
            return "reset", {"scope_prefix": pick.choice(PATHS[2:])}
        case 4:
            edited = known.model_copy(
                update={"content": f"{known.content} Edited.", "private": True}
            )
            return "update", {"record": edited}
        case _:
            made = [build_record(pick, len(records) + n) for n in range(pick.randint(1, 4))]
            records += made
            return "save", {"records": made}


def look(storage: StorageBackend) -> list[Any]:
    """All that a backend lists; vectors are no part of a dump."""
    known = storage.get_record("record-1")
    page = storage.list_records(limit=3, offset=2)
    seen: list[Any] = [known and known.model_dump(), [one.model_dump() for one in page]]
    for path in PATHS:
        seen.append([one.model_dump() for one in storage.list_records(path)])
        seen.append(storage.get_scope_info(path).model_dump(exclude={"path"}))
        seen.append((storage.list_scopes(path), storage.count(path)))
    return [*seen, storage.list_categories(), storage.list_categories("/shop")]


def compare_with_lance(client: Reverie, seed: int) -> None:
    """The same calls on both: the same lists after each."""
    pick, records = random.Random(seed), list[MemoryRecord]()
    with tempfile.TemporaryDirectory() as folder:
        theirs = LanceDBStorage(path=folder, vector_dim=2)
        ours = ReverieStorage(client, scope=f"project/ledger-{seed}")
        records += [build_record(pick, n) for n in range(6)]
        for storage in (theirs, ours):
            storage.save(records[:6])
        for _ in range(STEPS):
            name, arguments = change(pick, records)
            answers = [getattr(storage, name)(**arguments) for storage in (theirs, ours)]
            assert answers[0] == answers[1], (name, arguments, answers)
            for expected, got in zip(look(theirs), look(ours), strict=True):
                assert expected == got, (name, arguments, expected, got)


def save_again(client: Reverie) -> None:
    """Of a record that is saved again only the last text counts; deleted, all of it is gone."""
    storage = ReverieStorage(client, scope="project/again")
    record = build_record(random.Random(2), 1)
    storage.save([record])
    last = record.model_copy(update={"content": "Said anew.", "scope": "/moved"})
    storage.save([last])
    assert storage.count() == 1
    assert [one.content for one in storage.list_records()] == ["Said anew."]
    storage.update(last.model_copy(update={"content": "Said a third time."}))
    assert [one.content for one in storage.list_records()] == ["Said a third time."]
    assert storage.delete("/moved") == 1
    assert storage.get_record(record.id) is None
    assert list(client.list_memories(scope="project/again")) == []


async def search(client: Reverie) -> None:
    """A search takes the text in the vector, and the filters of the protocol."""
    storage = ReverieStorage(client, scope="project/harbour")
    said = [
        ("The lighthouse keeper is called Rico.", "/coast/north", ["people"], {"page": 1}),
        ("The lighthouse keeper sleeps at noon.", "/coast/south", ["hours"], {"page": 2}),
        ("Ferries to the island leave at dawn.", "/coast", ["hours"], {"page": 2}),
    ]
    records = [
        MemoryRecord(content=text, scope=path, categories=names, metadata=data)
        for text, path, names, data in said
    ]
    await storage.asave(records)
    (query,) = carry_text(["lighthouse keeper"])

    async def find(**filters: Any) -> list[str]:
        found = await storage.asearch(query, **filters)
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in scores)
        return sorted(record.content for record, _ in found)

    keepers = sorted([said[0][0], said[1][0]])
    assert set(keepers) <= set(await find())
    assert await find(scope_prefix="/coast/north") == [said[0][0]]
    assert await find(scope_prefix="/coast/nor") == []
    assert await find(categories=["people", "none"]) == [said[0][0]]
    assert said[1][0] in await find(metadata_filter={"page": 2})
    assert said[0][0] not in await find(metadata_filter={"page": 2})
    assert len(await find(limit=1)) == 1
    assert await find(limit=0) == await find(min_score=1.1) == []
    for vector in ([0.1, 0.2], [1.0] * 300, []):
        with suppress(ValueError):
            storage.search(vector)
            raise AssertionError(vector)
    assert await storage.adelete(scope_prefix="/coast/north") == 1
    assert said[0][0] not in await find()


def main() -> None:
    """Both."""
    with Reverie(os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]) as client:
        assert isinstance(ReverieStorage(client), StorageBackend)
        compare_with_lance(client, 1)
        save_again(client)
        asyncio.run(search(client))
    print("held")


if __name__ == "__main__":
    main()
