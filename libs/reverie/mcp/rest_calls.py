"""The REST calls behind the tools, independent of the transport that carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from reverie.contracts.base import Problem
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import InvalidInput, ReverieError

RestQuery: TypeAlias = Mapping[str, Any]


class RestClient(Protocol):
    """Makes one REST call with the API key of the MCP client.

    Returns the status and the decoded JSON body, or the text of a body that is not JSON. Raises a
    `ReverieError` if there is no response. A `body` of type `str` is sent as JSON lines.
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
    """A failed REST call; `problem` describes the error."""

    problem: Problem


def invalid_argument(name: str, reason: str) -> RestCallError:
    """The error of an argument that is missing or wrong."""
    return RestCallError(problem_from_error(InvalidInput(name, reason)))


async def call_rest(
    rest: RestClient, method: str, path: str, query: RestQuery | None = None, body: Any = None
) -> dict[str, Any]:
    """The body of a successful call. Raises `RestCallError`."""
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
    """Like `call_rest`, for calls whose response may be text."""
    try:
        status, answer = await rest(method, path, query, body, headers)
    except ReverieError as error:
        raise RestCallError(problem_from_error(error)) from error
    if status >= 400:
        raise RestCallError(parse_rest_problem(status, answer))
    return answer


def encode_query(query: RestQuery | None) -> str:
    """The query string with its question mark. None is left out; a list repeats its name."""
    pairs = [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in (query or {}).items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else [value])
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def quote_argument(arguments: Mapping[str, Any], name: str) -> str:
    """An argument as a path segment. Raises `RestCallError` if it is missing or not a string."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        reason = "is required" if value is None else "input should be a text that is not empty"
        raise invalid_argument(name, reason)
    return quote(value.strip(), safe="")


def rename_fields(error: RestCallError, names: Mapping[str, str]) -> RestCallError:
    """The same error, with the tool's argument names in place of the REST field names."""
    document = error.problem
    for tool, rest in names.items():
        if document.field is not None and f"{document.field}.".startswith(f"{rest}."):
            field = tool + document.field.removeprefix(rest)
            detail = field + document.detail.removeprefix(document.field)
            return RestCallError(document.model_copy(update={"field": field, "detail": detail}))
    return error


def parse_rest_problem(status: int, body: Any) -> Problem:
    """Parses the problem document of an error response; creates one if the body has none."""
    try:
        return Problem.model_validate(body)
    except ValidationError:
        code = "unavailable" if status >= 500 else "malformed"
        return build_problem(
            code, f"the gateway's address answered {status}, but not as Reverie does"
        )
