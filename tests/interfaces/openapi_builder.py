"""Builds the OpenAPI 3.1 document from the routes and their models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from reverie.contracts.base import Problem
from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS
from reverie.contracts.problems import HTTP_STATUS, PROBLEM_TITLES, build_problem
from reverie.runtime.http.calls import JSON_MEDIA_TYPE
from reverie.runtime.http.routes import Route
from tests.interfaces.openapi_examples import QUERY_EXAMPLES, REQUEST_EXAMPLES, build_example

Json = dict[str, Any]
Schemas = Mapping[tuple[type[BaseModel], JsonSchemaMode], Json]
SCHEMA_REF = "#/components/schemas/{model}"
PROBLEM_JSON = "application/problem+json"
_PATH_VARIABLE = re.compile(r"\{(\w+)\}")
_PUBLIC_CODES = ("invalid", "unavailable", "internal")
_COMMON_CODES = ("malformed", "unauthenticated", "forbidden", "not_found", "conflict", "invalid")
_KEYED_CODES = (*_COMMON_CODES, "too_large", "too_many", "unavailable", "internal")
_OPERATION_NAMES = {
    (one.method, one.path): one.name for one in (*OPERATIONS, *SPECIAL_OPERATIONS)
} | {
    (one.method, one.path.replace("{kind}", kind)): one.name.replace("_", f"_{kind}_")
    for one in OPERATIONS
    for kind in ("github", "gitlab")
    if "{kind}" in one.path
}
_TRACE = {"X-Trace-Id": {"$ref": "#/components/headers/TraceId"}}


def build_openapi(routes: Iterable[Route], version: str) -> Json:
    """Builds the whole document. Routes of all services may be given: the gateway serves them."""
    table = sorted(routes, key=lambda entry: (entry.path, entry.method))
    schemas, definitions = _schemas(table)
    paths: dict[str, Json] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _build_operation(
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
        for model, mode in _route_models(route):
            used[model, mode] = None
    schemas, combined = models_json_schema(list(used), ref_template=SCHEMA_REF)
    return {key: schemas[key] for key in used}, combined["$defs"]


def _route_models(route: Route) -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    if route.body:
        yield route.body, "validation"
    if route.query:
        yield route.query, "validation"
    if route.response:
        yield route.response, "serialization"


def _build_operation(route: Route, schemas: Schemas, defs: Json) -> Json:
    operation: Json = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [_tag(route)],
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, schemas, defs),
            *_header_parameters(route),
        ],
        "responses": _responses(route, schemas, defs),
    }
    if route.public:
        operation["security"] = []
    if body := _request_body(route, schemas):
        operation["requestBody"] = body
    return operation


def _request_body(route: Route, schemas: Schemas) -> Json | None:
    if route.body:
        content: Json = {"schema": schemas[route.body, "validation"]}
        if (example := REQUEST_EXAMPLES.get(route.name)) is not None:
            content["examples"] = {"usual": {"value": example}}
        return {
            "required": any(field.is_required() for field in route.body.model_fields.values()),
            "content": {JSON_MEDIA_TYPE: content},
        }
    if not route.request_media_types:
        return None
    example = REQUEST_EXAMPLES.get(route.name, "")
    return {
        "required": True,
        "content": {
            media: {"schema": {}, "examples": {"usual": {"value": example}}}
            for media in route.request_media_types
        },
    }


def _responses(route: Route, schemas: Schemas, defs: Json) -> Json:
    content: Json = {}
    if route.response:
        schema = schemas[route.response, "serialization"]
        example = build_example(schema, defs)
        content[JSON_MEDIA_TYPE] = {"schema": schema, "examples": {"usual": {"value": example}}}
    for media, example in route.response_examples.items():
        content[media] = {"schema": {"type": "string"}, "examples": {"usual": {"value": example}}}
    headers = {
        **_TRACE,
        **({"ETag": {"$ref": "#/components/headers/ETag"}} if route.supports_etag else {}),
    }
    success = {"description": route.summary or "Done", "headers": headers, "content": content}
    codes = list(_PUBLIC_CODES if route.public and route.method == "GET" else _KEYED_CODES)
    if route.supports_etag and route.method != "GET":
        codes.append("precondition_failed")
    failures: dict[str, Json] = {
        str(status): {"$ref": f"#/components/responses/{status}"}
        for status in sorted({HTTP_STATUS[code] for code in codes})
    }
    if route.supports_etag and route.method == "GET":
        failures["304"] = {"description": "It stands as the ETag in If-None-Match says"}
    if route.path == "/ready":
        failures["503"] = success
    return {str(route.status): success, **failures}


def _path_parameters(route: Route) -> Iterator[Json]:
    for name in _PATH_VARIABLE.findall(route.path):
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


def _query_parameters(route: Route, schemas: Schemas, defs: Json) -> Iterator[Json]:
    if route.query is None:
        return
    schema = defs[schemas[route.query, "validation"]["$ref"].rpartition("/")[2]]
    examples = QUERY_EXAMPLES.get(route.name, {})
    for name, property_schema in schema["properties"].items():
        parameter: Json = {"name": name, "in": "query", "schema": _without_null(property_schema)}
        if name in schema.get("required", ()):
            parameter["required"] = True
        if name in examples:
            parameter["example"] = examples[name]
        yield parameter


def _without_null(schema: Json) -> Json:
    """Removes null from a parameter's schema: null cannot be sent in a URL."""
    kinds = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "title")}
    if rest.get("default", 0) is None:
        del rest["default"]
    if not kinds:
        return rest
    return {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **rest}


