"""Turns errors into RFC 9457 problem responses."""

from __future__ import annotations

import math

import structlog
from multidict import CIMultiDict

from reverie.contracts.base import Problem
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import Overloaded, ReverieError, Unauthenticated, Unavailable
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse, RequestHandler
from reverie.runtime.observability.tracing import current_trace_id

log = structlog.get_logger()

PROBLEM_MEDIA_TYPE = "application/problem+json"
_MAX_PATH_LENGTH = 200


class UnmatchedRequest(Exception):
    """A request whose path matches no route, or whose method the matching routes lack."""

    def __init__(self, allowed_methods: frozenset[str]) -> None:
        super().__init__()
        self.allowed_methods = allowed_methods


async def answer_errors(handler: RequestHandler, request: IncomingRequest) -> OutgoingResponse:
    """The response of `handler`, or a problem response for its error. Logs internal errors."""
    try:
        return await handler(request)
    except ReverieError as error:
        return _response_for_error(request, error)
    except UnmatchedRequest as error:
        path = _redacted_path(request)
        if not error.allowed_methods:
            return problem_response(
                request, build_problem("not_found", f"no route {path}: see /docs")
            )
        allowed = ", ".join(sorted(error.allowed_methods))
        document = build_problem("method_not_allowed", f"{path} takes {allowed}")
        return problem_response(request, document, {"Allow": allowed})
    except TimeoutError:
        return _response_for_error(request, Unavailable("the service", "the request took too long"))
    except ConnectionResetError:
        raise
    except Exception:
        log.exception("request_failed", method=request.method, route=request.route_pattern)
        return problem_response(request, build_problem("internal", "something failed inside"))


def problem_response(
    request: IncomingRequest, document: Problem, headers: dict[str, str] | None = None
) -> OutgoingResponse:
    """The document as a response, with the trace id that finds it in the logs."""
    request.problem_code = document.code
    completed = document.model_copy(
        update={"trace_id": current_trace_id(), "instance": _redacted_path(request)}
    )
    return OutgoingResponse(
        document.status,
        CIMultiDict({"Content-Type": PROBLEM_MEDIA_TYPE, **(headers or {})}),
        completed.model_dump_json(exclude_none=True).encode(),
    )


def _redacted_path(request: IncomingRequest) -> str:
    """The path of the request, without credentials that were sent in it."""
    return redact(request.url.path[: 4 * _MAX_PATH_LENGTH]).text[:_MAX_PATH_LENGTH]


def _response_for_error(request: IncomingRequest, error: ReverieError) -> OutgoingResponse:
    document = problem_from_error(error)
    if document.status == 500:
        log.error("request_failed", route=request.route_pattern, exc_info=error)
    # Under overload there are many of these, and a metric counts them.
    elif document.status == 503 and not isinstance(error, Overloaded):
        log.warning("request_rejected", route=request.route_pattern, reason=str(error))
    headers: dict[str, str] = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="reverie"'
    elif retry_after := error.details().get("retry_after"):
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    return problem_response(request, document, headers)
