"""JSON schemas of tools, made of the contracts and kept short.

A schema tells a model what it may send. What it does send is validated by the REST call behind
the tool, so limits and formats are not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]
_KEPT = ("type", "enum")


def text(about: str = "") -> Schema:
    """A text."""
    return said({"type": "string"}, about)


def texts(about: str = "") -> Schema:
    """A list of texts."""
    return said({"type": "array", "items": {"type": "string"}}, about)


def whole(about: str = "") -> Schema:
    """A whole number."""
    return said({"type": "integer"}, about)


def said(schema: Schema, about: str) -> Schema:
    """The schema with a description, if there is one."""
    return {**schema, "description": about} if about else schema


def field(model: type[BaseModel], name: str, about: str = "") -> Schema:
    """A field of a contract, shortened to its type and its choices."""
    whole = _schema(model, "validation")
    return said(_short(whole["properties"][name], whole.get("$defs", {})), about)


def sent(properties: Mapping[str, Schema], *required: str) -> Schema:
    """The schema of a tool's arguments."""
    made: Schema = {"type": "object", "properties": dict(properties)}
    return {**made, "required": list(required)} if required else made


def told(model: type[BaseModel], *names: str) -> Schema:
    """The schema of an answer: fields of a contract that a model will look for."""
    whole = _schema(model, "serialization")
    defs = whole.get("$defs", {})
    kinds = {name: _outer(whole["properties"][name], defs) for name in names}
    return {"type": "object", "properties": kinds}


def told_of(
    document: Mapping[str, Any],
    spec: Mapping[str, Any],
    places: Sequence[str],
    whole: str | None = None,
) -> Schema:
    """The schema of what an operation of an OpenAPI document takes: path, query and body as one.

    `whole`: the name under which all of the body is given.
    """
    defs = document.get("components", {}).get("schemas", {})
    properties: dict[str, Any] = {name: text() for name in places}
    required = [*places]
    for one in spec.get("parameters", ()):
        told = _at(document, one)
        if told.get("in") == "query":
            properties[told["name"]] = _short(told.get("schema", {}), defs)
            required += [told["name"]] if told.get("required") else []
    content = spec.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = _at(document, content.get("schema", {}))
    inner = {name: _short(one, defs) for name, one in body.get("properties", {}).items()}
    if whole:
        properties[whole] = {"type": "object", "properties": inner} if inner else {"type": "object"}
        return sent(properties, *required, whole)
    made = sent(properties | inner, *required, *body.get("required", ()))
    return said(made, " ".join(str(body.get("description", "")).split()))


def _at(document: Mapping[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference within the document stands for."""
    while "$ref" in value:
        found: Any = document
        for name in str(value["$ref"]).split("/")[1:]:
            found = found[name]
        value = found
    return value


@cache
def _schema(model: type[BaseModel], mode: Any) -> Schema:
    return model.model_json_schema(mode=mode)


def _outer(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    """The type alone, without what lies inside."""
    kind = _short(schema, defs).get("type")
    return {"type": kind} if kind else {}


def _short(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    if "$ref" in schema:
        return _short(defs[schema["$ref"].rpartition("/")[2]], defs)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(choices) == 1:
        return _short(choices[0], defs)
    made = {name: schema[name] for name in _KEPT if name in schema}
    if made.get("type") == "array" and "items" in schema:
        inner = _short(schema["items"], defs)
        return {**made, "items": {name: inner[name] for name in _KEPT if name in inner}}
    return made
