"""Parses request bodies and query parameters into models; errors name the field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar, get_origin

from multidict import MultiMapping
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from reverie.domain.core.errors import InvalidInput, MalformedInput, PayloadTooLarge

MAX_DEPTH = 32
MAX_ERRORS = 50
_MAX_NAME_LENGTH = 100
_MAX_LISTED_FIELDS = 12
_A_TIME = "is no date and time, as 2026-01-31T10:00:00Z"
_A_DAY = "is no date, as 2026-01-31"
_PLAIN_REASONS = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "date_from_datetime_parsing": _A_DAY,
    "date_parsing": _A_DAY,
    "datetime_from_date_parsing": _A_TIME,
    "datetime_parsing": _A_TIME,
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "list_type": "should be a list",
    "string_too_long": "is too long: at most {max_length} characters",
    "string_too_short": "is too short: at least {min_length} characters",
    "string_type": "should be a text",
    "timezone_aware": "needs a timezone, as 2026-01-31T10:00:00Z",
    "too_long": "has too many items: at most {max_length}",
    "too_short": "has too few items: at least {min_length}",
    "uuid_parsing": "is no full id (a UUID of 32 digits)",
    "uuid_type": "is no full id (a UUID of 32 digits)",
}
"""Plain words for the commonest errors of pydantic, by their type."""

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass
class InvalidFields(InvalidInput):
    """{field}: {reason}"""

    errors: list[dict[str, str]] = field(default_factory=list)


class QueryParams(BaseModel):
    """Base of query parameters: text is converted, unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def parse_body(model: type[ModelT], data: bytes) -> ModelT:
    """Parses the body as `model`; an empty body counts as `{}`.

    Raises `MalformedInput` with line and column if it is not JSON, and `InvalidInput` with the
    field.
    """
    value = _parse_json(data) if data.strip() else {}
    return parse_value(model, value)


def parse_value(model: type[ModelT], value: object, base_path: str = "") -> ModelT:
    """Validates decoded JSON as `model`; `base_path` is its path in the body, such as `items.3`."""
    _check_storable(value, base_path)
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise _to_invalid_fields(model, error, base_path) from None


def parse_query(model: type[ModelT] | None, query: MultiMapping[str]) -> ModelT | None:
    """Parses query parameters as `model`; if the route has none, rejects any parameter."""
    values = {name: _query_value(model, query.getall(name), name) for name in query}
    _check_storable(values, "")
    if model is None:
        for name in values:
            raise InvalidInput(_truncate_name(name), "unknown parameter: this call takes none")
        return None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _to_invalid_fields(model, error, "") from None


def check_size(field: str, text: str, limit: int, setting: str) -> None:
    """Raises `PayloadTooLarge` if the text has more bytes than the setting allows."""
    size = len(text.encode())
    if size > limit:
        raise PayloadTooLarge(field, size, limit, setting)


def check_path(params: Mapping[str, str]) -> None:
    """Raises `InvalidInput` if a part of the path could not be stored."""
    _check_storable(dict(params), "")


