"""Routes for the OpenAPI document and its HTML page."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from reverie.runtime.http.calls import JSON_MEDIA_TYPE, Call, Reply
from reverie.runtime.http.health import package_version
from reverie.runtime.http.openapi_page import CONTENT_SECURITY_POLICY, render_openapi_page
from reverie.runtime.http.routes import Route

_CACHE_CONTROL = "public, max-age=300"


def build_openapi_routes() -> list[Route]:
    """The document and its page: open, for they say nothing of any tenant."""
    return [
        Route(
            "GET",
            "/openapi.json",
            _get_document,
            public=True,
            response_examples={JSON_MEDIA_TYPE: '{"openapi": "3.1.0"}'},
            summary="This document: every call, its models and examples",
        ),
        Route(
            "GET",
            "/docs",
            _get_page,
            public=True,
            response_examples={"text/html": "<!doctype html>"},
            summary="This document as a page that works offline",
        ),
    ]


async def _get_document(_: Call[None, None]) -> Reply:
    return Reply(
        200, _encode_document(), {"Content-Type": JSON_MEDIA_TYPE, "Cache-Control": _CACHE_CONTROL}
    )


async def _get_page(_: Call[None, None]) -> Reply:
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Cache-Control": _CACHE_CONTROL,
    }
    return Reply(200, _render_page(), headers)


@cache
def _encode_document() -> bytes:
    return json.dumps(_load_document(), ensure_ascii=False).encode()


@cache
def _render_page() -> bytes:
    return render_openapi_page(_load_document()).encode()


def _load_document() -> dict[str, Any]:
    """The document of all services, as it was made of their routes."""
    document: dict[str, Any] = json.loads((files(__package__) / "openapi.json").read_text("utf-8"))
    document["info"]["version"] = package_version()
    return document
