"""Pictures that memories carry: found by their text, with the rights and the end of the memory."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from benchmarks.quality.brought import UnlimitedBudget
from reverie.domain.access.principals import KeyRole, Principal
from reverie.inference.llm_client import open_language_model
from reverie.inference.llm_endpoint import LanguageEndpoint
from reverie_services.ingest.write.picture_files import read_picture_text
from tests.support.stack import Reply, Stack
from tests.support.stub_llm import stub_llm
from tests.support.tables import value

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels").decode()
SVG = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg"><title>Checkout flow</title>'
    b"<script>alert(1)</script><text>Cart <tspan>calls the tarantula service</tspan></text></svg>"
).decode()
ADMIN = Principal(1, "default", "k", KeyRole.ADMIN, ("*",), ("*",))
COUNT = "select count(*) from picture where tenant = %s"


async def _memory(stack: Stack, content: str = "The shop in one picture.") -> str:
    body = {"content": content, "scope": "project/shop"}
    return str((await stack.post("/v1/remember", body))["id"])


async def _attach(stack: Stack, memory: str, data: str = SVG, **fields: Any) -> Any:
    return await stack.post(f"/v1/memories/{memory}/pictures", {"data": data, **fields})


async def _recall(stack: Stack, query: str) -> set[str]:
    return {hit["id"] for hit in (await stack.post("/v1/recall", {"query": query}))["memories"]}


async def test_a_memory_is_found_by_the_text_in_its_diagram(stack: Stack) -> None:
    memory = await _memory(stack)
    await _memory(stack, "Lamps are lit at dusk.")
    made = await _attach(stack, memory, name="flow.svg")
    assert (made["media_type"], made["created"]) == ("image/svg+xml", True)
    assert made["text"] == "Checkout flow Cart calls the tarantula service"
    assert memory in await _recall(stack, "tarantula")
    again = await _attach(stack, memory, name="flow.svg")
    assert (again["hash"], again["created"]) == (made["hash"], False)
    by_caller = await _attach(stack, memory, PNG, text="The login form shows error 4711")
    assert memory in await _recall(stack, "error 4711")
    listed = await stack.walked(f"/v1/memories/{memory}/pictures")
    assert {one["hash"] for one in listed} == {made["hash"], by_caller["hash"]}
    path = f"/v1/memories/{memory}/pictures/{by_caller['hash']}"
    assert (await stack.get(path))["data"] == PNG
    assert (await stack.call("DELETE", path)).status == 200
    assert (await stack.call("GET", path)).status == 404
    content = (await stack.get(f"/v1/memories/{memory}"))["content"]
    assert "4711" not in content
    assert content.startswith("The shop in one picture.\n\n[picture ")


async def test_what_is_no_picture_or_too_large_is_refused(stack: Stack) -> None:
    memory = await _memory(stack)

    async def refused(raw: bytes | str) -> Reply:
        data = raw if isinstance(raw, str) else base64.b64encode(raw).decode()
        body = io.BytesIO(json.dumps({"data": data}).encode())
        headers = {"Content-Type": "application/json"}
        path = f"/v1/memories/{memory}/pictures"
        return await stack.call("POST", path, data=body, headers=headers)

    page, program = b"<html><svg></svg></html>", b"MZ\x90\x00"
    growing = b'<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg><text>&a;</text></svg>'
    for raw in (page, program, growing, b"<svg><text>", "not base64!"):
        reply = await refused(raw)
        assert (reply.status, reply.body["field"]) == (422, "data"), raw
    large = await refused(b"\x89PNG\r\n\x1a\n" + b"x" * (10 * 1024 * 1024))
    assert (large.status, large.body["code"]) == (413, "too_large")
    whole = await refused(b"\x89PNG\r\n\x1a\n" + b"x" * (10 * 1024 * 1024 - 8))
    assert whole.status == 200


async def test_a_browser_runs_nothing_of_a_picture(stack: Stack) -> None:
    memory = await _memory(stack)
    made = await _attach(stack, memory)
    url = f"{stack.url}/v1/memories/{memory}/pictures/{made['hash']}"
    headers = {"Authorization": f"Bearer {stack.key}", "Accept": "image/svg+xml,image/*"}
    async with stack.http.get(url, headers=headers) as answer:
        assert await answer.read() == base64.b64decode(SVG)
        assert answer.headers["Content-Type"] == "image/svg+xml"
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_picture_has_the_rights_of_its_memory(stack: Stack) -> None:
    memory = await _memory(stack)
    made = await _attach(stack, memory)
    path = f"/v1/memories/{memory}/pictures"
    other = stack.key_of(reads=("project/other",), writes=("project/other",))
    reader = stack.key_of(reads=("project/shop",), role=KeyRole.READER)
    for method, at, body in (
        ("GET", path, None),
        ("GET", f"{path}/{made['hash']}", None),
        ("DELETE", f"{path}/{made['hash']}", None),
        ("POST", path, {"data": PNG}),
    ):
        assert (await stack.call(method, at, body, other)).status == 404, method
    assert (await stack.call("GET", f"{path}/{made['hash']}", key=reader)).status == 200
    assert (await stack.call("POST", path, {"data": PNG}, reader)).status == 403
    assert (await stack.call("DELETE", f"{path}/{made['hash']}", key=reader)).status == 403


async def test_a_picture_is_forgotten_erased_and_moved_with_its_memory(stack: Stack) -> None:
    other = stack.apart()
    memory = await _memory(stack)
    made = await _attach(stack, memory)
    exported = (await stack.call("GET", "/v1/export")).body
    headers = {"Content-Type": "application/x-ndjson"}
    for _ in range(2):
        reply = await other.call("POST", "/v1/import", data=exported.encode(), headers=headers)
        assert (reply.status, reply.body["rejected"]) == (200, 0)
    path = f"/v1/memories/{memory}/pictures/{made['hash']}"
    assert (await other.get(path))["data"] == SVG
    assert (await stack.call("DELETE", f"/v1/memories/{memory}")).status == 200
    assert (await stack.call("GET", path)).status == 404
    assert "tarantula" not in (await stack.call("GET", "/v1/export")).body
    await stack.post(f"/v1/memories/{memory}/restore", {})
    assert (await stack.get(path))["data"] == SVG
    erased = await stack.post(f"/v1/memories/{memory}/erase", {})
    assert erased["rows"]["picture"] == 1
    assert value(stack.admin_url, COUNT, stack.number()) == 0
    assert (await other.call("DELETE", "/v1/admin/projects/shop")).status == 200
    assert value(other.admin_url, COUNT, other.number()) == 0


@pytest.mark.parametrize(
    ("faults", "text"), [([], "Error 4711 A red login form."), (["401"], ""), (["torn"] * 6, "")]
)
async def test_a_model_reads_a_picture_and_one_that_fails_reads_nothing(
    faults: list[str], text: str
) -> None:
    async with stub_llm() as (stub, url):
        stub.answer = lambda _: {"text": "Error 4711\n A red login form."}
        stub.faults = list(faults)
        endpoint = LanguageEndpoint("openai", "stub", f"{url}/v1", retry_delay=0.0)
        registry = CollectorRegistry()
        async with open_language_model(endpoint, UnlimitedBudget(), registry) as model:
            assert model is not None
            data = base64.b64decode(PNG)
            assert await read_picture_text(model, ADMIN, data, "image/png") == text
