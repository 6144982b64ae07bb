"""What a tool is, and how most of them run: one REST call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from reverie.contracts.problems import problem_of
from reverie.domain.errors import Invalid
from reverie.mcp.answers import fenced, short
from reverie.mcp.rest import Failed, Rest, ask, part, renamed
from reverie.mcp.schema import Schema

Arguments: TypeAlias = Mapping[str, Any]
Body: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[[Rest, Arguments], Awaitable[Body]]


@dataclass(frozen=True)
class Hints:
    """What a client may show of a tool before it is used."""

    reads: bool = False
    destroys: bool = False
    repeatable: bool = False


READS = Hints(reads=True)
ADDS = Hints()
SETTLES = Hints(repeatable=True)
"""Adds or changes; the same call again changes nothing more."""
REMOVES = Hints(destroys=True, repeatable=True)


@dataclass(frozen=True)
class Tool:
    """A tool: what a model is told of it, and what it does.

    `home`: the argument that names a place, filled with the project the server is bound to where
    a caller leaves it out, and the arguments `instead` of it too. `text`: what is shown in place
    of JSON. `recalls`: the answer holds memories, and is fenced. `keeps`: fields that are passed
    on as they are, and no others. `fences`: the answer is fenced as it is.
    """

    name: str
    description: str
    inputs: Schema
    outputs: Schema
    run: Run
    hints: Hints = READS
    home: Literal["scope", "project"] | None = None
    instead: tuple[str, ...] = ()
    recalls: bool = False
    keeps: tuple[str, ...] = ()
    fences: bool = False
    text: Callable[[Body], str] | None = None

    async def call(self, rest: Rest, given: Arguments, project: str | None) -> Body:
        """The answer as data. Raises `Failed`."""
        body = await self.run(rest, self._at_home(given, project))
        if self.fences:
            return fenced(body)
        if self.keeps:
            return {name: body[name] for name in self.keeps if name in body}
        return fenced(short(body)) if self.recalls else dict(short(body))

    def _at_home(self, given: Arguments, project: str | None) -> Arguments:
        if self.home is None or project is None:
            return given
        others = ("scope", "scopes", "session") if self.home == "project" else self.instead
        if any(given.get(name) for name in (self.home, *others)):
            return given
        return {**given, self.home: f"project/{project}" if self.home == "scope" else project}


@dataclass(frozen=True)
class One:
    """Runs one REST call.

    `{name}` in the path takes that argument. `renames`: arguments that REST calls otherwise.
    `inside`: arguments that lie within another field of the body. What is left goes into the
    body of a POST or PATCH, else into the query; REST says what it does not know.
    """

    method: str
    path: str
    renames: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, rest: Rest, given: Arguments) -> Body:
        path, rest_of = self._path(given)
        sent = {**self.fixed, **{self.renames.get(k, k): v for k, v in rest_of.items()}}
        for name, owner in self.inside.items():
            if name in sent:
                sent[owner] = {**(sent.get(owner) or {}), name: sent.pop(name)}
        in_body = self.method in {"POST", "PATCH"}
        try:
            if in_body:
                return await ask(rest, self.method, path, None, sent)
            return await ask(rest, self.method, path, _plain(sent))
        except Failed as failed:
            nested = {name: f"{owner}.{name}" for name, owner in self.inside.items()}
            raise renamed(failed, {**self.renames, **nested}) from None

    def _path(self, given: Arguments) -> tuple[str, dict[str, Any]]:
        path, left = self.path, {name: one for name, one in given.items() if one is not None}
        for name in [name for name in ("id",) if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", part(given, name))
            left.pop(name, None)
        return path, left


def _plain(query: Arguments) -> dict[str, Any]:
    """Parameters of a query. Raises `Failed` where one is no plain value or list of them."""
    for name, value in query.items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str | int | float | bool) for one in values):
            raise Failed(problem_of(Invalid(name, "input should be a plain value")))
    return dict(query)
