"""Routes for the OpenAPI document and the page that shows it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from reverie.runtime.http.calls import JSON_MEDIA_TYPE, Call, Reply
from reverie.runtime.http.health import package_version
from reverie.runtime.http.routes import Route

REDOC_VERSION = "2.5.4"
"""Of `redoc/redoc.standalone.js`, taken unchanged from the npm package `redoc`."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Reverie API</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"></head>
<body style="margin:0"><redoc spec-url="/openapi.json"></redoc>
<script src="/docs/redoc.js"></script></body></html>
"""
# Redoc adds its styles to the page, and its search runs in a worker created from a blob.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_CACHE_CONTROL = "public, max-age=300"


def build_openapi_routes() -> list[Route]:
    """The document and its page. They need no key, because they hold no data of a tenant."""
    return [
        Route(
            "GET",
            "/openapi.json",
            _get_document,
            public=True,
            response_examples={JSON_MEDIA_TYPE: '{"openapi": "3.1.0"}'},
            summary="The OpenAPI document",
        ),
        Route(
            "GET",
            "/docs",
            _get_page,
            public=True,
            response_examples={"text/html": "<!doctype html>"},
            summary="The API as a page; it loads nothing from elsewhere",
        ),
        Route(
            "GET",
            "/docs/redoc.js",
            _get_script,
            public=True,
            supports_etag=True,
            response_examples={"text/javascript": "/*! Redoc */"},
            summary="The script of that page",
        ),
    ]


async def _get_document(_: Call[None, None]) -> Reply:
    headers = {"Content-Type": JSON_MEDIA_TYPE, "Cache-Control": _CACHE_CONTROL}
    return Reply(200, _document(), headers)


async def _get_page(_: Call[None, None]) -> Reply:
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Cache-Control": _CACHE_CONTROL,
    }
    return Reply(200, PAGE.encode(), headers)


async def _get_script(_: Call[None, None]) -> Reply:
    headers = {
        "Content-Type": "text/javascript; charset=utf-8",
        "Cache-Control": _CACHE_CONTROL,
        "ETag": f'"{REDOC_VERSION}"',
    }
    script = files(__package__) / "redoc" / "redoc.standalone.js"
    return Reply(200, script.read_bytes(), headers)


@cache
def _document() -> bytes:
    """The document of all services, which a test keeps in step with their routes."""
    document = json.loads((files(__package__) / "openapi.json").read_text("utf-8"))
    document["info"]["version"] = package_version()
    return json.dumps(document, ensure_ascii=False).encode()
