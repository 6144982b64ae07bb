"""Runs a case through REST, MCP, gRPC, command line or client, and returns JSON."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from click.testing import CliRunner
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from pydantic import BaseModel

from reverie.cli.app.main import app
from reverie.client import AsyncReverie
from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.operations import PATH_VARIABLE
from reverie.mcp.rest_calls import encode_query
from tests.interfaces.case import KNOWN, Case, Fields, said
from tests.interfaces.running_system import VAULT_KEY, World
from tests.support.mcp_clients import call, over_http
from tests.support.stack import eventually

Through = Callable[[World, Case, Fields], Awaitable[Any]]
WATCHED = ("watch_memories", "watch_group")
_SERVICE = pb.DESCRIPTOR.services_by_name["Reverie"]


def request_of(world: World, operation: str, fields: Fields) -> Any:
    """The request of an operation, to be entered."""
    sent, one = said(fields), KNOWN[operation]
    path = PATH_VARIABLE.sub(lambda name: str(sent.pop(name[1])), one.path)
    headers = {"Authorization": f"Bearer {fields.get('_key', world.stack.key)}"}
    if one.uses_if_match and "version" in sent:
        headers["If-Match"] = f'"{sent.pop("version")}"'
    query, body = one.split_fields(sent)
    more: dict[str, Any] = {"json": body} if body else {}
    if operation == "import":
        headers["Content-Type"] = "application/x-ndjson"
        more = {"data": body["data"].encode()}
    url = f"{world.stack.url}{path}{encode_query(query)}"
    return world.stack.http.request(one.method, url, headers=headers, **more)


async def rest(world: World, case: Case, fields: Fields) -> Any:
    """One request."""
    async with request_of(world, case.operation, fields) as answer:
        assert answer.status < 300, await answer.text()
        if answer.content_type == "text/event-stream":
            return await _first_event(answer.content)
        text = await answer.text()
        return json.loads(text) if answer.content_type == "application/json" else {"data": text}


async def _first_event(lines: Any) -> Any:
    async with asyncio.timeout(60):
        while not (line := (await lines.readline())).startswith(b"data:"):
            assert line, "the stream ended"
        return {"items": [{"data": json.loads(line[5:])}]}


async def mcp(world: World, case: Case, fields: Fields) -> Any:
    """A tool, by the official client."""
    sent = {case.called.get(name, name): one for name, one in said(fields).items()}
    if case.tool == "more":
        sent = {"operation": case.operation, "arguments": sent}
    if "_key" in fields:
        async with over_http(f"{world.stack.url}/mcp", fields["_key"]) as client:
            # What the answer is checked by, asked for while there is a key.
            await client.list_tools()
            return await call(client, case.tool, **sent)
    if case.operation == "watch_memories":
        return await eventually(lambda: _happened(world, case, sent))
    return await call(world.mcp, case.tool, **sent)


async def _happened(world: World, case: Case, sent: Fields) -> Any:
    found = await call(world.mcp, case.tool, **sent)
    return found if found["items"] else None


async def grpc(world: World, case: Case, fields: Fields) -> Any:
    """A call of the generated stub."""
    sent, ask = said(fields), getattr(world.stub, case.call.rpc_name)
    metadata = (("authorization", f"Bearer {world.stack.key}"),)
    if case.operation == "import":
        pieces = iter([pb.ImportChunk(data=sent["data"].encode(), dry_run=sent["dry_run"])])
        return _plain(await ask(pieces, metadata=metadata))
    if case.operation == "export":
        asked = pb.ExportRequest(scope=sent["scope"])
        found = b"".join([one.data async for one in ask(asked, metadata=metadata)])
        return {"data": found.decode()}
    if case.operation in WATCHED:
        if case.operation == "watch_group":
            request = pb.WatchGroupRequest(id=sent["id"], after=sent["after"])
        else:
            request = pb.WatchRequest(cursor=sent["after"], event=sent["event"])
        watched = ask(request, metadata=metadata)
        async with asyncio.timeout(60):
            while (one := await anext(aiter(watched))).alive:
                pass
        watched.cancel()
        return {"items": [{"data": _plain(one)}]}
    return _plain(await asked_of(world, case.operation, fields))


def asked_of(world: World, operation: str, fields: Fields) -> Any:
    """The call of an operation, to be awaited."""
    name = KNOWN[operation].rpc_name
    request = GetMessageClass(_SERVICE.methods_by_name[name].input_type)()
    metadata = (("authorization", f"Bearer {fields.get('_key', world.stack.key)}"),)
    return getattr(world.stub, name)(ParseDict(said(fields), request), metadata=metadata)


def _plain(message: Any) -> Any:
    found = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    if "items" in found:
        found["items"] = [one.get("remembered", one) for one in found["items"]]
    return found


def environment(world: World, fields: Fields) -> dict[str, str]:
    """Of a terminal on the machine that the services' servers run on."""
    return {
        "REVERIE_API_KEY": fields.get("_key", world.stack.key),
        "REVERIE_GATEWAY_URL": world.stack.url,
        "REVERIE_DATABASE_URL": world.stack.admin_url,
        "REVERIE_NATS_URL": world.nats_url,
        "REVERIE_HOME": str(world.folder / "home"),
        "REVERIE_VAULT_KEY": VAULT_KEY,
    }


