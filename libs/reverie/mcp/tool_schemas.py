"""Builds short JSON schemas for tools from the contracts.

They repeat no limits or formats: the REST call behind a tool validates its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]
_SCHEMA_KEYS = ("type", "enum")
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def string_schema(description: str = "") -> Schema:
    """A string."""
    return with_description({"type": "string"}, description)


def string_list_schema(description: str = "") -> Schema:
    """A list of strings."""
    return with_description({"type": "array", "items": {"type": "string"}}, description)


def integer_schema(description: str = "") -> Schema:
    """An integer."""
    return with_description({"type": "integer"}, description)


def with_description(schema: Schema, description: str) -> Schema:
    """The schema with a description, if there is one."""
    return {**schema, "description": description} if description else schema


def field_schema(model: type[BaseModel], name: str, description: str = "") -> Schema:
    """A field of a contract: its type and its choices."""
    model_schema = _model_schema(model, "validation")
    return with_description(
        _shorten(model_schema["properties"][name], model_schema.get("$defs", {})), description
    )


def field_schemas(model: type[BaseModel], **descriptions: str) -> dict[str, Schema]:
    """The fields of a contract by name, each with its description or with none."""
    return {name: field_schema(model, name, text) for name, text in descriptions.items()}


def arguments_schema(properties: Mapping[str, Schema], *required: str) -> Schema:
    """The schema of a tool's arguments."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return {**schema, "required": list(required)} if required else schema


def result_schema(model: type[BaseModel], *names: str) -> Schema:
    """The schema of a result: the fields of a contract that a model looks for."""
    model_schema = _model_schema(model, "serialization")
    defs = model_schema.get("$defs", {})
    field_types = {name: _type_only(model_schema["properties"][name], defs) for name in names}
    return {"type": "object", "properties": field_types}


def convert_values(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The arguments, where a text that can only mean a value of the schema's type is that value.

    Models write `"5"` for 5, and one text for a list of one.
    """
    properties: Mapping[str, Schema] = schema.get("properties", {})
    return {
        name: _convert_text(value, properties.get(name, {})) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _convert_text(text: str, schema: Schema) -> Any:
    """The value that a text means where the schema asks for another type, else the text."""
    wanted = schema.get("type")
    if wanted in (None, "string"):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, _PYTHON_TYPES[wanted]) and (wanted == "boolean") == isinstance(
        value, bool
    ):
        return value
    is_word = wanted == "array" and text.strip() and schema.get("items", {}).get("type") == "string"
    return [text] if is_word else text


def operation_schema(
    document: Mapping[str, Any],
    spec: Mapping[str, Any],
    path_fields: Sequence[str],
    body_field: str | None = None,
) -> Schema:
    """The arguments of an operation of an OpenAPI document: path, query and body in one schema.

    `body_field`: the argument that holds the whole body, if there is one.
    """
    defs = document.get("components", {}).get("schemas", {})
    properties: dict[str, Any] = {name: string_schema() for name in path_fields}
    required = [*path_fields]
    for value in spec.get("parameters", ()):
        parameter = _resolve_reference(document, value)
        if parameter.get("in") == "query":
            properties[parameter["name"]] = _shorten(parameter.get("schema", {}), defs)
            required += [parameter["name"]] if parameter.get("required") else []
    content = spec.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = _resolve_reference(document, content.get("schema", {}))
    inner = {name: _shorten(value, defs) for name, value in body.get("properties", {}).items()}
    if body_field:
        properties[body_field] = (
            {"type": "object", "properties": inner} if inner else {"type": "object"}
        )
        return arguments_schema(properties, *required, body_field)
    schema = arguments_schema(properties | inner, *required, *body.get("required", ()))
    return with_description(schema, " ".join(str(body.get("description", "")).split()))


def _resolve_reference(document: Mapping[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The target of a reference within the document."""
    while "$ref" in value:
        target: Any = document
        for name in str(value["$ref"]).split("/")[1:]:
            target = target[name]
        value = target
    return value


@cache
def _model_schema(model: type[BaseModel], mode: Any) -> Schema:
    return model.model_json_schema(mode=mode)


def _type_only(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    """The type, without nested properties."""
    kind = _shorten(schema, defs).get("type")
    return {"type": kind} if kind else {}


def _shorten(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    if "$ref" in schema:
        return _shorten(defs[schema["$ref"].rpartition("/")[2]], defs)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return _shorten(choices[0], defs)
    shortened = {name: schema[name] for name in _SCHEMA_KEYS if name in schema}
    if shortened.get("type") == "array" and "items" in schema:
        inner = _shorten(schema["items"], defs)
        return {**shortened, "items": {name: inner[name] for name in _SCHEMA_KEYS if name in inner}}
    return shortened
