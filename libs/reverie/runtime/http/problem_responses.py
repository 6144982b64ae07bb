"""Middleware that turns every error into an RFC 9457 problem response."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from reverie.contracts.base import Problem
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import Overloaded, ReverieError, Unauthenticated, Unavailable
from reverie.domain.redaction.redactor import redact
from reverie.runtime.observability.tracing import current_trace_id

log = structlog.get_logger()

PROBLEM_MEDIA_TYPE = "application/problem+json"
PROBLEM_CODE = web.RequestKey("PROBLEM", str)
_MAX_PATH_LENGTH = 200

NextHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def problem_middleware(request: web.Request, handler: NextHandler) -> web.StreamResponse:
    """Answers every error with its document; logs those that are ours."""
    try:
        return await handler(request)
    except ReverieError as error:
        return _response_for_error(request, error)
    except web.HTTPException as error:
        return _response_for_http_error(request, error)
    except TimeoutError:
        return _response_for_error(request, Unavailable("the service", "the request took too long"))
    except ConnectionResetError:
        raise
    except Exception:
        log.exception("request_failed", method=request.method, route=route_pattern(request))
        return problem_response(request, build_problem("internal", "something failed inside"))


def problem_response(
    request: web.Request, document: Problem, headers: dict[str, str] | None = None
) -> web.Response:
    """The document as a response, with the trace id that finds it in the logs."""
    request[PROBLEM_CODE] = document.code
    completed = document.model_copy(
        update={"trace_id": current_trace_id(), "instance": _redacted_path(request)}
    )
    return web.Response(
        status=document.status,
        body=completed.model_dump_json(exclude_none=True).encode(),
        headers={"Content-Type": PROBLEM_MEDIA_TYPE, **(headers or {})},
    )


def route_pattern(request: web.Request) -> str:
    """The pattern that a request matched: a name with few values, unlike its path."""
    resource = request.match_info.route.resource
    return resource.canonical.replace("{tail}", "/*") if resource else "unmatched"


def _redacted_path(request: web.Request) -> str:
    """The path asked for, without credentials that were sent as a name in it."""
    return redact(request.path[: 4 * _MAX_PATH_LENGTH]).text[:_MAX_PATH_LENGTH]


def _response_for_error(request: web.Request, error: ReverieError) -> web.Response:
    document = problem_from_error(error)
    if document.status == 500:
        log.error("request_failed", route=route_pattern(request), exc_info=error)
    # Under overload there are many of these, and a metric counts them.
    elif document.status == 503 and not isinstance(error, Overloaded):
        log.warning("request_refused", route=route_pattern(request), reason=str(error))
    return problem_response(request, document, _error_headers(error))


def _error_headers(error: ReverieError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="reverie"'}
    retry_after = error.details().get("retry_after")
    return {"Retry-After": str(max(1, math.ceil(retry_after)))} if retry_after else {}


def _response_for_http_error(request: web.Request, error: web.HTTPException) -> web.StreamResponse:
    path = _redacted_path(request)
    match error:
        case web.HTTPNotFound():
            return problem_response(request, build_problem("not_found", f"no route {path}"))
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            detail = f"{path} takes {allowed}"
            return problem_response(
                request, build_problem("method_not_allowed", detail), {"Allow": allowed}
            )
        case web.HTTPRequestEntityTooLarge():
            return problem_response(
                request, build_problem("too_large", error.text or "the body is too large")
            )
        case _ if 400 <= error.status < 500:
            return problem_response(request, build_problem("malformed", error.reason))
    return error
