"""The operations table covers every route, and gRPC messages carry what REST does.

A new route is a line in `reverie.contracts.operations`, a call and its messages in `reverie.proto`
(`python -m tests.contracts.test_grpc_stubs` makes the stubs), and a case in `tests/interfaces`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pydantic import BaseModel

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS, Operation
from reverie.runtime.http.routes import Route
from tests.interfaces.test_openapi_document import ROUTES

NO_OPERATION = {
    "GET /docs": "a page for people",
    "GET /docs/redoc.js": "the script of that page",
    "GET /openapi.json": "a document about all others",
    "GET /health": "asks for the process alone; `health` asks for its parts too",
    "GET /metrics": "what Prometheus reads",
    "POST /mcp": "another door",
    "GET /v1/events/page": "`watch_memories` for who asks now and then",
    "GET /v1/skills/{id}/replay": "`replay` by another address",
    "POST /v1/git/github/{tenant}/{project}": "what a forge delivers, signed",
    "POST /v1/git/gitlab/{tenant}/{project}": "what a forge delivers, signed",
}
SERVICE = pb.DESCRIPTOR.services_by_name["Reverie"]
STREAMS = {"WatchMemories", "WatchStale", "Export", "Import", "Session"}
FORMATS = {("Context", "format")}
"""Of REST alone: there a media type is chosen."""


def test_routes_and_operations_correspond_one_to_one() -> None:
    known = {f"{one.method} {one.path}" for one in (*OPERATIONS, *SPECIAL_OPERATIONS)}
    routes = {_named(route) for route in ROUTES} - NO_OPERATION.keys()
    assert routes == known
    assert NO_OPERATION.keys() <= {route.name for route in ROUTES}
    names = [one.name for one in (*OPERATIONS, *SPECIAL_OPERATIONS)]
    assert len(names) == len(set(names))


def test_every_operation_is_a_grpc_call() -> None:
    assert {one.name for one in SERVICE.methods} == (
        {one.rpc_name for one in (*OPERATIONS, *SPECIAL_OPERATIONS)} | STREAMS
    )


def test_a_grpc_request_has_every_field_of_its_rest_request() -> None:
    missing = {
        (one.rpc_name, name)
        for one in OPERATIONS
        if not one.payload_field
        for name in _taken(one) - _fields(SERVICE.methods_by_name[one.rpc_name].input_type).keys()
    }
    assert missing == FORMATS


def test_a_grpc_answer_has_every_field_of_its_rest_answer() -> None:
    missing = {
        f"{one.rpc_name}: {name}"
        for one in OPERATIONS
        for name in _lacking(one, SERVICE.methods_by_name[one.rpc_name].output_type)
    }
    assert missing == set()


def test_every_call_and_stream_of_the_proto_is_documented() -> None:
    text = (files("reverie.contracts") / "reverie.proto").read_text()
    assert len(re.findall(r"//[^\n]*\n  rpc ", text)) == len(SERVICE.methods)


def _named(route: Route) -> str:
    return re.sub(r"/webhooks/(github|gitlab)/", "/webhooks/{kind}/", route.name)


def _route(one: Operation) -> Route:
    return next(route for route in ROUTES if _named(route) == f"{one.method} {one.path}")


def _taken(one: Operation) -> set[str]:
    route = _route(one)
    models = [model for model in (route.body, route.query) if model]
    fields = {info.alias or name for model in models for name, info in model.model_fields.items()}
    return fields | set(one.path_fields)


def _fields(message: Descriptor) -> dict[str, FieldDescriptor]:
    return dict(message.fields_by_name)


def _lacking(one: Operation, message: Descriptor) -> Iterator[str]:
    model = _route(one).response
    assert model is not None
    if one.name != "remember_batch":
        schema = model.model_json_schema(mode="serialization")
        yield from _less(schema, schema.get("$defs", {}), message, "")


def _less(schema: Any, defs: Any, message: Descriptor, at: str) -> Iterator[str]:
    """The fields of a schema that a message has not, those within fields too."""
    known = _fields(message)
    for name, inner in schema.get("properties", {}).items():
        if name not in known:
            yield f"{at}{name}"
            continue
        target = known[name].message_type
        if target is not None and target.GetOptions().map_entry:
            target = target.fields_by_name["value"].message_type
        named = _reference(inner)
        if target is not None and named and target.file.name.startswith("reverie"):
            yield from _less(defs[named], defs, target, f"{at}{name}.")


def _reference(schema: Any) -> str | None:
    """The model that a field holds, be it in a list, a map, or beside null."""
    found = re.search(r"'\$ref': '#/\$defs/(\w+)'", str(schema))
    return found[1] if found else None


def test_every_changing_operation_states_why_it_may_be_repeated() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    section = page.partition("## Requests sent twice\n")[2].partition("\n## ")[0]
    reads = {route.name for route in ROUTES if route.method == "GET" or route.read_only}
    changing = [
        one.name
        for one in (*OPERATIONS, *SPECIAL_OPERATIONS)
        if f"{one.method} {one.path}" not in reads
    ]
    assert sorted(re.findall(r"`([a-z_]+)`", section)) == sorted(changing)


def test_a_missing_answer_field_is_detected() -> None:
    class Inner(BaseModel):
        id: str
        unheard_of: int

    class Outer(BaseModel):
        items: list[Inner]

    schema = Outer.model_json_schema()
    page = pb.ListMemoriesResponse.DESCRIPTOR
    assert list(_less(schema, schema["$defs"], page, "")) == ["items.unheard_of"]
