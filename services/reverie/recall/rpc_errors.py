"""Refusals over gRPC: a status, the words, and the problem document as REST has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.json_format import ParseDict

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.base import Problem
from reverie.contracts.problems import GRPC_STATUS, problem_of
from reverie.domain.errors import ReverieError

log = structlog.get_logger()

PROBLEM = "reverie-problem-bin"
_MOST = 4096
"""Bytes: clients take little more than this in all the metadata of an answer."""


async def refuse(context: Any, problem: Problem, status: str | None = None) -> NoReturn:
    """Ends the call with the problem; `status` where the code's own does not say enough."""
    named = grpc.StatusCode[status or GRPC_STATUS.get(problem.code, "INTERNAL")]
    said = f"{problem.code}: {problem.detail}"
    await context.abort(named, said, trailing_metadata=((PROBLEM, _packed(problem)),))
    raise AssertionError("a call that was ended went on")


@asynccontextmanager
async def told(context: Any) -> AsyncIterator[None]:
    """What fails unforeseen within is logged, and told as REST tells it: that it did, no more."""
    try:
        yield
    except grpc.aio.AbortError:
        raise
    except ReverieError as error:
        await refuse(context, problem_of(error))
    except Exception as error:
        log.exception("call_failed", error=type(error).__name__)
        await refuse(context, problem_of(ReverieError()))


def _packed(problem: Problem) -> bytes:
    """The document, without what stands now or what else is wrong where that is too long."""
    body = problem.model_dump(mode="json", exclude_none=True)
    message = ParseDict(body, pb.Problem(), ignore_unknown_fields=True)
    for left_out in ("current", "errors", "detail"):
        if message.ByteSize() > _MOST:
            message.ClearField(left_out)
    packed: bytes = message.SerializeToString()
    return packed
