"""The REST calls behind the tools, independent of what carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from reverie.contracts.base import Problem
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import InvalidInput, ReverieError

RestQuery: TypeAlias = Mapping[str, Any]


class RestClient(Protocol):
    """Carries out one call with the key of whoever asks.

    Answers the status and the body, decoded, or a text where it is no JSON; raises a
    `ReverieError` where nothing answers. A `body` that is a text is sent as JSON lines.
    """

    async def __call__(
        self,
        method: str,
        path: str,
        query: RestQuery | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]: ...


@dataclass
class RestCallError(Exception):
    """A call that was refused, or that nothing answered."""

    problem: Problem


async def call_rest(
    rest: RestClient, method: str, path: str, query: RestQuery | None = None, body: Any = None
) -> dict[str, Any]:
    """The body of a good answer. Raises `RestCallError` with the problem document of any other."""
    answer = await call_rest_any(rest, method, path, query, body)
    return answer if isinstance(answer, dict) else {}


async def call_rest_any(
    rest: RestClient,
    method: str,
    path: str,
    query: RestQuery | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The same of a call that may answer with a text; `headers` go with it."""
    try:
        status, answer = await rest(method, path, query, body, headers)
    except ReverieError as error:
        raise RestCallError(problem_from_error(error)) from error
    if status >= 400:
        raise RestCallError(parse_rest_problem(status, answer))
    return answer


def encode_query(query: RestQuery | None) -> str:
    """The query of an address, with its question mark; None is left out, lists repeat."""
    pairs = [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in (query or {}).items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else [value])
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def quote_argument(arguments: Mapping[str, Any], name: str) -> str:
    """An argument as a part of a path. Raises `RestCallError` where it is missing or no text."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        reason = "is required" if value is None else "input should be a text that is not empty"
        raise RestCallError(problem_from_error(InvalidInput(name, reason)))
    return quote(value.strip(), safe="")


def rename_fields(error: RestCallError, names: Mapping[str, str]) -> RestCallError:
    """The same failure, with the fields called as the tool calls them."""
    document = error.problem
    for tool, rest in names.items():
        if document.field is not None and f"{document.field}.".startswith(f"{rest}."):
            field = tool + document.field.removeprefix(rest)
            detail = field + document.detail.removeprefix(document.field)
            return RestCallError(document.model_copy(update={"field": field, "detail": detail}))
    return error


def join_names(values: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(values)


def parse_rest_problem(status: int, body: Any) -> Problem:
    """The problem document of a refusal; what is none becomes one."""
    try:
        return Problem.model_validate(body)
    except ValidationError:
        code = "unavailable" if status >= 500 else "malformed"
        return build_problem(
            code, f"the gateway's address answered {status}, but not as Reverie does"
        )
