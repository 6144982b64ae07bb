"""A decision record is found by the request that it does not show, until the request is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.core.ids import short_id
from tests.e2e.test_decisions_recalled import UPLOADS, hand_over, list_records, recall
from tests.e2e.test_record_surfaces import run_command
from tests.ingest.test_forgetting import _exported, _holding
from tests.ingest.test_vault_redaction import STRONG, finish_backfill
from tests.support.import_files import export_file, memory_line, send_import
from tests.support.mcp_clients import over_http
from tests.support.stack import Stack

PROJECT = "requests"
CITY = "Quetzaltenango"
TOKEN = "ghp_" + "Zk9mQ2xR7vT4bN8cW1dF5gH3jL6pS0aXyE2u"
ORDER = f"Can you fix upload_limits for {CITY} and {STRONG}, with the token {TOKEN}?"
REPORTED = UPLOADS[0][1].replace("Can you fix upload_limits?", ORDER)
TALK = (("user", REPORTED), *UPLOADS[1:])


@pytest.fixture(name="record")
async def _record(stack: Stack) -> dict[str, Any]:
    await hand_over(stack, PROJECT, TALK)
    [record] = await list_records(stack, PROJECT)
    assert CITY in record["metadata"]["record"]["problem"]
    assert CITY not in record["content"]
    return dict(record)


async def _found(stack: Stack, query: str = CITY) -> dict[str, Any]:
    """The records that are found by words of a question, as recall tells them, by their ids."""
    answer = await recall(stack, PROJECT, query)
    ids = {one["id"] for one in await list_records(stack, PROJECT)}
    return {
        hit["id"]: hit for hit in answer["memories"] if hit["id"] in ids and "words" in hit["arms"]
    }


async def test_a_hidden_request_is_found_by_its_words_and_shown_as_provenance_alone(
    stack: Stack, record: dict[str, Any], tmp_path: Path
) -> None:
    assert CITY not in json.dumps((await _found(stack))[record["id"]])
    asked = record["metadata"]["record"]["problem"]
    assert asked.endswith("?")
    assert "[REDACTED" in asked
    assert TOKEN not in asked
    assert record["provenance"]["asked"] == asked
    origin = await stack.get(f"/v1/memories/{record['id']}/provenance")
    assert origin["asked"] == asked
    shown, _ = await run_command(stack, tmp_path, "show", short_id(UUID(record["id"])))
    text, _, facts = shown.partition("\n\n")
    assert text == record["content"]
    assert f"asked      {asked}" in facts.splitlines()
    told, _ = await run_command(stack, tmp_path, "provenance", short_id(UUID(record["id"])))
    assert f"asked      {asked}" in told.splitlines()
    await _check_what_agents_read(stack, record)


async def _check_what_agents_read(stack: Stack, record: dict[str, Any]) -> None:
    """Neither context nor preflow nor MCP shows the request."""
    context = await stack.get(f"/v1/context?project={PROJECT}")
    [line] = [line for line in context["markdown"].splitlines() if record["id"][-8:] in line]
    assert CITY not in line
    session = await stack.post("/v1/sessions/start", {"agent": "claude", "project": PROJECT})
    body = {"session": session["session"], "include_seen": True}
    query = f"Which size may a video upload have at the proxy in {CITY}?"
    given = await stack.post("/v1/preflow", body | {"query": query})
    [text] = [item["text"] for item in given["items"] if item["id"] == record["id"]]
    assert CITY not in text
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        arguments = {"query": query, "scopes": [f"project/{PROJECT}"]}
        recalled = (await client.call_tool("recall", arguments)).structured_content
        origin = await client.call_tool(
            "more", {"operation": "provenance", "arguments": {"id": record["id"]}}
        )
    assert recalled is not None
    [hit] = [hit for hit in recalled["memories"] if record["id"].endswith(hit["id"])]
    assert CITY not in json.dumps(hit)
    assert origin.structured_content is not None
    assert CITY in origin.structured_content["asked"]


async def test_a_hidden_request_is_found_by_its_meaning(stack: Stack) -> None:
    scope = f"project/{PROJECT}"
    requests = {
        "`write()` flushes twice.": "The nightly export to the accounting system loses rows.",
        "`read()` parses once.": "Video playback stutters on phones.",
    }
    lines = [
        memory_line(text, scope=scope, metadata={"record": {"problem": asked, "found": [text]}})
        for text, asked in requests.items()
    ]
    assert (await send_import(stack, export_file(*lines)))[0] == 200
    questions = ("data sent to bookkeeping is incomplete", "movies hang on mobile devices")
    for question, line in zip(questions, lines, strict=True):
        [first, _] = (await recall(stack, PROJECT, question))["memories"]
        assert (first["id"], first["content"]) == (line["id"], line["content"])
        assert set(first["arms"]).isdisjoint({"words"})


async def test_an_edit_of_the_text_removes_the_hidden_request_and_one_of_the_tags_does_not(
    stack: Stack, record: dict[str, Any]
) -> None:
    path = f"/v1/memories/{record['id']}"
    assert (await stack.call("PATCH", path, {"tags": ["proxy"]})).status == 200
    assert record["id"] in await _found(stack)
    body = {"content": "Videos may be of 2 GB, everything else of 10 MB."}
    assert (await stack.call("PATCH", path, body)).status == 200
    hits = (await recall(stack, PROJECT, CITY))["memories"]
    assert [hit["arms"].get("words") for hit in hits if hit["id"] == record["id"]] in ([], [None])
    assert (await stack.get(path))["provenance"]["asked"] is None
    # A version that was restored is found as it was.
    await stack.post(f"{path}/rollback", {"version": 1})
    assert record["id"] in await _found(stack)


async def test_a_secret_that_is_stored_later_is_redacted_in_the_hidden_request(
    stack: Stack, record: dict[str, Any]
) -> None:
    # The whole secret would be redacted in the question, too.
    part = STRONG.split("-")[2]
    assert record["id"] in await _found(stack, part)
    await stack.call("PUT", "/v1/vault/city", {"value": STRONG, "secret": True})
    await finish_backfill(stack)
    assert await _found(stack, part) == {}
    origin = await stack.get(f"/v1/memories/{record['id']}/provenance")
    assert "[REDACTED_VAULT" in origin["asked"]
    assert CITY in origin["asked"]
    assert STRONG not in json.dumps(origin)
    assert STRONG not in await _exported(stack)


async def test_erasing_a_record_leaves_its_hidden_request_nowhere(stack: Stack) -> None:
    # All tenants are searched for it: no other test names this city.
    city = "Chichicastenango"
    await hand_over(stack, PROJECT, [(role, text.replace(CITY, city)) for role, text in TALK])
    [record] = await list_records(stack, PROJECT)
    path = f"/v1/memories/{record['id']}"
    assert list(await _found(stack, city)) == [record["id"]]
    assert {"memory.metadata", "turn.content"} <= set(_holding(stack.admin_url, city))
    assert (await stack.call("DELETE", path)).status == 200
    answer = await recall(stack, PROJECT, city)
    assert city not in json.dumps(answer["memories"])
    assert city not in await _exported(stack)
    await stack.post(f"{path}/restore", None)
    assert list(await _found(stack, city)) == [record["id"]]
    await stack.post(f"{path}/erase", {"reason": "asked for"})
    # What somebody searched for is not a text of the record.
    assert set(_holding(stack.admin_url, city)) <= {"recall_trace.query"}


async def test_a_hidden_request_moves_with_its_record_and_all_its_parts(
    stack: Stack, record: dict[str, Any]
) -> None:
    apart = stack.apart()
    exported = (await _exported(stack)).encode()
    assert (await send_import(apart, exported))[0] == 200
    found = await _found(apart)
    [moved] = await list_records(apart, PROJECT)
    assert list(found) == [moved["id"]]
    assert CITY not in json.dumps(found)
    assert moved["provenance"]["asked"] == record["provenance"]["asked"]
    assert moved["metadata"]["record"] == record["metadata"]["record"]
    assert moved["content"] == record["content"]
