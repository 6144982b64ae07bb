"""The form of a call that changes data, with a query for its effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, LiteralString

from chaos.clients import WORDS
from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS
from tests.support.stack import Stack

NOTED = "effect_put, committed"
BY_NAME = {one.name: one for one in (*OPERATIONS, *SPECIAL_OPERATIONS)}
MEMORY: LiteralString = "select version, status, pinned, confidence from memory where id = %s"


@dataclass(frozen=True)
class Case:
    """A call, a statement that tells its effect, with its argument, and the key it is sent with."""

    path: str
    body: Any = None
    state: LiteralString = MEMORY
    subject: object = None
    key: str | None = None
    lost: str = NOTED
    """The statement whose answer is lost: the one that brings the effect."""
    differs: frozenset[str] = frozenset()
    """Fields of the answer that tell what is so by now."""


Recipe = Callable[[Stack, int], Awaitable[Case]]


def text(*about: object) -> str:
    """A text that is near no other."""
    return " ".join(Random(repr(about)).sample(WORDS, 14))


async def remember(stack: Stack, content: str, **fields: Any) -> str:
    """The id of a new memory of the project."""
    body = {"content": content, "scope": "project/shop", **fields}
    return str((await stack.post("/v1/remember", body))["id"])
