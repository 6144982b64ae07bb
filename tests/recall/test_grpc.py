"""Every gRPC call and stream with the generated stub on a running system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.embedded.ports import find_free_port
from reverie.store.platform.api_keys import NewApiKey, create_key
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.stack import Stack, eventually, running_stack

PROBLEM = "reverie-problem-bin"
SHA = "2e" * 20


@pytest.fixture
async def served(database: DatabaseUrls, nats_url: str) -> AsyncIterator[tuple[Stack, int]]:
    """A stack and the port at which it answers gRPC."""
    port = find_free_port()
    async with running_stack(
        database, nats_url, model_home(), grpc_enabled=True, grpc_port=port
    ) as stack:
        yield stack, port


def keyed(key: str) -> Any:
    """The metadata of a call."""
    return (("authorization", f"Bearer {key}"),)


async def refused(call: Any) -> tuple[grpc.StatusCode, str, pb.Problem]:
    """Status, words and problem of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    packed = dict(error.trailing_metadata()).get(PROBLEM, b"")
    return error.code(), str(error.details()), pb.Problem.FromString(packed)


async def test_fields_and_refusals_arrive_over_grpc_as_over_rest(served: tuple[Stack, int]) -> None:
    stack, port = served
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub, key = ReverieStub(channel), keyed(stack.key)
        await _core(stub, key)
        await _work(stub, key)
        await _refusals(stack, stub)
        await _unread(channel, stub)
        await _system(channel, stub, key)


async def _core(stub: Any, key: Any) -> None:
    asked = pb.RememberRequest(
        content="The mill grinds on Mondays.",
        kind="lesson",
        key="mill",
        tags=["mill"],
        idempotency_key="once",
    )
    asked.metadata.update({"sacks": 12})
    asked.git.update({"files": ["src/mill.py"]})
    asked.valid_from.FromDatetime(datetime(2026, 1, 2, tzinfo=UTC))
    made = await stub.Remember(asked, metadata=key)
    assert made == await stub.Remember(asked, metadata=key)
    assert (made.status, made.version) == ("created", 1)
    other = await stub.Remember(pb.RememberRequest(content="Flour is kept dry."), metadata=key)
    found = await stub.Recall(pb.RecallRequest(query="when does the mill grind"), metadata=key)
    assert found.memories[0].id == made.id
    assert found.answered
    assert found.relevance == max(hit.relevance for hit in found.memories) >= 0.6
    unrelated = pb.RecallRequest(query="How do I bake sourdough bread?")
    assert not (await stub.Recall(unrelated, metadata=key)).answered
    assert found.memories[0].created_at.ToDatetime(UTC) < datetime.now(UTC)
    context = await stub.Context(pb.ContextRequest(scopes=["global"]), metadata=key)
    assert "mill" in context.markdown
    whole = await stub.GetMemory(pb.MemoryRequest(id=made.id), metadata=key)
    assert (whole.key, dict(whole.metadata), list(whole.tags)) == ("mill", {"sacks": 12}, ["mill"])
    code, _, _ = await refused(stub.Forget(pb.MemoryRequest(id=other.id, version=9), metadata=key))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert (await stub.Forget(pb.MemoryRequest(id=other.id, version=1), metadata=key)).changed
    stats = await stub.GraphStats(pb.GraphStatsRequest(), metadata=key)
    assert stats.nodes_by_kind["lesson"] == 1
    twice = (*key, ("idempotency-key", "guest"))
    guest = pb.CreateKeyRequest(label="guest")
    first = await stub.CreateKey(guest, metadata=twice)
    assert first == await stub.CreateKey(guest, metadata=twice)


async def _work(stub: Any, key: Any) -> None:
    start = pb.SessionStartRequest(agent="miller", project="mill")
    session = (await stub.SessionStart(start, metadata=key)).session
    turns = [pb.NewTurnBody(role="user", content="We grind rye too.", external_id="1")]
    told = pb.AppendTurnsRequest(session=session, turns=turns * 2)
    appended = await stub.AppendTurns(told, metadata=key)
    assert (appended.accepted, appended.duplicates) == (1, 1)
    end = pb.SessionEndRequest(id=session, summary="Rye.")
    assert (await stub.SessionEnd(end, metadata=key)).session == session
    pushed = pb.GitChangeRequest()
    commit = {"sha": SHA, "committed_at": "2026-01-01T00:00:00Z"}
    hunk = {"old_start": 3, "old_lines": 1, "new_start": 3, "new_lines": 2}
    stones = {"path": "src/stones.py", "status": "modified", "hunks": [hunk]}
    long = "/".join(["sieve"] * 120)
    others = [{"path": f"{long}{n}.py", "status": "deleted"} for n in range(2_000)]
    pushed.change.update({"project": "mill", "branch": "main", "after": SHA, "commits": [commit]})
    pushed.change.update({"files": [stones, *others]})
    assert pushed.ByteSize() > 1_200_000
    assert not (await stub.GitChange(pushed, metadata=key)).duplicate
    assert (await stub.GitChange(pushed, metadata=key)).duplicate
    assert not (await stub.Stale(pb.StaleRequest(project="mill"), metadata=key)).items


