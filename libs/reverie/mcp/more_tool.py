"""The tool `more`: lists, describes and runs every operation that has no tool of its own.

The arguments of an operation are read from the OpenAPI document of the running gateway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal

from reverie.contracts.operations import OPERATIONS, PATH_VARIABLE, SPECIAL_OPERATIONS, Operation
from reverie.mcp.rest_calls import (
    RestClient,
    call_rest,
    call_rest_any,
    invalid_argument,
    quote_argument,
)
from reverie.mcp.tool_definition import Arguments, Body, fill_project, is_own_statement
from reverie.mcp.tool_results import escape_tags
from reverie.mcp.tool_schemas import Schema, convert_values, integer_schema, operation_schema

WITHHELD_OPERATIONS = {
    "create_key": "the key would stand in the conversation: `reverie key create`",
    "rotate_key": "the key would stand in the conversation: `reverie key rotate`",
    "set_webhook": "its secret would stand in the conversation: `reverie admin webhooks set`",
    "delete_project": "it cannot be undone: `reverie admin projects delete`",
    "delete_scope": "it cannot be undone: `reverie admin scopes delete`",
    "delete_tenant": "it cannot be undone: `reverie admin tenants delete`",
    "approve_call": "no model may approve what asks a person: `reverie groups approve`",
    "watch_group": "it has no end: `list_messages` has the answers, or `reverie groups watch`",
}
"""Operations that a model may not run: the reason, and the command for people."""
_EVENT_PAGE = Operation("watch_memories", "GET", "/v1/events/page")
_NUMBER_OR_LIST = re.compile(r"\s*(-?\d+(\.\d+)?|true|false|[\[{].*)\s*$", re.DOTALL)
"""Texts that may mean another value, if the operation asks for one."""
_DATA_FIELD, _VERSION_FIELD = "data", "version"
_HIDDEN_MESSAGE = "is a secret, and would stand in the conversation: `reverie vault get`"
_EXTRA_HELP = {
    "post_message": "then `list_messages` after its `no`, until its turns are over",
    "vault_get": "what is no secret, such as a counter or a cursor",
    "watch_memories": "what happened since the `after` of the last page; without: where to begin",
    "import": "`data`: the JSON lines of an export",
    "export": "all that may be read, as JSON lines; of few scopes, for it must fit one answer",
}

_PROJECT_ARGUMENTS: dict[str, Literal["scope", "project"]] = {
    **dict.fromkeys(("remember", "add_fact"), "scope"),
    **dict.fromkeys(("recall", "context", "predict", "session_start"), "project"),
    **dict.fromkeys(("list_unanchored", "set_anchors"), "project"),
}
"""The argument that gets the server's default project where a call names no place."""
_PLACES = ("project", "scope", "scopes", "session")


@cache
def available_operations() -> dict[str, Operation]:
    """The operations by name."""
    others = {operation.name: operation for operation in SPECIAL_OPERATIONS}
    others[_EVENT_PAGE.name] = _EVENT_PAGE
    return {**{operation.name: operation for operation in OPERATIONS}, **others}


def with_default_project(fields: Arguments, project: str | None, knows_user: bool) -> Arguments:
    """The fields of a call, with the default project where a tool would have it."""
    name, arguments = str(fields.get("operation")), fields.get("arguments")
    if project is None or not isinstance(arguments, Mapping):
        return fields

    def fill(name: str, given: Arguments) -> Arguments:
        argument = _PROJECT_ARGUMENTS.get(name)
        if argument is None or (knows_user and is_own_statement(name, given, project)):
            return given
        return fill_project(given, project, argument, _PLACES)

    items = arguments.get("items")
    if name == "remember_batch" and isinstance(items, list):
        filled = [fill("remember", item) if isinstance(item, Mapping) else item for item in items]
        return {**fields, "arguments": {**arguments, "items": filled}}
    return {**fields, "arguments": fill(name, arguments)}


async def run_more(rest: RestClient, fields: Arguments) -> Body:
    """Lists the operations, describes one, or runs it."""
    name, arguments = fields.get("operation"), fields.get("arguments")
    for other in fields.keys() - {"operation", "arguments"}:
        raise invalid_argument(other, "belongs into arguments")
    if name is None:
        return await _describe_all(rest)
    operation = _find_operation(name)
    if arguments is None:
        return await _describe_operation(rest, operation)
    if not isinstance(arguments, Mapping):
        raise invalid_argument("arguments", "input should be an object")
    return await _execute(rest, operation, dict(arguments))


