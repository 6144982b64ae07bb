"""Property test: export, import elsewhere and export again give the same bytes."""

from __future__ import annotations

import asyncio
from io import BytesIO
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reverie.contracts.export_import import ImportResponse
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.domain.redaction.vault_secrets import SecretMatcher, VaultSecret
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.memories.export_import import ExportImportStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.write import jsonl_import
from reverie_services.ingest.write.jsonl_import import ImportContext, ImportTally, import_lines
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.import_files import AT, export_file, memory_line
from tests.support.store_setup import add_tenants, principal

LIMITS = Settings()

LATER = "2026-01-03T03:04:05+00:00"

words = st.text(alphabet='abcdeé 连接_./\n"\\', min_size=1, max_size=12).filter(str.strip)
said = st.fixed_dictionaries(
    {
        "session": st.uuids().map(str),
        "times": st.integers(1, 5),
        "first": st.just(AT),
        "last": st.sampled_from([AT, LATER]),
    }
)
used = st.fixed_dictionaries(
    {
        "count": st.integers(0, 9),
        "last": st.sampled_from([None, AT]),
        "boost": st.floats(0, 1, width=32),
        "hour": st.just("2026-01-02T03:00:00+00:00"),
    }
)
task = st.sampled_from(
    [
        {"state": "todo", "updated": AT},
        {"state": "doing", "updated": AT, "claimed_by": "ann", "claimed_until": LATER},
    ]
)
stale = st.fixed_dictionaries(
    {
        "commit": st.sampled_from(["a" * 40, "b" * 40]),
        "path": st.just("src/a.ts"),
        "grade": st.sampled_from(["suspect", "gone"]),
        "score": st.floats(0, 1, width=32),
        "change": st.just("modified"),
        "subject": words,
        "committed_at": st.just(AT),
        "event": st.uuids().map(str),
        "created": st.just(AT),
        "cleared": st.sampled_from([None, LATER]),
    }
)
plain = st.fixed_dictionaries(
    {
        "content": words,
        "scope": st.sampled_from(["global", "project/a", "project/a/feature/b"]),
        "kind": st.sampled_from(["decision", "bug", "lesson", "task", "file"]),
        "status": st.sampled_from(["active", "superseded", "archived"]),
        "version": st.integers(1, 9),
        "confidence": st.floats(0, 1, width=32),
        "pinned": st.booleans(),
        "settled": st.booleans(),
        "confirmed": st.sampled_from([None, LATER]),
        "merged_into": st.sampled_from([None, str(UUID(int=1))]),
        "tags": st.lists(st.sampled_from(["x", "y", "连接"]), max_size=3, unique=True),
        "metadata": st.dictionaries(words, st.integers() | words | st.booleans(), max_size=2),
        "utterances": st.lists(said, max_size=2, unique_by=lambda one: one["session"]),
        "usage": st.none() | used,
        "task": st.none() | task,
        "stale": st.lists(stale, max_size=1),
    }
)
edge = st.tuples(
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from(["led_to", "relates_to", "depends_on"]),
    st.sampled_from([None, LATER]),
)
graph = st.tuples(
    st.lists(plain, max_size=6),
    st.lists(edge, max_size=6),
    st.lists(st.sampled_from(["global", "project/a"]), unique=True),
    st.lists(words, max_size=3),
)
Edge = tuple[int, int, str, str | None]
Drawn = tuple[list[dict[str, Any]], list[Edge], list[str], list[str]]


