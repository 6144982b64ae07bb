"""Whatever was stored: out, in elsewhere and out again are the same bytes."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.contracts.carry import Imported
from reverie.domain.access import Principal
from reverie.ingest.carry_in import Tally, take_lines
from reverie.ingest.settings import ingest_settings
from reverie.recall.export_routes import HEADER
from reverie.runtime.settings import Settings
from reverie.store.carry import Carry
from reverie.store.database import open_database
from reverie.testing.servers import Database
from tests.integration.store_parts import add_tenants, principal

AT = "2026-01-02T03:04:05+00:00"
LIMITS = ingest_settings(Settings())
NUMBERS = count()

words = st.text(alphabet='abcdeé 连接_./\n"\\', min_size=1, max_size=12).filter(str.strip)
plain = st.fixed_dictionaries(
    {
        "content": words,
        "scope": st.sampled_from(["global", "project/a", "project/a/feature/b"]),
        "kind": st.sampled_from(["decision", "bug", "lesson"]),
        "status": st.sampled_from(["active", "superseded", "archived"]),
        "version": st.integers(1, 9),
        "confidence": st.floats(0, 1, width=32),
        "pinned": st.booleans(),
        "tags": st.lists(st.sampled_from(["x", "y", "连接"]), max_size=3, unique=True),
        "metadata": st.dictionaries(words, st.integers() | words | st.booleans(), max_size=2),
    }
)
graph = st.lists(plain, max_size=6).flatmap(
    lambda made: st.tuples(
        st.just(made),
        st.lists(
            st.tuples(
                st.integers(0, 5), st.integers(0, 5), st.sampled_from(["led_to", "relates_to"])
            ),
            max_size=6,
        ),
    )
)


def _lines(made: list[dict[str, Any]], edges: list[tuple[int, int, str]]) -> bytes:
    lines: list[dict[str, Any]] = []
    for n, fields in enumerate(made):
        fixed = {"tier": "warm", "source": "remember", "created": AT, "updated": AT}
        lines.append({"type": "memory", "id": str(UUID(int=n + 1)), **fixed, **fields})
    for n, fields in enumerate(made):
        version = {"memory": str(UUID(int=n + 1)), "version": 0, "content": fields["content"]}
        then = {"status": "active", "why": "edited", "known_from": AT, "known_to": AT}
        lines.append({"type": "memory_version", **version, **then})
    for n, (one, two, kind) in enumerate(edges):
        ends = {"src": str(UUID(int=one + 1)), "dst": str(UUID(int=two + 1)), "kind": kind}
        known = {"id": str(UUID(int=100 + n)), "weight": 0.5, "known_from": AT, "meta": {}}
        lines.append({"type": "edge", **ends, **known})
    return "\n".join([HEADER, *map(json.dumps, lines)]).encode()


async def _out(carry: Carry, who: Principal) -> bytes:
    pages = [page async for page in carry.lines(who, ["*"])]
    return "\n".join([HEADER, *(line for page in pages for line in page)]).encode()


async def _in(carry: Carry, who: Principal, data: bytes) -> Imported:
    tally = Tally(Imported())
    async with carry.landing(who, "merge", dry_run=False) as landing:
        await take_lines(BytesIO(data), who, LIMITS, landing, tally)
    return tally.answer


async def _round(database: Database, data: bytes) -> None:
    names = [f"tenant-{next(NUMBERS)}" for _ in range(2)]
    one, two = add_tenants(database.admin_url, *names)
    first, second = principal(one, names[0]), principal(two, names[1])
    async with open_database(database.service_url, size=2) as db:
        carry = Carry(db)
        await _in(carry, first, data)
        before = await _out(carry, first)
        taken = await _in(carry, second, before)
        assert taken.refused_lines == []
        assert await _out(carry, second) == before
        again = await _in(carry, second, before)
        assert (again.created, again.updated, again.refused) == (0, 0, 0)
        assert await _out(carry, second) == before


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(graph)
def test_an_export_of_anything_comes_out_the_same_elsewhere(
    database: Database, made: tuple[list[dict[str, Any]], list[tuple[int, int, str]]]
) -> None:
    asyncio.run(_round(database, _lines(*made)))