def _header_parameters(route: Route) -> Iterator[Json]:
    if route.method != "GET":
        yield {"$ref": "#/components/parameters/IdempotencyKey"}
    if route.supports_etag:
        which = "IfNoneMatch" if route.method == "GET" else "IfMatch"
        yield {"$ref": f"#/components/parameters/{which}"}
    if "text/event-stream" in route.response_examples:
        yield {"$ref": "#/components/parameters/LastEventId"}


def _components(definitions: Json) -> Json:
    return {
        "schemas": definitions,
        "responses": {
            str(status): _problem_response(status) for status in sorted({*HTTP_STATUS.values()})
        },
        "parameters": {
            "IdempotencyKey": _header_parameter(
                "Idempotency-Key",
                "What is sent again with the same key takes effect once",
                {"type": "string", "pattern": "^[ -~]{1,255}$"},
                "f3b1c2d4",
            ),
            "IfMatch": _header_parameter(
                "If-Match", "The ETag of the version to change", {"type": "string"}, '"3"'
            ),
            "IfNoneMatch": _header_parameter(
                "If-None-Match", "The ETag that is known", {"type": "string"}, '"3"'
            ),
            "LastEventId": _header_parameter(
                "Last-Event-ID", "The id of the last event that was seen", {"type": "string"}, ""
            ),
        },
        "headers": {
            "TraceId": {"description": "Finds the call in traces and logs", "schema": _STRING},
            "ETag": {
                "description": 'The version, as `"3"`; where a memory is read, with a hash of all'
                ' that is shown, as `"3-9f2c01ab"`',
                "schema": _STRING,
            },
            "RetryAfter": {"description": "Seconds", "schema": {"type": "integer"}},
        },
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }


_STRING = {"type": "string"}


def _header_parameter(name: str, description: str, schema: Json, example: str) -> Json:
    header = {"name": name, "in": "header", "description": description, "schema": schema}
    return {**header, "example": example} if example else header


def _problem_response(status: int) -> Json:
    codes = [code for code, code_status in HTTP_STATUS.items() if code_status == status]
    retry_headers = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
    return {
        "description": "; ".join(PROBLEM_TITLES[code] for code in codes),
        "headers": {**_TRACE, **(retry_headers if status in {429, 503} else {})},
        "content": {
            PROBLEM_JSON: {
                "schema": {"$ref": SCHEMA_REF.format(model="Problem")},
                "examples": {
                    code: {
                        "value": build_problem(
                            code, _DETAILS.get(code, PROBLEM_TITLES[code])
                        ).model_dump(exclude_none=True)
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
    "precondition_failed": (
        "the current version is 4, not the one in If-Match: read the memory again"
    ),
}


def _tag(route: Route) -> str:
    parts = route.path.strip("/").split("/")
    return parts[1] if parts[0] == "v1" else "service"


def _operation_id(route: Route) -> str:
    """The name of the operation at all interfaces; of other routes, their method and path."""
    if name := _OPERATION_NAMES.get((route.method, route.path)):
        return name
    words = re.findall(r"\w+", route.path.removeprefix("/v1/"))
    return "_".join([route.method.lower(), *words])