def _memories(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for n, fields in enumerate(made):
        fixed = {"tier": "warm", "source": "remember", "created": AT, "updated": AT}
        own = dict(fields)
        if own.get("kind") == "file":
            own |= {"key": f"file:{own['content']}", "scope": "project/a"}
        if own.get("kind") != "task":
            own.pop("task", None)
        lines.append({"type": "memory", "id": str(UUID(int=n + 1)), **fixed, **own})
    for n, fields in enumerate(made):
        version = {"memory": str(UUID(int=n + 1)), "version": 0, "content": fields["content"]}
        then = {"status": "active", "reason": "edited", "known_from": AT, "known_to": AT}
        lines.append({"type": "memory_version", **version, **then})
    for n, fields in enumerate(made):
        if fields["kind"] == "file":
            place = {"project": "a", "path": f"src/{n}.ts", "name": f"{n}.ts"}
            lines.append({"type": "anchor", "node": str(UUID(int=n + 1)), **place})
    return lines


def _edges(edges: list[Edge]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for n, (one, two, kind, until) in enumerate(edges):
        if one == two:
            continue
        ends = {"src": str(UUID(int=one + 1)), "dst": str(UUID(int=two + 1)), "kind": kind}
        known = {"weight": 0.5, "known_from": AT, "known_to": until, "meta": {}}
        lines.append({"type": "edge", "id": str(UUID(int=100 + n)), **ends, **known})
    return lines


def _sessions(scopes: list[str], turns: list[str]) -> list[dict[str, Any]]:
    summary = {"type": "summary", "version": 2, "content": "so far", "tokens": 2, "updated": AT}
    lines: list[dict[str, Any]] = [{**summary, "scope": scope} for scope in scopes]
    named = {"scope": f"project/{slugify('My Shop')}", "name": "My Shop"}
    lines.append({"type": "scope_name", **named})
    for project, name, value in (
        ("a", "context", {"hot": 300, "entries": 9}),
        ("*", "dream", {"turns": 9, "idle_minutes": 0.5}),
        ("*", "llm", {"calls_per_day": 3}),
    ):
        setting = {"project": project, "name": name, "value": value, "updated": AT}
        lines.append({"type": "project_setting", **setting})
    session = str(UUID(int=900))
    begun = {"agent": "ann", "scope": "project/a", "started": AT, "appended": AT}
    lines.append({"type": "session", "id": session, **begun})
    for n, text in enumerate(turns):
        said_at = {"role": "user", "content": text, "at": AT}
        lines.append(
            {
                "type": "turn",
                "id": str(UUID(int=901 + n)),
                "session": session,
                "ordinal": n,
                **said_at,
            }
        )
    return lines


async def _out(carry: ExportImportStore, who: Principal) -> bytes:
    pages = [page async for page in carry.export_lines(who, ["*"])]
    return "\n".join([JSONL_HEADER, *(line for page in pages for line in page)]).encode()


async def _nothing(_: int) -> Redactor:
    return Redactor()


async def _in(
    carry: ExportImportStore, who: Principal, data: bytes, known_of: RedactorLoader = _nothing
) -> ImportResponse:
    tally = ImportTally(ImportResponse())
    landing = carry.open_import(who, "merge", dry_run=False)
    await import_lines(BytesIO(data), ImportContext(who, landing, tally, LIMITS, known_of))
    return tally.result


def _make_tenant(database: DatabaseUrls) -> Principal:
    name = f"t{uuid4().hex[:12]}"
    [tenant] = add_tenants(database.admin_url, name)
    return principal(tenant, name)


async def _round(database: DatabaseUrls, data: bytes) -> None:
    first, second = _make_tenant(database), _make_tenant(database)
    async with open_database(database.service_url, size=2) as db:
        carry = ExportImportStore(db)
        await _in(carry, first, data)
        before = await _out(carry, first)
        taken = await _in(carry, second, before)
        assert taken.rejected_lines == []
        assert await _out(carry, second) == before
        again = await _in(carry, second, before)
        assert (again.created, again.updated, again.rejected) == (0, 0, 0)
        assert await _out(carry, second) == before


@settings(
    max_examples=12,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(graph)
def test_any_export_round_trips_into_another_tenant(
    shared_database: DatabaseUrls, made: Drawn
) -> None:
    memories, edges, scopes, turns = made
    lines = (*_memories(memories), *_edges(edges), *_sessions(scopes, turns))
    asyncio.run(_round(shared_database, export_file(*lines)))


async def test_a_secret_stored_during_an_import_is_redacted_from_the_next_batch_on(
    shared_database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_import, "PAGE_SIZE", 5)
    secrets: list[VaultSecret] = []
    loaded = count()

    async def known(_: int) -> Redactor:
        # The whole file is checked with the first, and each batch is stored with the next.
        if next(loaded) == 2:
            secrets.append(VaultSecret("global", "pin", "mR9x-Kq72-vTz4"))
        return Redactor(SecretMatcher(secrets, len(secrets)))

    file = export_file(*(memory_line(f"mR9x-Kq72-vTz4 {n}", scope="global") for n in range(7)))
    async with open_database(shared_database.service_url, size=2) as db:
        carry, who = ExportImportStore(db), _make_tenant(shared_database)
        taken = await _in(carry, who, file, known)
        assert (taken.created, taken.rejected, taken.redactions) == (7, 0, 2)
        exported = (await _out(carry, who)).decode().splitlines()
    assert sum("mR9x-Kq72-vTz4" in line for line in exported) == 5