async def _unread(channel: Any, stub: Any) -> None:
    """Who brings no key is told so before a byte is read, however many and whatever they are."""
    code, words, _ = await refused(stub.GraphStats(pb.GraphStatsRequest()))
    for name, size in (("Remember", 9), ("GitChange", 30_000_000), ("WatchMemories", 9)):
        found = await refused(channel.unary_unary(f"/reverie.v1.Reverie/{name}")(b"\xff" * size))
        assert found[:2] == (code, words) == (grpc.StatusCode.UNAUTHENTICATED, words)
    told = await channel.unary_unary("/reverie.v1.Reverie/Health")(b"\xff" * 9)
    assert pb.HealthResponse.FromString(told).ready


async def _refusals(stack: Stack, stub: Any) -> None:
    """Beyond the codes and words, which `tests/interfaces` compares with other interfaces."""
    mine = (await stack.get("/v1/memories?key=mill"))["items"][0]["id"]
    mill = pb.RememberRequest(content="The mill grinds on Fridays.", kind="lesson", key="mill")
    _, _, problem = await refused(stub.Remember(mill, metadata=keyed(stack.key)))
    assert problem.current["id"] == mine
    empty = pb.RecallRequest(query="", limit=500)
    code, _, problem = await refused(stub.Recall(empty, metadata=keyed(stack.key)))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert {one.field for one in problem.errors} == {"query", "limit"}
    for name in ("", "../admin/keys"):
        code, _, _ = await refused(
            stub.GetMemory(pb.MemoryRequest(id=name), metadata=keyed(stack.key))
        )
        assert code in {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT}
    infinite = Struct()
    infinite.update({"height": float("inf")})
    for call in (
        stub.Recall(
            pb.RecallRequest(query="x", as_of=Timestamp(seconds=2**62)), metadata=keyed(stack.key)
        ),
        stub.Remember(
            pb.RememberRequest(content="x", metadata=infinite), metadata=keyed(stack.key)
        ),
        *(
            stub.Remember(
                pb.RememberRequest(content="x", idempotency_key=key), metadata=keyed(stack.key)
            )
            for key in ("a\r\nX-Forged: b", "a" * 10_000, "ä")
        ),
    ):
        code, _, problem = await refused(call)
        assert (code, problem.code) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid")
    vast = pb.RememberRequest(content="x" * 1_200_000)
    code, words, problem = await refused(stub.Remember(vast, metadata=keyed(stack.key)))
    assert (code, problem.code) == (grpc.StatusCode.INVALID_ARGUMENT, "too_large")
    assert words.startswith("too_large: body holds")
    bounded = keyed(stack.key_of(reads=("project/mill/*",)))
    code, words, _ = await refused(_export(stub, bounded, ["global"]))
    assert (code, words[:10]) == (grpc.StatusCode.PERMISSION_DENIED, "forbidden:")
    code, words, _ = await refused(
        stub.Import(iter([pb.ImportChunk(data=b"no export")]), metadata=keyed(stack.key))
    )
    assert (code, "line 1" in words) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    unsound = f'{JSONL_HEADER}\n{{"type": "sorcery"}}\n'.encode()
    code, words, problem = await refused(
        stub.Import(iter([pb.ImportChunk(data=unsound)]), metadata=keyed(stack.key))
    )
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert words.startswith("invalid: line 2: type: ")
    assert [one.field for one in problem.errors] == ["line 2: type"]
    stranger = keyed(create_key(stack.admin_url, NewApiKey("else", tenant="elsewhere")))
    code, _, _ = await refused(stub.GetMemory(pb.MemoryRequest(id=mine), metadata=stranger))
    assert code == grpc.StatusCode.NOT_FOUND
    assert not (await stub.GraphStats(pb.GraphStatsRequest(), metadata=stranger)).nodes
    late = stub.GraphStats(pb.GraphStatsRequest(), metadata=keyed(stack.key), timeout=0.000_001)
    assert (await refused(late))[0] == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_no_message_of_a_call_without_a_key_is_read(served: tuple[Stack, int]) -> None:
    stack, port = served

    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        slow = [channel.stream_unary("/grpc.health.v1.Health/Check")(nothing()) for _ in range(8)]
        stats = ReverieStub(channel).GraphStats(pb.GraphStatsRequest(), metadata=keyed(stack.key))
        assert (await stats).nodes is not None
        serving = health_pb2.HealthCheckResponse(status="SERVING").SerializeToString()
        assert [await call for call in slow] == [serving] * len(slow)
        reflect = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )(nothing())
        code, _, _ = await refused(anext(aiter(reflect)))
        assert code == grpc.StatusCode.UNAUTHENTICATED
        checked = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert checked.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("junk", [b"\xff" * 50, b"\x0a\x03\xff\xfe\xfd", b"\x0a\xff\xff\xff\x0f"])
