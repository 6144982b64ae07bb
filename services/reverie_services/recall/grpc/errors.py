"""Turns errors into gRPC statuses that carry the problem document as metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.json_format import ParseDict

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.base import Problem
from reverie.contracts.problems import GRPC_STATUS, problem_from_error
from reverie.domain.core.errors import ReverieError

log = structlog.get_logger()

PROBLEM_METADATA_KEY = "reverie-problem-bin"
_MAX_PROBLEM_BYTES = 4096
"""Bytes: clients take little more than this in all the metadata of an answer."""


async def abort_with_problem(context: Any, problem: Problem, status: str | None = None) -> NoReturn:
    """Ends the call with the problem; `status` where the code's own does not say enough."""
    status_code = grpc.StatusCode[status or GRPC_STATUS.get(problem.code, "INTERNAL")]
    details = f"{problem.code}: {problem.detail}"
    await context.abort(
        status_code, details, trailing_metadata=((PROBLEM_METADATA_KEY, _encode_problem(problem)),)
    )
    raise AssertionError("a call that was ended went on")


@asynccontextmanager
async def abort_on_error(context: Any) -> AsyncIterator[None]:
    """What fails unforeseen within is logged, and told as REST tells it: that it did, no more."""
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except ReverieError as error:
        await abort_with_problem(context, problem_from_error(error))
    except Exception as error:
        log.exception("call_failed", error=type(error).__name__)
        await abort_with_problem(context, problem_from_error(ReverieError()))


def _encode_problem(problem: Problem) -> bytes:
    """The document, without what stands now or what else is wrong where that is too long."""
    body = problem.model_dump(mode="json", exclude_none=True)
    message = ParseDict(body, pb.Problem(), ignore_unknown_fields=True)
    for field_name in ("current", "errors", "detail"):
        if message.ByteSize() > _MAX_PROBLEM_BYTES:
            message.ClearField(field_name)
    encoded: bytes = message.SerializeToString()
    return encoded
