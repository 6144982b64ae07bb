"""Requests that must be refused, and the error that each interface must return."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from mcp_types import TextContent

from reverie.cli.app.errors import error_code, exit_code
from reverie.cli.app.main import app
from reverie.client import ApiError, AsyncReverie
from reverie.contracts import reverie_pb2 as pb
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import ReverieError
from tests.console.sample_tenant import PNG
from tests.interfaces.case import Fields, said, to_camel
from tests.interfaces.running_system import SCOPE, World
from tests.interfaces.transports import asked_of, environment, request_of, typescript_fields
from tests.interfaces.typescript_client import builds_client
from tests.support.mcp_clients import over_http

PROBLEM = "reverie-problem-bin"
NOBODY = "00000000-0000-7000-8000-000000000000"
Told = tuple[str, str]
"""The code and the words."""


@dataclass(frozen=True)
class Refusal:
    """An operation that must fail with `code`; the other fields are those of a case.

    `unheard`: the refusal is of the message itself, which is then no tool's answer.
    """

    name: str
    code: str
    status: str
    exits: int
    operation: str
    given: Callable[[World], Awaitable[Fields]]
    cli: str
    client: Callable[[AsyncReverie, Fields], Awaitable[Any]]
    unheard: bool = False


async def _taken_key(world: World) -> Fields:
    key = f"taken{world.number()}"
    await world.memory(key=key)
    return {"content": "Another one.", "kind": "lesson", "scope": SCOPE, "key": key}


async def _circle(world: World) -> Fields:
    two = await world.two() | {"type": "led_to"}
    await world.post("/v1/links", two)
    return {"from": two["to"], "to": two["from"], "type": "led_to"}


async def _moved(world: World) -> Fields:
    return {**await world.edited(), "content": "Too late.", "version": 1}


async def _reader(world: World) -> Fields:
    key = world.stack.key_of(role=KeyRole.READER)
    return {"content": "Not mine to say.", "scope": SCOPE, "_key": key}


async def _spent(world: World) -> Fields:
    limits = {"label": "spent", "limits": {"memories_per_day": 0}}
    key = (await world.post("/v1/admin/keys", limits))["key"]
    return {"content": "One too many.", "scope": SCOPE, "_key": key}


async def _forward(world: World) -> Fields:
    fields = await world.task()
    await world.post(f"/v1/tasks/{fields['id']}/claim", {"agent": "ann"})
    return {**fields, "agent": "bob", "seconds": 900}


async def _attaching(world: World, fields: Fields, name: str, data: bytes) -> Fields:
    group = await world.post("/v1/groups", {"agents": ["beck"], "project": "quay"})
    file = world.folder / name
    file.write_bytes(data)
    return {"id": group["id"], "text": "See.", "_file": file, **fields}


async def _many_images(world: World) -> Fields:
    image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    return await _attaching(world, {"images": [image] * 9}, "many.png", PNG)


async def _long_file(world: World) -> Fields:
    text = "long " * 60_000
    return await _attaching(world, {"files": {"long.txt": text}}, "long.txt", text.encode())


def _say(reverie: AsyncReverie, fields: Fields) -> Awaitable[Any]:
    images = [(image["media_type"], PNG) for image in fields.get("images", ())]
    return reverie.post_message(
        fields["id"], fields["text"], files=fields.get("files"), images=images
    )


def _remember(reverie: AsyncReverie, fields: Fields) -> Awaitable[Any]:
    return reverie.remember(**said(fields))


REFUSALS = (
    Refusal("not found", "not_found", "NOT_FOUND", 4, "get_memory",
            lambda w: w.none(id=NOBODY), "show {id}", lambda c, f: c.get_memory(f["id"])),
    Refusal("an id that is none", "invalid", "INVALID_ARGUMENT", 2, "get_memory",
            lambda w: w.none(id="nope"), "show {id}", lambda c, f: c.get_memory(f["id"])),
    Refusal("a key that is taken", "conflict", "ABORTED", 6, "remember", _taken_key,
            "remember '{content}' --kind {kind} --scope {scope} --key {key}", _remember),
    Refusal("a task of another", "conflict", "ABORTED", 6, "claim_task", _forward,
            "task claim {id} --agent {agent} --lease {seconds}",
            lambda c, f: c.claim_task(f["id"], agent=f["agent"])),
    Refusal("a kind that is none", "invalid", "INVALID_ARGUMENT", 2, "remember",
            lambda w: w.none(content="x", kind="gossip", scope=SCOPE),
            "remember {content} --kind {kind} --scope {scope}", _remember),
    Refusal("a circle of causes", "conflict", "ABORTED", 6, "link", _circle,
            "link {from} {to} {type}", lambda c, f: c.link(f["from"], f["to"], f["type"])),
    Refusal("too large", "too_large", "INVALID_ARGUMENT", 2, "remember",
            lambda w: w.none(content="long " * 30_000, scope=SCOPE),
            "remember '{content}' --scope {scope}", _remember),
    Refusal("changed meanwhile", "precondition_failed", "FAILED_PRECONDITION", 6, "edit_memory",
            _moved, "edit {id} --content '{content}' --version {version}",
            lambda c, f: c.edit_memory(f["id"], {"content": f["content"]}, version=f["version"])),
    Refusal("forbidden", "forbidden", "PERMISSION_DENIED", 5, "remember", _reader,
            "remember '{content}' --scope {scope}", _remember),
    Refusal("no such key", "unauthenticated", "UNAUTHENTICATED", 5, "graph_stats",
            lambda w: w.none(_key="rv_unknown"), "stats", lambda c, f: c.get_graph_stats(),
            unheard=True),
    Refusal("too many images", "invalid", "INVALID_ARGUMENT", 2, "post_message", _many_images,
            "groups say {id} {text}" + " --attach {_file}" * 9, _say),
    Refusal("a file that is too long", "too_large", "INVALID_ARGUMENT", 2, "post_message",
            _long_file, "groups say {id} {text} --attach {_file}", _say),
    Refusal("too many", "too_many", "RESOURCE_EXHAUSTED", 7, "remember", _spent,
            "remember '{content}' --scope {scope}", _remember),
)  # fmt: skip


async def over_rest(world: World, one: Refusal, fields: Fields) -> Told:
    """The problem document."""
    async with request_of(world, one.operation, fields) as answer:
        body = await answer.json(content_type=None)
    assert answer.content_type == "application/problem+json"
    return body["code"], body["detail"]


async def over_mcp(world: World, one: Refusal, fields: Fields) -> Told:
    """The structured content of a tool that failed; its text begins with both."""
    arguments = {"operation": one.operation, "arguments": said(fields)}
    url, key = f"{world.stack.url}/mcp", fields.get("_key", world.stack.key)
    if one.unheard:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accept = {"Accept": "application/json, text/event-stream"}
        body = (await world.stack.call("POST", url, message, key, headers=accept)).body
        return body["code"], body["detail"]
    async with over_http(url, key) as client:
        result: Any = await client.call_tool("more", arguments)
    assert result.is_error
    body = result.structured_content
    [text] = [part.text for part in result.content if isinstance(part, TextContent)]
    assert text.startswith(f"{body['code']}: {body['detail']}")
    return body["code"], body["detail"]


async def over_grpc(world: World, one: Refusal, fields: Fields) -> Told:
    """The problem in the trailing metadata; the status says the same."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asked_of(world, one.operation, fields)
    error = caught.value
    metadata = dict(error.trailing_metadata() or ())
    problem = pb.Problem.FromString(metadata[PROBLEM])
    assert error.code().name == one.status
    assert error.details() == f"{problem.code}: {problem.detail}"
    return problem.code, problem.detail