async def test_a_malformed_message_is_the_fault_of_the_caller(
    served: tuple[Stack, int], junk: bytes
) -> None:
    stack, port = served
    key = keyed(stack.key)

    async def chunks() -> AsyncIterator[bytes]:
        yield pb.ImportChunk(data=JSONL_HEADER.encode()).SerializeToString()
        yield junk

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        calls = (
            channel.unary_unary("/reverie.v1.Reverie/Remember")(junk, metadata=key),
            anext(
                aiter(channel.unary_stream("/reverie.v1.Reverie/WatchMemories")(junk, metadata=key))
            ),
            channel.stream_unary("/reverie.v1.Reverie/Import")(chunks(), metadata=key),
        )
        for call in calls:
            code, words, problem = await refused(call)
            assert (code, problem.code) == (grpc.StatusCode.INVALID_ARGUMENT, "malformed")
            assert "DecodeError" not in words


async def _export(stub: Any, key: Any, scopes: list[str]) -> bytes:
    request = pb.ExportRequest(scope=scopes)
    return b"".join([one.data async for one in stub.Export(request, metadata=key)])


async def _system(channel: Any, stub: Any, key: Any) -> None:
    ready = await stub.Health(pb.HealthRequest())
    assert ready.ready
    assert ready.checks["postgres"].ok
    named = health_pb2.HealthCheckRequest(service="reverie.v1.Reverie")
    checked = await health_pb2_grpc.HealthStub(channel).Check(named)
    assert checked.status == health_pb2.HealthCheckResponse.SERVING
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    shown = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
        iter([asked]), metadata=key
    )
    names = {one.name for one in (await anext(aiter(shown))).list_services_response.service}
    assert names >= {"reverie.v1.Reverie", "grpc.health.v1.Health"}
    late = stub.WatchMemories(pb.WatchRequest(), metadata=key, timeout=0.5)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        [one async for one in late]
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_watched_events_resume_from_their_cursor_after_a_break(
    served: tuple[Stack, int],
) -> None:
    stack, port = served
    asked = pb.WatchRequest(event=["remembered"])
    async with ChaosProxy("127.0.0.1", port) as proxy:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{proxy.port}") as channel:
            watched = ReverieStub(channel).WatchMemories(asked, metadata=keyed(stack.key))
            assert (await _read(watched)).alive
            made = [await _remembered(stack, n) for n in range(2)]
            told = [await _read(watched) for _ in made]
            proxy.reset_connections()
            with pytest.raises(grpc.aio.AioRpcError) as broken:
                await _read(watched)
            assert broken.value.code() == grpc.StatusCode.UNAVAILABLE
        proxy.restore()
        made += [await _remembered(stack, n) for n in range(2, 4)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{proxy.port}") as channel:
            asked.cursor = told[-1].cursor
            stub = ReverieStub(channel)
            watched = stub.WatchMemories(asked, metadata=keyed(stack.key))
            while len(told) < len(made):
                one = await _read(watched)
                told += [] if one.alive else [one]
            assert [one.id for one in told] == made
            assert {(one.event, one.scope, one.gap) for one in told} == {
                ("remembered", "global", False)
            }
            asked.cursor = "nowhere"
            code, _, problem = await refused(
                _read(stub.WatchMemories(asked, metadata=keyed(stack.key)))
            )
            assert (code, problem.field) == (grpc.StatusCode.INVALID_ARGUMENT, "after")
            await _doubts(stack, stub)


async def _doubts(stack: Stack, stub: Any) -> None:
    """A memory is watched becoming doubtful, and holding again once that is confirmed."""
    place = {"files": ["src/mill.py"], "branch": "main"}
    body = {"content": "Sieves are cleaned daily.", "scope": "project/mill", "git": place}
    made = (await stack.post("/v1/remember", body))["id"]

    async def anchored() -> bool:
        return bool((await stack.get("/v1/impact?path=src/mill.py&project=mill"))["items"])

    await eventually(anchored)
    doubts = stub.WatchStale(
        pb.WatchStaleRequest(scope=["project/mill"]), metadata=keyed(stack.key)
    )
    assert (await _read(doubts)).alive
    commit = {"sha": SHA, "committed_at": datetime.now(UTC).isoformat()}
    gone = [{"path": "src/mill.py", "status": "deleted"}]
    change = {"project": "mill", "branch": "main", "after": SHA, "commits": [commit]}
    await stack.post("/v1/git/changes", {**change, "files": gone})
    told = await _read(doubts)
    assert (told.event, told.memory.id) == ("staled", made)
    assert told.memory.staleness > 0
    await stack.post(f"/v1/memories/{made}/confirm", {})
    told = await _read(doubts)
    assert (told.event, told.memory.id, told.memory.staleness) == ("cleared", made, 0)


async def _read(stream: Any) -> Any:
    async with asyncio.timeout(60):
        return await anext(aiter(stream))


async def _remembered(stack: Stack, n: int) -> str:
    return str((await stack.post("/v1/remember", {"content": f"Sack {n} is full."}))["id"])