def _find_operation(name: object) -> Operation:
    available = available_operations()
    if not isinstance(name, str) or name not in available:
        suggestions = get_close_matches(str(name), available, n=3)
        hint = (
            f"did you mean {' or '.join(suggestions)}?"
            if suggestions
            else "call more alone for the list"
        )
        raise invalid_argument("operation", f"there is no such operation: {hint}")
    if name in WITHHELD_OPERATIONS:
        raise invalid_argument("operation", f"is for people, {WITHHELD_OPERATIONS[name]}")
    return available[name]


async def _describe_all(rest: RestClient) -> Body:
    document = await call_rest(rest, "GET", "/openapi.json")
    summaries = {
        name: _summarize(document, operation)
        for name, operation in available_operations().items()
        if name not in WITHHELD_OPERATIONS
    }
    return {"operations": summaries}


async def _describe_operation(rest: RestClient, operation: Operation) -> Body:
    """The summary of an operation and the schema of its arguments."""
    document = await call_rest(rest, "GET", "/openapi.json")
    return {
        "operation": operation.name,
        "about": _summarize(document, operation),
        "arguments": _argument_schema(document, operation),
    }


def _summarize(document: Mapping[str, Any], operation: Operation) -> str:
    summary = str(_find_spec(document, operation).get("summary") or operation.name)
    return f"{summary}; {_EXTRA_HELP[operation.name]}" if operation.name in _EXTRA_HELP else summary


def _argument_schema(document: Mapping[str, Any], operation: Operation) -> Schema:
    if operation.name == "import":
        schema = operation_schema(document, _find_spec(document, operation), operation.path_fields)
        schema["properties"][_DATA_FIELD] = {"type": "string"}
        return {**schema, "required": [_DATA_FIELD]}
    schema = operation_schema(
        document, _find_spec(document, operation), operation.path_fields, operation.payload_field
    )
    if operation.uses_if_match:
        schema["properties"][_VERSION_FIELD] = integer_schema("only where this one stands")
    return schema


def _find_spec(document: Mapping[str, Any], operation: Operation) -> Mapping[str, Any]:
    """The operation's part of the document."""
    path = operation.path.replace("{kind}", "github")
    spec: Mapping[str, Any] = (
        document.get("paths", {}).get(path, {}).get(operation.method.lower(), {})
    )
    return spec


async def _execute(rest: RestClient, operation: Operation, fields: dict[str, Any]) -> Body:
    path = PATH_VARIABLE.sub(lambda name: quote_argument(fields, name[1]), operation.path)
    for name in operation.path_fields:
        fields.pop(name, None)
    if any(isinstance(value, str) and _NUMBER_OR_LIST.match(value) for value in fields.values()):
        document = await call_rest(rest, "GET", "/openapi.json")
        fields = convert_values(fields, _argument_schema(document, operation))
    if operation.name == "import":
        return await _import_data(rest, fields)
    version = fields.pop(_VERSION_FIELD, None) if operation.uses_if_match else None
    headers = None if version is None else {"If-Match": f'"{version}"'}
    query, body = operation.split_fields(fields)
    request_body = body if body or operation.method == "POST" else None
    result = await call_rest_any(rest, operation.method, path, query, request_body, headers)
    if operation.name == "vault_get" and isinstance(result, Mapping) and result["secret"]:
        raise invalid_argument("key", _HIDDEN_MESSAGE)
    if isinstance(result, str) or operation.name == "export":
        return {_DATA_FIELD: result if isinstance(result, str) else ""}
    return dict(escape_tags(result)) if isinstance(result, Mapping) else {}


async def _import_data(rest: RestClient, fields: dict[str, Any]) -> Body:
    data = fields.pop(_DATA_FIELD, None)
    if not isinstance(data, str):
        raise invalid_argument(_DATA_FIELD, "is required: the JSON lines of an export")
    return dict(escape_tags(await call_rest(rest, "POST", "/v1/import", fields, data)))
