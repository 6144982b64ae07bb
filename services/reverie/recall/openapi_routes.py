"""What all calls take and give: the OpenAPI document, and a page of it that needs nothing else."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from reverie.runtime.calls import JSON, Call, Reply
from reverie.runtime.health import package_version
from reverie.runtime.openapi_page import POLICY, page
from reverie.runtime.routes import Route

_A_WHILE = "public, max-age=300"


def routes() -> list[Route]:
    """The document and its page: open, for they say nothing of any tenant."""
    return [
        Route("GET", "/openapi.json", _document, open=True, gives={JSON: '{"openapi": "3.1.0"}'},
              summary="This document: every call, its models and examples"),
        Route("GET", "/docs", _page, open=True, gives={"text/html": "<!doctype html>"},
              summary="This document as a page that works offline"),
    ]  # fmt: skip


async def _document(_: Call[None, None]) -> Reply:
    return Reply(200, _text(), {"Content-Type": JSON, "Cache-Control": _A_WHILE})


async def _page(_: Call[None, None]) -> Reply:
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": POLICY,
        "Cache-Control": _A_WHILE,
    }
    return Reply(200, _rendered(), headers)


@cache
def _text() -> bytes:
    return json.dumps(_known(), ensure_ascii=False).encode()


@cache
def _rendered() -> bytes:
    return page(_known()).encode()


def _known() -> dict[str, Any]:
    """The document of all services, as it was made of their routes."""
    made: dict[str, Any] = json.loads((files(__package__) / "openapi.json").read_text("utf-8"))
    made["info"]["version"] = package_version()
    return made
