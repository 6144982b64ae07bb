"""Property test: export, import elsewhere and export again give the same bytes."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reverie.contracts.export_import import ImportResponse
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.domain.redaction.vault_secrets import SecretMatcher, VaultSecret
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.memories.export_import import PAGE_SIZE, ExportImportStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.write.jsonl_import import ImportContext, ImportTally, import_lines
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.store_setup import add_tenants, principal

AT = "2026-01-02T03:04:05+00:00"
LIMITS = Settings()
NUMBERS = count()

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


def _lines(
    made: list[dict[str, Any]], edges: list[Edge], told: list[str], turns: list[str]
) -> bytes:
    return "\n".join(
        [JSONL_HEADER, *map(json.dumps, [*_memories(made), *_edges(edges), *_talk(told, turns)])]
    ).encode()


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


def _talk(told: list[str], turns: list[str]) -> list[dict[str, Any]]:
    summary = {"type": "summary", "version": 2, "content": "so far", "tokens": 2, "updated": AT}
    lines: list[dict[str, Any]] = [{**summary, "scope": scope} for scope in told]
    named = {"scope": f"project/{slugify('My Shop')}", "name": "My Shop"}
    lines.append({"type": "scope_name", **named})
    budgets = {"name": "context", "value": {"hot": 300, "entries": 9}, "updated": AT}
    lines.append({"type": "project_setting", "project": "a", **budgets})
    limits = {"name": "dream", "value": {"turns": 9, "idle_minutes": 0.5}, "updated": AT}
    lines.append({"type": "project_setting", "project": "*", **limits})
    budget = {"name": "llm", "value": {"calls_per_day": 3}, "updated": AT}
    lines.append({"type": "project_setting", "project": "*", **budget})
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
    carry: ExportImportStore,
    who: Principal,
    data: bytes,
    known_of: RedactorLoader = _nothing,
) -> ImportResponse:
    tally = ImportTally(ImportResponse())
    landing = carry.open_import(who, "merge", dry_run=False)
    await import_lines(BytesIO(data), ImportContext(who, landing, tally, LIMITS, known_of))
    return tally.result


async def _round(database: DatabaseUrls, data: bytes) -> None:
    names = [f"tenant-{next(NUMBERS)}" for _ in range(2)]
    one, two = add_tenants(database.admin_url, *names)
    first, second = principal(one, names[0]), principal(two, names[1])
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
def test_any_export_round_trips_into_another_tenant(database: DatabaseUrls, made: Drawn) -> None:
    asyncio.run(_round(database, _lines(*made)))


async def test_a_secret_stored_during_an_import_is_redacted_from_the_next_batch_on(
    database: DatabaseUrls,
) -> None:
    secrets: list[VaultSecret] = []
    loaded = count()

    async def known(_: int) -> Redactor:
        # The whole file is checked with the first, and each batch is stored with the next.
        if next(loaded) == 2:
            secrets.append(VaultSecret("global", "pin", "mR9x-Kq72-vTz4"))
        return Redactor(SecretMatcher(secrets, len(secrets)))

    fixed = {"scope": "global", "kind": "context", "status": "active", "version": 1}
    more = {"confidence": 0.5, "pinned": False}
    made = [{"content": f"mR9x-Kq72-vTz4 {n}", **fixed, **more} for n in range(PAGE_SIZE + 2)]
    name = f"tenant-{next(NUMBERS)}"
    [tenant] = add_tenants(database.admin_url, name)
    async with open_database(database.service_url, size=2) as db:
        carry, who = ExportImportStore(db), principal(tenant, name)
        lines = _memories(made)[: PAGE_SIZE + 2]
        data = "\n".join([JSONL_HEADER, *map(json.dumps, lines)]).encode()
        taken = await _in(carry, who, data, known)
        assert (taken.created, taken.rejected, taken.redactions) == (PAGE_SIZE + 2, 0, 2)
        told = (await _out(carry, who)).decode().splitlines()
    assert sum("mR9x-Kq72-vTz4" in line for line in told) == PAGE_SIZE
