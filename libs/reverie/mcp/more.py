"""The tool `more`: every operation that has no tool of its own, told when it is asked for.

What an operation takes is read from the gateway's own document, so that a model is told of the
gateway that runs. Names are few and schemas come one at a time: the list of tools stays short.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from reverie.contracts.operations import APART, OPERATIONS, VARIABLE, Operation
from reverie.contracts.problems import problem_of
from reverie.domain.errors import Invalid
from reverie.mcp.answers import harmless_in
from reverie.mcp.rest import Failed, Rest, ask, ask_any, part
from reverie.mcp.schema import Schema, told_of, whole
from reverie.mcp.tool import Arguments, Body

WITHHELD = {
    "make_key": "the key would stand in the conversation: `reverie key create`",
    "rotate_key": "the key would stand in the conversation: `reverie key rotate`",
    "vault_get": "the value would stand in the conversation: `reverie vault get`",
    "set_webhook": "its secret would stand in the conversation: `reverie admin webhooks set`",
}
"""What a model may not do, why, and how a person does it."""
_PAGED = Operation("watch_memories", "GET", "/v1/events/page")
_DATA, _VERSION = "data", "version"
_ABOUT = {
    "watch_memories": "what happened since the `after` of the last page; without: where to begin",
    "import": "`data`: the JSON lines of an export",
    "export": "all that may be read, as JSON lines; of few scopes, for it must fit one answer",
}


@cache
def operations() -> dict[str, Operation]:
    """Those that can be asked for, by name."""
    apart = {one.name: one for one in APART}
    apart[_PAGED.name] = _PAGED
    return {**{one.name: one for one in OPERATIONS}, **apart}


async def more(rest: Rest, given: Arguments) -> Body:
    """`more`: lists operations, tells what one takes, or carries it out."""
    name, arguments = given.get("operation"), given.get("arguments")
    for other in given.keys() - {"operation", "arguments"}:
        raise _wrong(other, "belongs into arguments")
    if name is None:
        return await _listed(rest)
    one = _named(name)
    if arguments is None:
        return await _described(rest, one)
    if not isinstance(arguments, Mapping):
        raise _wrong("arguments", "input should be an object")
    return await _done(rest, one, dict(arguments))


def _named(name: object) -> Operation:
    known = operations()
    if not isinstance(name, str) or name not in known:
        near = get_close_matches(str(name), known, n=3)
        there = f"did you mean {' or '.join(near)}?" if near else "call more alone for the list"
        raise _wrong("operation", f"there is no such operation: {there}")
    if name in WITHHELD:
        raise _wrong("operation", f"is for people, {WITHHELD[name]}")
    return known[name]


async def _listed(rest: Rest) -> Body:
    document = await ask(rest, "GET", "/openapi.json")
    found = {
        name: _about(document, one) for name, one in operations().items() if name not in WITHHELD
    }
    return {"operations": found}


async def _described(rest: Rest, one: Operation) -> Body:
    """What it is for and the schema of its arguments; `arguments: {}` carries it out."""
    document = await ask(rest, "GET", "/openapi.json")
    return {
        "operation": one.name,
        "about": _about(document, one),
        "arguments": _takes(document, one),
    }


def _about(document: Mapping[str, Any], one: Operation) -> str:
    said = str(_spec(document, one).get("summary") or one.name)
    return f"{said}; {_ABOUT[one.name]}" if one.name in _ABOUT else said


def _takes(document: Mapping[str, Any], one: Operation) -> Schema:
    if one.name == "import":
        made = told_of(document, _spec(document, one), one.places)
        made["properties"][_DATA] = {"type": "string"}
        return {**made, "required": [_DATA]}
    made = told_of(document, _spec(document, one), one.places, one.whole)
    if one.tagged:
        made["properties"][_VERSION] = whole("only where this one stands")
    return made


def _spec(document: Mapping[str, Any], one: Operation) -> Mapping[str, Any]:
    """The part of the document; one of the kinds where a path has several."""
    path = one.path.replace("{kind}", "github")
    spec: Mapping[str, Any] = document.get("paths", {}).get(path, {}).get(one.method.lower(), {})
    return spec


async def _done(rest: Rest, one: Operation, fields: dict[str, Any]) -> Body:
    path = VARIABLE.sub(lambda name: part(fields, name[1]), one.path)
    for name in one.places:
        fields.pop(name, None)
    if one.name == "import":
        return await _taken(rest, fields)
    held = fields.pop(_VERSION, None) if one.tagged else None
    headers = None if held is None else {"If-Match": f'"{held}"'}
    query, body = one.sent(fields)
    sent = body if body or one.method == "POST" else None
    found = await ask_any(rest, one.method, path, query, sent, headers)
    if isinstance(found, str) or one.name == "export":
        return {_DATA: found if isinstance(found, str) else ""}
    return dict(harmless_in(found)) if isinstance(found, Mapping) else {}


async def _taken(rest: Rest, fields: dict[str, Any]) -> Body:
    data = fields.pop(_DATA, None)
    if not isinstance(data, str):
        raise _wrong(_DATA, "is required: the JSON lines of an export")
    return dict(harmless_in(await ask(rest, "POST", "/v1/import", fields, data)))


def _wrong(field: str, reason: str) -> Failed:
    return Failed(problem_of(Invalid(field, reason)))
