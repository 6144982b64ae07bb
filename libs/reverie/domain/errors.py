"""The one error tree. A class's docstring is its message; facts are typed fields.

A message says what was wrong and what to do, never a secret. The doors map the
classes to HTTP, gRPC and MCP through one table (`reverie.contracts.problems`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any, ClassVar


@dataclass(eq=False)
class ReverieError(Exception):
    """Something went wrong inside Reverie."""

    code: ClassVar[str] = "internal"

    def __str__(self) -> str:
        return cleandoc(type(self).__doc__ or "").splitlines()[0].format(**self.facts())

    def facts(self) -> dict[str, Any]:
        """The typed fields by name, for problem documents and logs."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(eq=False)
class Invalid(ReverieError):
    """{field}: {reason}"""

    code = "invalid"
    field: str
    reason: str


@dataclass(eq=False)
class Malformed(ReverieError):
    """{reason}"""

    code = "malformed"
    reason: str


@dataclass(eq=False)
class TooLarge(ReverieError):
    """{field} holds {size} bytes; the limit is {limit} ({setting})"""

    code = "too_large"
    field: str
    size: int
    limit: int
    setting: str


@dataclass(eq=False)
class Unauthenticated(ReverieError):
    """the key is missing or unknown: send `Authorization: Bearer <key>`"""

    code = "unauthenticated"


@dataclass(eq=False)
class Forbidden(ReverieError):
    """this key may not {action} scope {scope}"""

    code = "forbidden"
    action: str
    scope: str


@dataclass(eq=False)
class ForeignPage(ReverieError):
    """a page of {origin} may not call this: only pages of this host or of this machine may"""

    code = "forbidden"
    origin: str


@dataclass(eq=False)
class ForeignHost(ReverieError):
    """{host} is none of the names of this service: name it in `allowed_hosts`"""

    code = "forbidden"
    host: str


@dataclass(eq=False)
class NotFound(ReverieError):
    """no {what} {id} that this key may read"""

    code = "not_found"
    what: str
    id: str


@dataclass(eq=False)
class Conflict(ReverieError):
    """{reason}"""

    code = "conflict"
    reason: str
    current: dict[str, Any] | None = None


@dataclass(eq=False)
class Moved(ReverieError):
    """version {version} stands, not the one in If-Match: read the memory again"""

    code = "precondition_failed"
    version: int


@dataclass(eq=False)
class IdempotencyMismatch(ReverieError):
    """the idempotency key {key} was used before with another body: choose a new key"""

    code = "idempotency_mismatch"
    key: str


@dataclass(eq=False)
class Unavailable(ReverieError):
    """{what} does not answer: {hint}"""

    code = "unavailable"
    what: str
    hint: str
    retry_after: float = 1.0


@dataclass(eq=False)
class Crowded(ReverieError):
    """{running} {what} are under way and {waiting} wait: try again shortly"""

    code = "unavailable"
    what: str
    running: int
    waiting: int
    retry_after: float = 1.0


@dataclass(eq=False)
class TooMany(ReverieError):
    """this {whose} has no more of its {limit} {what}: wait {retry_after} seconds"""

    code = "too_many"
    whose: str
    what: str
    limit: int
    retry_after: float


@dataclass(eq=False)
class Misconfigured(ReverieError):
    """{setting}: {reason}"""

    code = "misconfigured"
    setting: str
    reason: str
