"""The OpenAPI 3.1 document of routes, made of the models that read and write their bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from reverie.contracts.base import Problem
from reverie.contracts.examples import QUERIES, REQUESTS, example_of
from reverie.contracts.problems import HTTP_STATUS, TITLES, problem
from reverie.runtime.calls import JSON
from reverie.runtime.routes import Route

Json = dict[str, Any]
Schemas = Mapping[tuple[type[BaseModel], JsonSchemaMode], Json]
REF = "#/components/schemas/{model}"
PROBLEM_JSON = "application/problem+json"
_VARIABLE = re.compile(r"\{(\w+)\}")
_OPEN_CODES = ("invalid", "unavailable", "internal")
_CODES = ("malformed", "unauthenticated", "forbidden", "not_found", "conflict", "invalid")
_KEYED_CODES = (*_CODES, "too_large", "too_many", "unavailable", "internal")
_TRACE = {"X-Trace-Id": {"$ref": "#/components/headers/TraceId"}}


def document(routes: Iterable[Route], version: str) -> Json:
    """The whole document. Routes of all services may be given: the gateway answers for them."""
    table = sorted(routes, key=lambda one: (one.path, one.method))
    schemas, definitions = _schemas(table)
    paths: dict[str, Json] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schemas, definitions
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reverie",
            "version": version,
            "description": "Long-term memory for coding agents. Times are RFC 3339 with an "
            "offset, ids are UUIDs, scores run from 0 to 1. Errors are problem documents (RFC "
            "9457) with a stable `code`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in sorted({_tag(route) for route in table})],
        "paths": paths,
        "components": _components(definitions),
    }


def _schemas(table: list[Route]) -> tuple[Schemas, Json]:
    used: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {(Problem, "serialization"): None}
    for route in table:
        for model, mode in _models(route):
            used[model, mode] = None
    schemas, whole = models_json_schema(list(used), ref_template=REF)
    return {used_as: schemas[used_as] for used_as in used}, whole["$defs"]


def _models(route: Route) -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    if route.body:
        yield route.body, "validation"
    if route.query:
        yield route.query, "validation"
    if route.answer:
        yield route.answer, "serialization"


def _operation(route: Route, schemas: Schemas, defs: Json) -> Json:
    operation: Json = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [_tag(route)],
        "parameters": [*_path(route), *_query(route, schemas, defs), *_headers(route)],
        "responses": _responses(route, schemas, defs),
    }
    if route.open:
        operation["security"] = []
    if body := _body(route, schemas):
        operation["requestBody"] = body
    return operation


def _body(route: Route, schemas: Schemas) -> Json | None:
    if route.body:
        content: Json = {"schema": schemas[route.body, "validation"]}
        if (example := REQUESTS.get(route.name)) is not None:
            content["examples"] = {"usual": {"value": example}}
        return {"required": bool(_required(route.body)), "content": {JSON: content}}
    if not route.takes:
        return None
    example = REQUESTS.get(route.name, "")
    return {
        "required": True,
        "content": {
            media: {"schema": {}, "examples": {"usual": {"value": example}}}
            for media in route.takes
        },
    }


def _required(model: type[BaseModel]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.is_required()]


def _responses(route: Route, schemas: Schemas, defs: Json) -> Json:
    content: Json = {}
    if route.answer:
        schema = schemas[route.answer, "serialization"]
        example = example_of(schema, defs)
        content[JSON] = {"schema": schema, "examples": {"usual": {"value": example}}}
    for media, example in route.gives.items():
        content[media] = {"schema": {"type": "string"}, "examples": {"usual": {"value": example}}}
    headers = {
        **_TRACE,
        **({"ETag": {"$ref": "#/components/headers/ETag"}} if route.tagged else {}),
    }
    told = {"description": route.summary or "Done", "headers": headers, "content": content}
    codes = list(_OPEN_CODES if route.open and route.method == "GET" else _KEYED_CODES)
    if route.tagged and route.method != "GET":
        codes.append("precondition_failed")
    refused: dict[str, Json] = {
        str(status): {"$ref": f"#/components/responses/{status}"}
        for status in sorted({HTTP_STATUS[code] for code in codes})
    }
    if route.tagged and route.method == "GET":
        refused["304"] = {"description": "It stands as the ETag in If-None-Match says"}
    if route.path == "/ready":
        refused["503"] = told
    return {str(route.status): told, **refused}


def _path(route: Route) -> Iterator[Json]:
    for name in _VARIABLE.findall(route.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            "example": _PATH_EXAMPLES.get(name, "shop"),
        }


_PATH_EXAMPLES = {
    "id": "01936f1e-5b7a-7c11-9d2e-3a4b5c6d7e8f",
    "key": "deploy-host",
    "name": "shop",
    "project": "shop",
    "tenant": "acme",
}


def _query(route: Route, schemas: Schemas, defs: Json) -> Iterator[Json]:
    if route.query is None:
        return
    schema = defs[schemas[route.query, "validation"]["$ref"].rpartition("/")[2]]
    examples = QUERIES.get(route.name, {})
    for name, given in schema["properties"].items():
        one: Json = {"name": name, "in": "query", "schema": _without_null(given)}
        if name in schema.get("required", ()):
            one["required"] = True
        if name in examples:
            one["example"] = examples[name]
        yield one


def _without_null(schema: Json) -> Json:
    """What a parameter may be that is given: null cannot be sent in an address."""
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    rest = {k: v for k, v in schema.items() if k not in ("anyOf", "title")}
    if rest.get("default", 0) is None:
        del rest["default"]
    if not kinds:
        return rest
    return {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **rest}


def _headers(route: Route) -> Iterator[Json]:
    if route.method != "GET":
        yield {"$ref": "#/components/parameters/IdempotencyKey"}
    if route.tagged:
        which = "IfNoneMatch" if route.method == "GET" else "IfMatch"
        yield {"$ref": f"#/components/parameters/{which}"}
    if route.socket or "text/event-stream" in route.gives:
        yield {"$ref": "#/components/parameters/LastEventId"}


def _components(definitions: Json) -> Json:
    return {
        "schemas": definitions,
        "responses": {str(status): _refusal(status) for status in sorted({*HTTP_STATUS.values()})},
        "parameters": {
            "IdempotencyKey": _header(
                "Idempotency-Key",
                "What is sent again with the same key takes effect once",
                {"type": "string", "pattern": "^[ -~]{1,255}$"},
                "f3b1c2d4",
            ),
            "IfMatch": _header(
                "If-Match", "The ETag of the version to change", {"type": "string"}, '"3"'
            ),
            "IfNoneMatch": _header(
                "If-None-Match", "The ETag that is known", {"type": "string"}, '"3"'
            ),
            "LastEventId": _header(
                "Last-Event-ID", "The id of the last event that was seen", {"type": "string"}, ""
            ),
        },
        "headers": {
            "TraceId": {"description": "Finds the call in traces and logs", "schema": _STRING},
            "ETag": {"description": 'The version, as `"3"`', "schema": _STRING},
            "RetryAfter": {"description": "Seconds", "schema": {"type": "integer"}},
        },
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }


_STRING = {"type": "string"}


def _header(name: str, description: str, schema: Json, example: str) -> Json:
    made = {"name": name, "in": "header", "description": description, "schema": schema}
    return {**made, "example": example} if example else made


def _refusal(status: int) -> Json:
    codes = [code for code, one in HTTP_STATUS.items() if one == status]
    waits = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
    return {
        "description": "; ".join(TITLES[code] for code in codes),
        "headers": {**_TRACE, **(waits if status in {429, 503} else {})},
        "content": {
            PROBLEM_JSON: {
                "schema": {"$ref": REF.format(model="Problem")},
                "examples": {
                    code: {
                        "value": problem(code, _DETAILS.get(code, TITLES[code])).model_dump(
                            exclude_none=True
                        )
                    }
                    for code in codes
                },
            }
        },
    }


_DETAILS = {
    "invalid": "kind: 'rumour' is none",
    "not_found": "no memory 5c6d7e8f that this key may read",
    "forbidden": "this key may not write scope project/shop",
    "precondition_failed": "version 4 stands, not the one in If-Match: read the memory again",
}


def _tag(route: Route) -> str:
    parts = route.path.strip("/").split("/")
    return parts[1] if parts[0] == "v1" else "service"


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/v1/"))
    return "_".join([route.method.lower(), *words])