def _parse_json(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise MalformedInput(f"the body is not JSON: {error.msg} ({position})") from None
    except RecursionError:
        raise MalformedInput(f"the body is nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        # After a semicolon, Python explains how to lift its limit of digits.
        reason = str(error).partition(";")[0].partition(":")[0]
        raise MalformedInput(f"the body is not JSON: {reason}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _check_storable(value: object, base_path: str) -> None:
    if _is_storable(value):
        return
    for path, item in _walk(value, base_path):
        reason = _unstorable_reason(item)
        if reason:
            raise InvalidInput(path or "body", reason)


def _is_storable(value: object, depth: int = 0) -> bool:
    """Whether nothing inside is to be refused; in a fraction of the time that naming it takes."""
    if isinstance(value, str):
        return (value.isascii() and "\x00" not in value) or _unstorable_reason(value) is None
    if isinstance(value, dict):
        return depth < MAX_DEPTH and all(
            _is_storable(name) and _is_storable(inner, depth + 1) for name, inner in value.items()
        )
    if isinstance(value, list):
        return depth < MAX_DEPTH and all(_is_storable(inner, depth + 1) for inner in value)
    return _unstorable_reason(value) is None


def _walk(value: object, base_path: str) -> Iterator[tuple[str, object]]:
    """Every text and number inside, with its dotted path; names count as text of their owner."""
    pending: list[tuple[str, object, int]] = [(base_path, value, 0)]
    while pending:
        path, item, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise InvalidInput(path, f"nested deeper than {MAX_DEPTH}")
        if isinstance(item, dict):
            yield from ((path, name) for name in item)
            pending.extend(
                (_join_path(path, name), inner, depth + 1) for name, inner in item.items()
            )
        elif isinstance(item, list):
            pending.extend((_join_path(path, i), inner, depth + 1) for i, inner in enumerate(item))
        else:
            yield path, item


def _unstorable_reason(item: object) -> str | None:
    if isinstance(item, float) and not isfinite(item):
        return "the number is out of range"
    if not isinstance(item, str):
        return None
    if "\x00" in item:
        return "holds a NUL character"
    try:
        item.encode()
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    return None


def _join_path(path: str, name: object) -> str:
    clipped = _truncate_name(str(name))
    return f"{path}.{clipped}" if path else clipped


def _truncate_name(name: str) -> str:
    """A field name fit for an answer: clients may have sent anything as a name."""
    printable = name.encode("utf-8", "replace").decode().replace("\x00", "?")
    return printable if len(printable) <= _MAX_NAME_LENGTH else printable[:_MAX_NAME_LENGTH] + "…"


def _query_value(model: type[BaseModel] | None, values: list[str], name: str) -> object:
    field_info = model.model_fields.get(name) if model else None
    if field_info is not None and _is_list_type(field_info.annotation):
        return values
    if len(values) > 1:
        raise InvalidInput(_truncate_name(name), "given more than once")
    return values[0]


def _is_list_type(annotation: Any) -> bool:
    arguments = getattr(annotation, "__args__", ())
    return get_origin(annotation) in {list, tuple} or any(
        get_origin(argument) in {list, tuple} for argument in arguments
    )


def _to_invalid_fields(
    model: type[BaseModel], error: ValidationError, base_path: str
) -> InvalidFields:
    details = error.errors(include_url=False, include_input=False)[:MAX_ERRORS]
    errors = [
        {"field": _field_path(detail, base_path), "reason": _reason(model, detail)}
        for detail in details
    ]
    return InvalidFields(errors[0]["field"], errors[0]["reason"], errors)


def _field_path(detail: ErrorDetails, base_path: str) -> str:
    path = base_path
    for part in detail["loc"]:
        path = _join_path(path, part)
    return path or "body"


def _reason(model: type[BaseModel], detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is required"
    if detail["type"] == "extra_forbidden":
        return _unknown_field_reason(model, detail["loc"])
    context = detail.get("ctx", {})
    if context.get("min_length") == 1:
        return "is empty"
    # A text with a validator of its own is measured as a value of any type.
    is_long_text = detail["type"] == "too_long" and context.get("field_type") == "Value"
    if template := _PLAIN_REASONS.get("string_too_long" if is_long_text else detail["type"]):
        return template.format(**context)
    text = detail["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _unknown_field_reason(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    if len(loc) > 1:
        return "unknown field"
    names = sorted(field.alias or name for name, field in model.model_fields.items())
    if suggestions := get_close_matches(str(loc[-1]), names, n=1):
        return f"unknown field; did you mean {suggestions[0]}?"
    if len(names) > _MAX_LISTED_FIELDS:
        return "unknown field"
    return f"unknown field; there are {', '.join(names)}" if names else "unknown field"
