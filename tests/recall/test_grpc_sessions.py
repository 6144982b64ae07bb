"""A session over one gRPC stream, and the summary at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.domain.access.principals import KeyRole
from reverie.embedded.ports import find_free_port
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.recall.test_grpc import keyed
from tests.support.stack import Stack, running_stack

RULE = "Prices are kept in cents, because floats lost money (src/price.py)."
ASKED = "Why do we keep prices in cents?"


@pytest.fixture
async def served(database: DatabaseUrls, nats_url: str) -> AsyncIterator[tuple[Stack, Any]]:
    """A stack, and the stub of its gRPC port."""
    port = find_free_port()
    async with (
        running_stack(database, nats_url, model_home(), grpc_enabled=True, grpc_port=port) as stack,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield stack, ReverieStub(channel)


def said(role: str, content: str) -> pb.SessionInput:
    turn = pb.NewTurnBody(role=role, content=content)
    return pb.SessionInput(append=pb.AppendedTurns(turns=[turn]))


def start(project: str = "mill", **fields: Any) -> pb.SessionInput:
    request = pb.SessionStartRequest(agent="deploy-bot", project=project, **fields)
    return pb.SessionInput(start=request)


async def read_until(call: Any, kind: str) -> Any:
    """The next output of a kind; what comes before it is passed over."""
    while True:
        output = await asyncio.wait_for(call.read(), 30)
        assert output is not grpc.aio.EOF, await call.details()
        if output.WhichOneof("result") == kind:
            return getattr(output, kind)


async def test_a_session_is_followed_in_both_directions_and_ends_with_its_summary(
    served: tuple[Stack, Any],
) -> None:
    stack, stub = served
    await stack.post("/v1/remember", {"scope": "project/mill", "kind": "decision", "content": RULE})
    await stack.settled()
    call = stub.Session(metadata=keyed(stack.key))
    await call.write(start(include_context=False))
    started = await read_until(call, "started")
    assert (started.scope, started.context) == ("project/mill", "")

    await call.write(said("user", ASKED))
    assert (await read_until(call, "appended")).accepted == 1
    assert RULE in (await read_until(call, "context")).markdown

    made = await stack.post(
        "/v1/remember",
        {
            "scope": "project/mill",
            "kind": "decision",
            "content": "The wheel turns at nine (src/wheel.py).",
            "git": {"files": ["src/wheel.py"]},
        },
    )
    while (event := await read_until(call, "event")).id != made["id"]:
        assert event.event or event.alive
    await stack.settled()
    await stack.post(
        "/v1/git/changes",
        {
            "project": "mill",
            "branch": "main",
            "after": "4e" * 20,
            "commits": [
                {"sha": "4e" * 20, "subject": "Drop it", "committed_at": "2027-01-01T10:00:00Z"}
            ],
            "files": [{"path": "src/wheel.py", "status": "deleted"}],
        },
    )
    warning = await read_until(call, "warning")
    assert (warning.event, warning.memory.id) == ("staled", made["id"])

    await call.write(said("assistant", "Decision: the sluice stays shut, because the dam leaks."))
    assert (await read_until(call, "appended")).accepted == 1
    await call.write(pb.SessionInput(end=pb.SessionEndRequest(wait_seconds=60)))
    ended = await read_until(call, "ended")
    assert ended.session == started.session
    assert ended.dream.scope == "project/mill"
    assert "sluice" in ended.summary
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK
    session = (await stack.get("/v1/sessions"))["items"][0]
    assert (session["turns"], bool(session["ended_at"])) == (2, True)


async def test_a_stream_has_the_rights_and_the_words_of_rest(served: tuple[Stack, Any]) -> None:
    stack, stub = served
    reader = stack.key_of(role=KeyRole.READER, reads=["project/mill"], writes=[])
    writer = stack.key_of(role=KeyRole.WRITER, reads=["project/mill"], writes=["project/mill"])
    unknown = "00000000-0000-7000-8000-000000000000"
    cases = [
        (reader, start(), grpc.StatusCode.PERMISSION_DENIED, "forbidden"),
        (writer, start("abbey"), grpc.StatusCode.PERMISSION_DENIED, "forbidden"),
        (writer, pb.SessionInput(join=unknown), grpc.StatusCode.NOT_FOUND, "not_found"),
        (writer, said("user", "x"), grpc.StatusCode.INVALID_ARGUMENT, "must be start or join"),
        ("rv_wrong", start(), grpc.StatusCode.UNAUTHENTICATED, "unauthenticated"),
    ]
    for key, first, status, words in cases:
        call = stub.Session(iter([first]), metadata=keyed(key))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert (caught.value.code(), words in str(caught.value.details())) == (status, True)

    call = stub.Session(metadata=keyed(writer))
    await call.write(start(external_id="s-1"))
    started = await read_until(call, "started")
    await call.write(said("poet", "x"))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_until(call, "appended")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    # What others write is not told to a key that may not read it.
    joined = stub.Session(metadata=keyed(writer))
    await joined.write(pb.SessionInput(join=started.session))
    assert (await read_until(joined, "started")).session == started.session
    await stack.post("/v1/remember", {"scope": "project/abbey", "content": "The bell is cracked."})
    seen = await stack.post("/v1/remember", {"scope": "project/mill", "content": "Millstone."})
    while (event := await read_until(joined, "event")).id != seen["id"]:
        assert event.scope in {"", "project/mill"}
    await joined.done_writing()
    while await joined.read() is not grpc.aio.EOF:
        pass
    assert await joined.code() is grpc.StatusCode.OK
    session = (await stack.get("/v1/sessions"))["items"][0]
    assert session["ended_at"] is None


async def test_the_wait_for_a_summary_is_bounded(served: tuple[Stack, Any]) -> None:
    stack, stub = served
    started = await stub.SessionStart(
        pb.SessionStartRequest(agent="a", project="mill"), metadata=keyed(stack.key)
    )
    request = pb.SessionEndRequest(id=started.session, wait_seconds=30)
    # Nothing was said, so no dream is waited for.
    ended = await stub.SessionEnd(request, metadata=keyed(stack.key), timeout=20)
    assert (ended.HasField("dream"), ended.HasField("summary")) == (False, False)
    request.wait_seconds = 61
    with pytest.raises(grpc.aio.AioRpcError, match="wait_seconds"):
        await stub.SessionEnd(request, metadata=keyed(stack.key))


async def test_open_sessions_end_when_the_gateway_stops(
    database: DatabaseUrls, nats_url: str
) -> None:
    port = find_free_port()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        async with running_stack(
            database, nats_url, model_home(), grpc_enabled=True, grpc_port=port
        ) as stack:
            call = ReverieStub(channel).Session(metadata=keyed(stack.key))
            await call.write(start())
            await read_until(call, "started")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_until(call, "ended")
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "stopping" in str(caught.value.details())