async def over_cli(world: World, one: Refusal, fields: Fields) -> Told:
    """The error that the command ends with, and its exit code."""
    words = one.cli.split("'")
    told = [
        part.format(**fields)
        for place, piece in enumerate(words)
        for part in ([piece] if place % 2 else piece.split())
    ]
    env = environment(world, fields)
    done = await asyncio.to_thread(CliRunner().invoke, app, told, env=env)
    assert isinstance(done.exception, ReverieError), done.output
    assert exit_code(done.exception) == one.exits
    return error_code(done.exception), str(done.exception)


async def over_client(world: World, one: Refusal, fields: Fields) -> Told:
    """The error that the call raises."""
    key = fields.get("_key", world.stack.key)
    async with AsyncReverie(world.stack.url, key, max_attempts=1) as reverie:
        with pytest.raises(ApiError) as caught:
            await one.client(reverie, fields)
    assert json.loads(caught.value.problem.model_dump_json())["code"] == caught.value.problem_code
    return caught.value.problem_code, str(caught.value)


async def over_typescript(world: World, one: Refusal, fields: Fields) -> Told:
    """The error that the method throws."""
    assert world.typescript, "there is no node to run it"
    key, method = fields.get("_key", world.stack.key), to_camel(one.operation)
    sent = typescript_fields(one.operation, fields)
    error = (await world.typescript.call(world.stack.url, key, method, sent))["error"]
    return error["code"], error["message"]


REFUSING = {
    "REST": over_rest,
    "MCP": over_mcp,
    "gRPC": over_grpc,
    "CLI": over_cli,
    "client": over_client,
    **({"TypeScript": over_typescript} if builds_client() else {}),
}
