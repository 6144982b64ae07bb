"""Converts gRPC messages, metadata and errors to and from those of the REST API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.json_format import Error as JsonFormatError
from google.protobuf.json_format import MessageToDict, ParseDict

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.base import Problem
from reverie.contracts.operations import FieldValues
from reverie.contracts.problems import GRPC_STATUS, problem_from_error
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.mcp.rest_calls import RestCallError
from reverie.runtime.http.idempotency import IDEMPOTENCY_HEADER, check_idempotency_key

log = structlog.get_logger()

PROBLEM_METADATA_KEY = "reverie-problem-bin"
_MAX_PROBLEM_BYTES = 4096
"""Clients accept little more than this in all the metadata of a response."""
_FORWARDED_METADATA = (
    "authorization",
    "traceparent",
    "user-agent",
    "idempotency-key",
    "reverie-user",
)


def decode_fields(request: Any) -> FieldValues:
    """The fields that are set in a request, by their REST names.

    Raises `InvalidInput` for what JSON cannot say: infinities, and times beyond the year 9999.
    """
    try:
        values = MessageToDict(request, preserving_proto_field_name=True)
    except (ValueError, JsonFormatError) as error:
        raise InvalidInput("body", "holds a number or a time that is out of range") from error
    fields: FieldValues = _restore_integers(values)
    return fields


def _restore_integers(value: Any) -> Any:
    """The value with whole numbers as integers: a `Struct` knows only doubles."""
    if isinstance(value, dict):
        return {name: _restore_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_restore_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def pop_idempotency_key(fields: FieldValues) -> dict[str, str]:
    """Takes the idempotency key out of the fields, as a header. Raises `InvalidInput`."""
    key = fields.pop("idempotency_key", None)
    if not key:
        return {}
    check_idempotency_key(key)
    return {IDEMPOTENCY_HEADER: key}


def encode_message(message_type: type[Any], body: FieldValues) -> Any:
    """A REST response body as a message. Fields that the message lacks are left out."""
    return ParseDict(body, message_type(), ignore_unknown_fields=True)


def forwarded_headers(context: Any) -> dict[str, str]:
    """The metadata that the REST API takes as headers, such as the API key."""
    metadata = dict(context.invocation_metadata() or ())
    return {
        name: metadata[name] for name in _FORWARDED_METADATA if isinstance(metadata.get(name), str)
    }


async def abort_with_problem(context: Any, problem: Problem, status: str | None = None) -> NoReturn:
    """Ends the call with a problem. `status` replaces the gRPC status of the problem's code."""
    status_code = grpc.StatusCode[status or GRPC_STATUS.get(problem.code, "INTERNAL")]
    details = f"{problem.code}: {problem.detail}"
    await context.abort(
        status_code, details, trailing_metadata=((PROBLEM_METADATA_KEY, _encode_problem(problem)),)
    )
    raise AssertionError("a call that was aborted went on")


@asynccontextmanager
async def abort_on_error(context: Any) -> AsyncIterator[None]:
    """Ends the call with a problem when an error is raised. Logs unexpected errors."""
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except RestCallError as error:
        await abort_with_problem(context, error.problem)
    except ReverieError as error:
        await abort_with_problem(context, problem_from_error(error))
    except Exception as error:
        log.exception("call_failed", error=type(error).__name__)
        await abort_with_problem(context, problem_from_error(ReverieError()))


def _encode_problem(problem: Problem) -> bytes:
    """The problem document, without its longest fields if it is too long."""
    body = problem.model_dump(mode="json", exclude_none=True)
    message = ParseDict(body, pb.Problem(), ignore_unknown_fields=True)
    for field_name in ("current", "errors", "detail"):
        if message.ByteSize() > _MAX_PROBLEM_BYTES:
            message.ClearField(field_name)
    encoded: bytes = message.SerializeToString()
    return encoded
