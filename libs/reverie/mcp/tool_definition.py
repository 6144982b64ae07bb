"""The definition of a tool, and the kind of tool that makes one REST call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import parse_kind
from reverie.domain.extraction.content_checks import classify_kind
from reverie.domain.extraction.own_memories import is_own_preference
from reverie.mcp.rest_calls import (
    RestCallError,
    RestClient,
    call_rest,
    invalid_argument,
    quote_argument,
    rename_fields,
)
from reverie.mcp.tool_results import compact, fence_body, shorten
from reverie.mcp.tool_schemas import Schema

ToolProfile = Literal["full", "minimal"]
Arguments: TypeAlias = Mapping[str, Any]
Body: TypeAlias = dict[str, Any]
ToolFunction: TypeAlias = Callable[[RestClient, Arguments], Awaitable[Body]]


@dataclass(frozen=True)
class ToolHints:
    """Hints that a client may show before a tool is used."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


READ_ONLY = ToolHints(read_only=True)
ADDITIVE = ToolHints()
IDEMPOTENT = ToolHints(idempotent=True)
"""Adds or changes; repeating the call changes nothing more."""
DESTRUCTIVE = ToolHints(destructive=True, idempotent=True)


@dataclass(frozen=True)
class Tool:
    """A tool: its description for models, and the function behind it.

    `project_argument`: the argument that gets the server's default project if a call names neither
    it nor one of its `alternative_arguments`. `returns_memories`: the result is compacted and
    fenced. `is_fenced`: the result is fenced but not compacted. `result_fields`: the only fields
    of the result, unchanged. `render_text`: renders the text content in place of JSON, given
    the result and the arguments.
    """

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    run: ToolFunction
    hints: ToolHints = READ_ONLY
    project_argument: Literal["scope", "project"] | None = None
    alternative_arguments: tuple[str, ...] = ()
    returns_memories: bool = False
    result_fields: tuple[str, ...] = ()
    is_fenced: bool = False
    render_text: Callable[[Body, Arguments], str] | None = None

    async def call(self, rest: RestClient, arguments: Arguments, project: str | None) -> Body:
        """The result as data. Raises `RestCallError`."""
        body = await self.run(rest, self.with_project(arguments, project))
        if self.is_fenced:
            return fence_body(body)
        if self.result_fields:
            return {name: body[name] for name in self.result_fields if name in body}
        return fence_body(shorten(compact(body))) if self.returns_memories else dict(compact(body))

    def with_project(self, arguments: Arguments, project: str | None) -> Arguments:
        """The arguments, with the default project where they name none."""
        if self.project_argument is None or project is None:
            return arguments
        alternatives = (
            ("scope", "scopes", "session")
            if self.project_argument == "project"
            else self.alternative_arguments
        )
        return fill_project(arguments, project, self.project_argument, alternatives)


def fill_project(
    arguments: Arguments,
    project: str,
    project_argument: Literal["scope", "project"],
    alternatives: tuple[str, ...],
) -> Arguments:
    """The arguments with the project, unless they name one or one of the alternatives."""
    if any(arguments.get(name) for name in (project_argument, *alternatives)):
        return arguments
    value = f"project/{project}" if project_argument == "scope" else project
    return {**arguments, project_argument: value}


@dataclass(frozen=True)
class RestCall:
    """Makes one REST call.

    `{id}` in the path is the argument `id`. `nested`: the body field that an argument belongs
    into. The other arguments go into the body of a POST or PATCH, or into the query. REST rejects
    unknown ones.
    """

    method: str
    path: str
    nested: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, rest: RestClient, arguments: Arguments) -> Body:
        path, remaining = self._build_path(arguments)
        fields = {**self.defaults, **remaining}
        for name, owner in self.nested.items():
            if name in fields:
                fields[owner] = {**(fields.get(owner) or {}), name: fields.pop(name)}
        in_body = self.method in {"POST", "PATCH"}
        try:
            if in_body:
                return await call_rest(rest, self.method, path, None, fields)
            return await call_rest(rest, self.method, path, _check_query(fields))
        except RestCallError as error:
            field_paths = {name: f"{owner}.{name}" for name, owner in self.nested.items()}
            raise rename_fields(error, field_paths) from None

    def _build_path(self, arguments: Arguments) -> tuple[str, dict[str, Any]]:
        remaining = {name: value for name, value in arguments.items() if value is not None}
        if "{id}" not in self.path:
            return self.path, remaining
        remaining.pop("id", None)
        return self.path.replace("{id}", quote_argument(arguments, "id")), remaining


def _check_query(query: Arguments) -> dict[str, Any]:
    """The query parameters. Raises `RestCallError` if one is neither a plain value nor a list."""
    for name, value in query.items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int | float | bool) for item in values):
            raise invalid_argument(name, "input should be a plain value")
    return dict(query)


def is_own_statement(tool: str, arguments: Arguments, project: str | None) -> bool:
    """Whether a call of `remember` without a scope stores a preference of the user."""
    content = arguments.get("content")
    if tool != "remember" or arguments.get("scope") or not isinstance(content, str):
        return False
    try:
        kind = parse_kind(str(arguments["kind"])) if arguments.get("kind") else None
    except ReverieError:
        return False
    return is_own_preference(kind or classify_kind(content), content, (), project)
