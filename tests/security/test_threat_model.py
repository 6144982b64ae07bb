"""Attacks that no other test covers; docs/operate/security.md lists all threats."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import aiohttp

from reverie.domain.access.principals import hash_key
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import KEY, Sample, problem_of
from tests.support.stack import Stack
from tests.support.store_setup import admin_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operate" / "security.md"
INJECTIONS = (
    "'; drop table memory; --",
    "x' | 'y & !! <-> (",
    ":* & !'",
    "$1; select pg_sleep(5)",
    "\\'); delete from api_key; --",
    "a\\' OR '1'='1",
    "\"); copy memory to program 'id'; --",
)


async def test_foreign_origins_and_rebound_host_names_are_refused() -> None:
    sample = Sample()
    async with (
        start_service(sample.service(), Settings()) as url,
        start_service(sample.service(), Settings(allowed_hosts="memory.acme.test")) as named,
        start_service(sample.service(), Settings(host="0.0.0.0")) as public,
        start_service(sample.service(), Settings(host="0.0.0.0", allowed_hosts="*")) as any_name,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as http,
    ):
        for base, headers, status in (
            (url, {}, 200),
            (url, {"Origin": "http://localhost:5173"}, 200),
            (url, {"Origin": "https://evil.test"}, 403),
            (url, {"Origin": "null"}, 403),
            (url, {"Host": "evil.test"}, 403),
            (url, {"Host": "evil.test", "Origin": "http://evil.test"}, 403),
            (url, {"Host": "localhost:9"}, 200),
            (url, {"Host": "memory.acme.test"}, 403),
            (named, {"Host": "memory.acme.test"}, 200),
            (public, {"Host": "evil.test"}, 403),
            (public, {"Host": "evil.local.test"}, 403),
            (public, {"Host": "10.0.0.7:3456"}, 200),
            (public, {"Host": "reverie-recall"}, 200),
            (public, {"Host": "reverie-recall.memory.svc.cluster.local"}, 200),
            (any_name, {"Host": "memory.acme.test"}, 200),
            (named, {"Host": "memory.acme.test", "Origin": "https://memory.acme.test"}, 200),
        ):
            for path in ("/v1/notes", "/ready"):
                async with http.get(f"{base}{path}", headers=headers) as answer:
                    assert answer.status == status, (path, headers)
                    if status == 403:
                        assert (await problem_of(answer))["code"] == "forbidden"


async def test_sql_and_text_search_syntax_is_treated_as_words(stack: Stack) -> None:
    for number, words in enumerate(INJECTIONS):
        said = {"content": f"note {number} {words}", "tags": [words], "kind": "context"}
        made = await stack.post("/v1/remember", said)
        for query in (words, f"note {words}"):
            found = await stack.post("/v1/recall", {"query": query, "limit": 50})
            assert isinstance(found["memories"], list)
        listed = await stack.call("GET", "/v1/memories", params={"tag": words})
        assert listed.status == 200
        assert [one["id"] for one in listed.body["items"]] == [made["id"]]
    context = "select count(*) from reverie.memory where kind = 'context' and tenant = %s"
    kept = admin_rows(stack.admin_url, context, stack.number())
    assert kept == [(len(INJECTIONS),)]
    assert admin_rows(stack.admin_url, "select count(*) > 0 from reverie.api_key") == [(True,)]


async def test_a_key_is_stored_as_a_hash_and_found_by_it_alone(stack: Stack) -> None:
    """Nothing is compared letter by letter: how long a look-up takes tells nothing of a key."""
    made = await stack.post("/v1/admin/keys", {"label": "k"})
    rows = admin_rows(stack.admin_url, "select hash, row_to_json(k)::text from reverie.api_key k")
    assert hash_key(made["key"]) in {bytes(held) for held, _ in rows}
    assert all(made["key"] not in text for _, text in rows)
    near = made["key"][:-1] + ("A" if made["key"][-1] != "A" else "B")
    assert (await stack.call("GET", "/v1/memories", key=near)).status == 401
    sql = "select pg_get_functiondef('reverie.find_key(bytea)'::regprocedure)"
    [(body,)] = admin_rows(stack.admin_url, sql)
    assert "p_hash" in body
    assert "like" not in body.lower()


async def test_no_body_field_is_an_address_that_a_service_would_call(stack: Stack) -> None:
    """What services call stands in their settings: nobody else can make them call anything."""
    calls: list[str] = []

    async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append((await reader.readline()).decode())
        writer.close()

    server = await asyncio.start_server(trap, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    lure = f"http://127.0.0.1:{port}/latest/meta-data"
    sent: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/v1/remember", {"content": f"see {lure} for more", "metadata": {"url": lure}}),
        ("/v1/recall", {"query": lure}),
        ("/v1/sessions/start", {"agent": "a", "project": lure}),
        ("/v1/facts", {"topic": "t", "statement": lure, "confidence": "high",
                        "verified": "2026-01-01", "source": lure}),
    )  # fmt: skip
    for path, body in sent:
        await stack.call("POST", path, body)

    await stack.settled()
    server.close()
    assert calls == []


def test_every_threat_links_to_the_tests_of_its_defence() -> None:
    section = PAGE.read_text().partition("## Threats")[2]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 25
    assert [row for row in rows if "](../../tests/" not in row] == []


def test_dependencies_are_locked_with_hashes() -> None:
    """What is installed is what was tried: each file of each part by its digest."""
    locked = (ROOT / "uv.lock").read_text()
    files = re.findall(r"\{ url = .*?\}", locked)
    assert len(files) > 100
    assert all('hash = "sha256:' in one for one in files)
