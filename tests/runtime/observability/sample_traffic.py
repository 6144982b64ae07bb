"""Sends sample traffic through every interface, so that its telemetry can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from opentelemetry.trace import format_trace_id

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.runtime.observability.tracing import span
from tests.support.mcp_clients import call, over_http
from tests.support.stack import Stack

CONTENT = "Quinces ripen beside the kiln in src/orchard.py"
QUESTION = "where do the quinces ripen"
TURN = (
    "Remember: the orchard counts its quinces in crates, never in sacks. A crate holds forty of "
    "them, whatever the season, and the kiln takes six crates at once; the scale at the gate is "
    "read twice, for it sticks when the mornings are cold."
)
SHA = "a1" * 20


@dataclass(frozen=True)
class Tour:
    """The traces of its calls, by name."""

    traces: dict[str, str]
    session: str


async def tour(stack: Stack, grpc_port: int) -> Tour:
    """Writes, reads, a session with its dream, and a change of files; ends when all is done."""
    traces: dict[str, str] = {}

    async def over_rest(name: str, method: str, path: str, body: Any = None) -> Any:
        reply = await stack.call(method, path, body)
        assert reply.status < 300, reply
        traces[name] = reply.headers["X-Trace-Id"]
        return reply.body

    memory = {"content": CONTENT, "scope": "project/orchard", "kind": "decision"}
    await over_rest("remember", "POST", "/v1/remember", memory)
    start = {"agent": "claude", "project": "orchard"}
    session = (await over_rest("start", "POST", "/v1/sessions/start", start))["session"]
    turns = {"session": session, "turns": [{"role": "user", "content": TURN}]}
    await over_rest("turns", "POST", "/v1/turns", turns)
    await over_rest("preflow", "POST", "/v1/preflow", {"session": session, "query": QUESTION})
    await over_rest("recall", "POST", "/v1/recall", {"query": QUESTION})
    await over_rest("context", "GET", "/v1/context?project=orchard")
    await _over_grpc(stack.key, grpc_port, traces)
    await _over_mcp(stack, traces)
    await over_rest("end", "POST", f"/v1/sessions/{session}/end", {})
    change = {
        "project": "orchard",
        "branch": "main",
        "after": SHA,
        "commits": [{"sha": SHA, "committed_at": "2099-01-01T00:00:00Z"}],
        "files": [{"path": "src/orchard.py", "status": "deleted"}],
    }
    await stack.settled()
    await over_rest("change", "POST", "/v1/git/changes", change)
    await stack.settled()
    return Tour(traces, session)


async def _over_grpc(key: str, port: int, traces: dict[str, str]) -> None:
    traces["grpc"] = "9" * 31 + "1"
    carried = (
        ("authorization", f"Bearer {key}"),
        ("traceparent", f"00-{traces['grpc']}-{'b' * 15}1-01"),
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = ReverieStub(channel)
        await stub.Recall(pb.RecallRequest(query=QUESTION), metadata=carried)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetMemory(pb.MemoryRequest(id="none"), metadata=carried[:1])
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def _over_mcp(stack: Stack, traces: dict[str, str]) -> None:
    with span("an agent's turn") as turn:
        traces["mcp"] = format_trace_id(turn.get_span_context().trace_id)
        async with over_http(f"{stack.url}/mcp", stack.key) as client:
            await call(client, "recall", query=QUESTION)
            refused = await client.call_tool("history", {"id": "none"})
            assert getattr(refused, "is_error", False), refused