async def cli(world: World, case: Case, fields: Fields) -> Any:
    """The command, with `--json`."""
    words = [word.format(**fields) for word in shlex.split(case.cli)]
    env = environment(world, fields)
    if case.operation == "export":
        file = world.folder / f"export{world.number()}.jsonl"
        await _run([*words, "-o", str(file)], env, None)
        return {"data": file.read_text()}
    if case.operation == "import":
        file = world.folder / f"import{world.number()}.jsonl"
        file.write_text(fields["data"])
        words.append(str(file))
    given = str(fields[case.stdin]) if case.stdin else None
    running = asyncio.create_task(_run([*words, "--json"], env, given))
    while case.operation == "watch_memories" and not running.done():
        await world.memory()
        await asyncio.wait({running}, timeout=0.2)
    found = json.loads(await running)
    if case.operation in WATCHED:
        return {"items": [{"data": found}]}
    return {"items": found} if isinstance(found, list) else found


async def _run(words: list[str], env: dict[str, str], given: str | None) -> str:
    done = await asyncio.to_thread(CliRunner().invoke, app, words, input=given, env=env)
    assert done.exit_code == 0, f"{words}: {done.exception!r} {done.output}"
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith("2026-") or "[" not in line)


async def client(world: World, case: Case, fields: Fields) -> Any:
    """The method of the client."""
    sent = {case.renamed.get(name, name): one for name, one in said(fields).items()}
    sent.pop(None, None)
    given = {str(name): one for name, one in sent.items()}
    if case.operation == "edit_memory":
        given = {"id": given.pop("id"), "changes": given}
    if "_key" in fields:
        async with AsyncReverie(world.stack.url, fields["_key"]) as other:
            return _json(await getattr(other, case.client)(**given))
    found = getattr(world.client, case.client)(**given)
    if case.operation == "export":
        return {"data": b"".join([piece async for piece in found]).decode()}
    if isinstance(found, AsyncIterator):
        most = 1 if case.operation in WATCHED else 1000
        async with asyncio.timeout(60):
            return {"items": [_json(one) for one in await _taken(found, most)]}
    return _json(await found)


async def _taken(items: AsyncIterator[Any], most: int) -> list[Any]:
    found: list[Any] = []
    async for one in items:
        found.append(one)
        if len(found) == most:
            break
    return found


def _json(found: Any) -> Any:
    if isinstance(found, tuple):
        position, event = found
        return {"id": position, "data": _json(event)}
    if isinstance(found, BaseModel):
        return found.model_dump(mode="json", by_alias=True)
    return found if isinstance(found, dict) else vars(found)


async def typescript(world: World, case: Case, fields: Fields) -> Any:
    """The method of the TypeScript client."""
    assert world.typescript, "there is no node to run it"
    key, sent = fields.get("_key", world.stack.key), typescript_fields(case.operation, fields)
    answer = await world.typescript.call(world.stack.url, key, case.typescript, sent)
    assert "data" in answer, answer
    found = answer["data"]
    return {"data": found} if isinstance(found, str) else found


def typescript_fields(operation: str, fields: Fields) -> Fields:
    """The fields of an operation, sorted as the generated client takes them."""
    sent, one = said(fields), KNOWN[operation]
    path = {name: sent.pop(name) for name in one.path_fields}
    version = sent.pop("version", None) if one.uses_if_match else None
    query, body = one.split_fields(sent)
    sorted_fields: Fields = {"path": path, "query": query}
    if one.method in {"POST", "PUT", "PATCH"} or body:
        sorted_fields["body"] = body["data"] if operation == "import" else body
    if version is not None:
        sorted_fields["headers"] = {"If-Match": f'"{version}"'}
    return sorted_fields


THROUGH: dict[str, Through] = {
    "REST": rest,
    "MCP": mcp,
    "gRPC": grpc,
    "CLI": cli,
    "client": client,
    "TypeScript": typescript,
}
