"""The form of one interface test case: an operation, its input, its name in each interface."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS, Operation

if TYPE_CHECKING:
    from tests.interfaces.running_system import World

Fields = dict[str, Any]
Given = Callable[["World"], Awaitable[Fields]]
Holds = Callable[[Any, Fields], Any]

COMMAND_WORD = re.compile(r"[a-z][a-z-]*")
DOORS = ("REST", "MCP", "gRPC", "CLI", "client", "TypeScript")
KNOWN = {one.name: one for one in (*OPERATIONS, *SPECIAL_OPERATIONS)}


@dataclass(frozen=True)
class Case:
    """An operation and how it is used.

    `given` makes what it needs and answers its fields, by the names of REST; those that begin
    with `_` are for the check alone (`_key`: another key to ask with). `holds` looks at the answer
    as JSON, whichever door gave it; a list of the command line or the client is its `items`.

    `cli`: the command, with fields in braces; `stdin`: the field that it reads. `client`: the
    method, which takes the fields, some `renamed` or left out (None). `tool`: the tool of MCP and
    the fields as it calls them; without one it is `more`. `empty`: doors that do not have it, and
    why.
    """

    operation: str
    given: Given
    holds: Holds
    cli: str = ""
    client: str = ""
    tool: str = "more"
    stdin: str | None = None
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    empty: Mapping[str, str] = field(default_factory=dict)

    @property
    def call(self) -> Operation:
        """The operation itself."""
        return KNOWN[self.operation]

    @property
    def typescript(self) -> str:
        """The method of the TypeScript client."""
        name = self.operation.replace("_webhook", "_github_webhook")
        return to_camel(name.replace("_github_webhooks", "_webhooks"))

    @property
    def names(self) -> dict[str, str]:
        """What each door calls it, for people."""
        command = takewhile(COMMAND_WORD.fullmatch, self.cli.split())
        shown = {
            "REST": f"{self.call.method} {self.call.path}",
            "MCP": self.tool if self.tool != "more" else f"more: {self.operation}",
            "gRPC": self.call.rpc_name,
            "CLI": f"reverie {' '.join(command)}",
            "client": f"{self.client}()",
            "TypeScript": f"{self.typescript}()",
        }
        return {door: "" if door in self.empty else shown[door] for door in DOORS}


def said(fields: Fields) -> Fields:
    """The fields that are sent."""
    return {name: one for name, one in fields.items() if not name.startswith("_")}


def to_camel(name: str) -> str:
    """The name of an operation as TypeScript writes it."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)
