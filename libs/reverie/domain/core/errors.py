"""The error classes of Reverie, and helpers that name the invalid field.

A class's docstring is its message. The table in `reverie.contracts.problems` maps each class to
HTTP, gRPC and MCP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from typing import Any, ClassVar


@dataclass(eq=False)
class ReverieError(Exception):
    """Something went wrong inside Reverie."""

    code: ClassVar[str] = "internal"

    def __str__(self) -> str:
        # The whole first paragraph: a message that is wrapped in the source does not end there.
        paragraph = cleandoc(type(self).__doc__ or "").partition("\n\n")[0]
        return " ".join(paragraph.split()).format(**self.details())

    def details(self) -> dict[str, Any]:
        """The typed fields by name, for problem documents and logs."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(eq=False)
class InvalidInput(ReverieError):
    """{field}: {reason}"""

    code = "invalid"
    field: str
    reason: str


@dataclass(eq=False)
class MalformedInput(ReverieError):
    """{reason}"""

    code = "malformed"
    reason: str


@dataclass(eq=False)
class PayloadTooLarge(ReverieError):
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
class OriginNotAllowed(ReverieError):
    """a page of {origin} may not call this: only pages of this host or of this machine may"""

    code = "forbidden"
    origin: str


@dataclass(eq=False)
class HostNotAllowed(ReverieError):
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
class PreconditionFailed(ReverieError):
    """the current version is {version}, not the one in If-Match: read the memory again"""

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
class Overloaded(ReverieError):
    """{running} {what} are under way and {waiting} wait: try again shortly"""

    code = "unavailable"
    what: str
    running: int
    waiting: int
    retry_after: float = 1.0


@dataclass(eq=False)
class QuotaExceeded(ReverieError):
    """this {subject} has used its {limit} {what}: wait {retry_after} seconds"""

    code = "too_many"
    subject: str
    what: str
    limit: int
    retry_after: float


@dataclass(eq=False)
class TenantFull(ReverieError):
    """this tenant holds as many memories as it may ({limit}): archive or forget some, or raise the
    limit `memories`
    """

    code = "full"
    limit: int


@dataclass(eq=False)
class Misconfigured(ReverieError):
    """{setting}: {reason}"""

    code = "misconfigured"
    setting: str
    reason: str


@contextmanager
def field_context(field: str) -> Iterator[None]:
    """An `InvalidInput` raised inside it names `field`."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(field, error.reason) from None


def prefix_field(prefix: str, error: ReverieError) -> ReverieError:
    """The error with `prefix`, such as `items.3`, before its field; unchanged without a field."""
    if isinstance(error, InvalidInput | PayloadTooLarge):
        return replace(error, field=f"{prefix}.{error.field}")
    return error
