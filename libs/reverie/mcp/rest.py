"""The REST calls that tools are made of, whoever carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from reverie.contracts.base import Problem
from reverie.contracts.problems import problem, problem_of
from reverie.domain.errors import Invalid, ReverieError

Query: TypeAlias = Mapping[str, Any]


class Rest(Protocol):
    """Carries out one call with the key of whoever asks.

    Answers the status and the body, decoded, or a text where it is no JSON; raises a
    `ReverieError` where nothing answers. A `body` that is a text is sent as JSON lines.
    """

    async def __call__(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]: ...


@dataclass
class Failed(Exception):
    """A call that was refused, or that nothing answered."""

    problem: Problem


async def ask(
    rest: Rest, method: str, path: str, query: Query | None = None, body: Any = None
) -> dict[str, Any]:
    """The body of a good answer. Raises `Failed` with the problem document of any other."""
    found = await ask_any(rest, method, path, query, body)
    return found if isinstance(found, dict) else {}


async def ask_any(
    rest: Rest,
    method: str,
    path: str,
    query: Query | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The same of a call that may answer with a text; `headers` go with it."""
    try:
        status, found = await rest(method, path, query, body, headers)
    except ReverieError as error:
        raise Failed(problem_of(error)) from error
    if status >= 400:
        raise Failed(problem_in(status, found))
    return found


def parameters(query: Query | None) -> str:
    """The query of an address, with its question mark; None is left out, lists repeat."""
    pairs = [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in (query or {}).items()
        if value is not None
        for one in (value if isinstance(value, list | tuple) else [value])
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def part(arguments: Mapping[str, Any], name: str) -> str:
    """An argument as a part of a path. Raises `Failed` where it is missing or no text."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        reason = "is required" if value is None else "input should be a text that is not empty"
        raise Failed(problem_of(Invalid(name, reason)))
    return quote(value.strip(), safe="")


def renamed(failed: Failed, names: Mapping[str, str]) -> Failed:
    """The same failure, with the fields called as the tool calls them."""
    told = failed.problem
    for tool, rest in names.items():
        if told.field is not None and f"{told.field}.".startswith(f"{rest}."):
            field = tool + told.field.removeprefix(rest)
            detail = field + told.detail.removeprefix(told.field)
            return Failed(told.model_copy(update={"field": field, "detail": detail}))
    return failed


def several(values: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(values)


def problem_in(status: int, body: Any) -> Problem:
    """The problem document of a refusal; what is none becomes one."""
    try:
        return Problem.model_validate(body)
    except ValidationError:
        code = "unavailable" if status >= 500 else "malformed"
        return problem(code, f"the gateway's address answered {status}, but not as Reverie does")
