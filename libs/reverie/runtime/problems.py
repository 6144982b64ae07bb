"""Whatever goes wrong becomes a problem document (RFC 9457); nothing inside shows."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from reverie.contracts.base import Problem
from reverie.contracts.problems import problem, problem_of
from reverie.domain.errors import Crowded, ReverieError, Unauthenticated, Unavailable
from reverie.domain.redaction import redact
from reverie.runtime.glance import refused
from reverie.runtime.telemetry import current_trace_id

log = structlog.get_logger()

CONTENT_TYPE = "application/problem+json"
PROBLEM = web.RequestKey("PROBLEM", str)
CROWDED = web.RequestKey("CROWDED", bool)
_LONGEST_PATH = 200

Next = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def problems(request: web.Request, handler: Next) -> web.StreamResponse:
    """Answers every error with its document; logs those that are ours."""
    try:
        return await handler(request)
    except ReverieError as error:
        return _of_error(request, error)
    except web.HTTPException as error:
        return _of_http(request, error)
    except TimeoutError:
        return _of_error(request, Unavailable("the service", "the request took too long"))
    except ConnectionResetError:
        raise
    except Exception:
        log.exception("request_failed", method=request.method, route=route_of(request))
        return respond(request, problem("internal", "something failed inside"))


def respond(
    request: web.Request, document: Problem, headers: dict[str, str] | None = None
) -> web.Response:
    """The document as a response, with the trace id that finds it in the logs."""
    request[PROBLEM] = document.code
    full = document.model_copy(update={"trace_id": current_trace_id(), "instance": _path(request)})
    return web.Response(
        status=document.status,
        body=full.model_dump_json(exclude_none=True).encode(),
        headers={"Content-Type": CONTENT_TYPE, **(headers or {})},
    )


def route_of(request: web.Request) -> str:
    """The pattern that a request matched: a name with few values, unlike its path."""
    resource = request.match_info.route.resource
    return resource.canonical.replace("{tail}", "/*") if resource else "unmatched"


def _path(request: web.Request) -> str:
    """The path asked for, without credentials that were sent as a name in it."""
    return redact(request.path[: 4 * _LONGEST_PATH]).text[:_LONGEST_PATH]


def _of_error(request: web.Request, error: ReverieError) -> web.Response:
    if isinstance(error, Crowded):
        return crowded(request, error)
    document = problem_of(error)
    if document.status == 500:
        log.error("request_failed", route=route_of(request), exc_info=error)
    elif document.status == 503:
        log.warning("request_refused", route=route_of(request), reason=str(error))
    return respond(request, document, _headers(error))


def crowded(request: web.Request, error: Crowded) -> web.Response:
    """The same, made for little; it is logged once a second, where it is decided."""
    request[CROWDED], request[PROBLEM] = True, error.code
    body, headers = refused(error, current_trace_id())
    return web.Response(status=503, body=body, headers=headers)


def _headers(error: ReverieError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="reverie"'}
    retry_after = error.facts().get("retry_after")
    return {"Retry-After": str(max(1, math.ceil(retry_after)))} if retry_after else {}


def _of_http(request: web.Request, error: web.HTTPException) -> web.StreamResponse:
    path = _path(request)
    match error:
        case web.HTTPNotFound():
            return respond(request, problem("not_found", f"no route {path}"))
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            detail = f"{path} takes {allowed}"
            return respond(request, problem("method_not_allowed", detail), {"Allow": allowed})
        case web.HTTPRequestEntityTooLarge():
            return respond(request, problem("too_large", error.text or "the body is too large"))
        case _ if 400 <= error.status < 500:
            return respond(request, problem("malformed", error.reason))
    return error
