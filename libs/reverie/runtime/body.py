"""What a client sent, turned into a model or into an error that names the field.

No text passes that the store could not hold: NUL characters and broken UTF-8 are refused
here, once, for every door.
"""

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

from reverie.domain.errors import Invalid, Malformed

MAX_DEPTH = 32
MAX_ERRORS = 50
_LONGEST_NAME = 100

Model = TypeVar("Model", bound=BaseModel)


@dataclass
class InvalidFields(Invalid):
    """{field}: {reason}"""

    errors: list[dict[str, str]] = field(default_factory=list)


class Query(BaseModel):
    """Base of query parameters: text is converted, unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def parse_body(model: type[Model], data: bytes) -> Model:
    """The body as `model`; an empty one counts as `{}`.

    Raises `Malformed` naming line and column where it is no JSON, `Invalid` naming the field.
    """
    value = _load(data) if data.strip() else {}
    return parse_value(model, value)


def parse_value(model: type[Model], value: object, at: str = "") -> Model:
    """Decoded JSON as `model`; `at` is where it stands in the body, as `items.3`."""
    _check_storable(value, at)
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise _invalid(model, error, at) from None


def parse_query(model: type[Model] | None, query: MultiMapping[str]) -> Model | None:
    """Query parameters as `model`; where the route has none, any parameter is refused."""
    given = {name: _query_value(model, query.getall(name), name) for name in query}
    _check_storable(given, "")
    if model is None:
        for name in given:
            raise Invalid(_clip(name), "unknown parameter: this call takes none")
        return None
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _invalid(model, error, "") from None


def check_path(params: Mapping[str, str]) -> None:
    """Raises `Invalid` where a part of the path could not be stored."""
    _check_storable(dict(params), "")


def _load(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Malformed(f"the body is not JSON: {error.msg} ({where})") from None
    except RecursionError:
        raise Malformed(f"the body is nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        raise Malformed(f"the body is not JSON: {_first_words(error)}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _first_words(error: ValueError) -> str:
    """Python tells how to lift its limit on digits after a semicolon; that is not for clients."""
    return str(error).partition(";")[0].partition(":")[0]


def _check_storable(value: object, at: str) -> None:
    if _is_storable(value):
        return
    for path, item in _walk(value, at):
        reason = _unstorable(item)
        if reason:
            raise Invalid(path or "body", reason)


def _is_storable(value: object, depth: int = 0) -> bool:
    """Whether nothing inside is to be refused; in a fraction of the time that naming it takes."""
    if isinstance(value, str):
        return (value.isascii() and "\x00" not in value) or _unstorable(value) is None
    if isinstance(value, dict):
        return depth < MAX_DEPTH and all(
            _is_storable(name) and _is_storable(inner, depth + 1) for name, inner in value.items()
        )
    if isinstance(value, list):
        return depth < MAX_DEPTH and all(_is_storable(inner, depth + 1) for inner in value)
    return _unstorable(value) is None


def _walk(value: object, at: str) -> Iterator[tuple[str, object]]:
    """Every text and number inside, with its dotted path; names count as text of their owner."""
    waiting: list[tuple[str, object, int]] = [(at, value, 0)]
    while waiting:
        path, item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Invalid(path, f"nested deeper than {MAX_DEPTH}")
        if isinstance(item, dict):
            yield from ((path, name) for name in item)
            waiting.extend((_join(path, name), inner, depth + 1) for name, inner in item.items())
        elif isinstance(item, list):
            waiting.extend((_join(path, i), inner, depth + 1) for i, inner in enumerate(item))
        else:
            yield path, item


def _unstorable(item: object) -> str | None:
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


def _join(path: str, name: object) -> str:
    clipped = _clip(str(name))
    return f"{path}.{clipped}" if path else clipped


def _clip(name: str) -> str:
    """A field name fit for an answer: clients may have sent anything as a name."""
    printable = name.encode("utf-8", "replace").decode().replace("\x00", "?")
    return printable if len(printable) <= _LONGEST_NAME else printable[:_LONGEST_NAME] + "…"


def _query_value(model: type[BaseModel] | None, values: list[str], name: str) -> object:
    known = model.model_fields.get(name) if model else None
    if known is not None and _takes_many(known.annotation):
        return values
    if len(values) > 1:
        raise Invalid(_clip(name), "given more than once")
    return values[0]


def _takes_many(annotation: Any) -> bool:
    inside = getattr(annotation, "__args__", ())
    return get_origin(annotation) in {list, tuple} or any(
        get_origin(one) in {list, tuple} for one in inside
    )


def _invalid(model: type[BaseModel], error: ValidationError, at: str) -> InvalidFields:
    details = error.errors(include_url=False, include_input=False)[:MAX_ERRORS]
    errors = [{"field": _path(detail, at), "reason": _reason(model, detail)} for detail in details]
    return InvalidFields(errors[0]["field"], errors[0]["reason"], errors)


def _path(detail: ErrorDetails, at: str) -> str:
    path = at
    for part in detail["loc"]:
        path = _join(path, part)
    return path or "body"


def _reason(model: type[BaseModel], detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is required"
    if detail["type"] == "extra_forbidden":
        return _unknown(model, detail["loc"])
    if detail["type"] == "timezone_aware":
        return "input should have a timezone, as 2026-01-31T10:00:00Z"
    text = detail["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _unknown(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    near = get_close_matches(str(loc[-1]), model.model_fields, n=1) if len(loc) == 1 else []
    return f"unknown field; did you mean {near[0]}?" if near else "unknown field"
