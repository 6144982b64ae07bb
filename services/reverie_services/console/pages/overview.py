"""The first page: counts of memories, waiting work, and problems that need attention."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from reverie_services.console.page_request import PageRequest, PageValues, page_path
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.rendering import count_delivered

_RECALLS = 200
_Item = Mapping[str, Any]
CHECK, PARKED, FAILED, STALE, REVIEW, DEGRADED = ATTENTION = (
    "A check fails: %(what)s",
    "A dream gave up: %(what)s",
    "A dream failed: %(what)s",
    "Memories may be out of date: %(what)s",
    "Reviews wait for a decision: %(what)s",
    "Recalls went without a part: %(what)s",
)


@PAGES.add("", "overview.html", "Overview")
async def load_overview(request: PageRequest) -> PageValues:
    """Each part is left out where the key may not see it, or its service does not answer."""
    parts = {
        "memories": request.try_get("/v1/memories", limit=8),
        "waiting": request.try_get("/v1/dream", limit=50),
        "dreams": request.try_get("/v1/dreams", limit=5),
        "stale": request.try_get("/v1/stale", limit=5),
        "reviews": request.try_get("/v1/reviews", limit=5, state="open"),
        "recalls": request.try_get("/v1/traces", limit=_RECALLS),
        "models": request.try_get("/v1/models"),
        "ready": request.try_get("/ready", own="false"),
    }
    loaded = dict(zip(parts, await asyncio.gather(*parts.values()), strict=True))
    lists = {name: (loaded[name] or {}).get("items", []) for name in parts}
    checks = (loaded["ready"] or {}).get("checks", {})
    start = datetime.now(UTC) - timedelta(hours=1)
    recent = [
        {**recall, "second": int(at.timestamp())}
        for recall in lists["recalls"]
        if (at := datetime.fromisoformat(recall["at"])) >= start
    ]
    return {
        **lists,
        "recent": recent,
        "enrichment": (loaded["models"] or {}).get("enrichment"),
        "changes": (loaded["stale"] or {}).get("changes"),
        "silent": sum(1 for recall in recent if not count_delivered(recall)),
        "chart": [[recall["second"], recall["milliseconds"]] for recall in reversed(recent)],
        "attention": list(_iterate_attention(lists, recent, checks)),
        "missing": [name for name in parts if loaded[name] is None],
        "live": "overview",
    }


@PAGES.add("counts", "counts.html", of="")
async def count_memories(request: PageRequest) -> PageValues:
    """Counts of memories by kind and scope. Counting is slow, so it has a page of its own."""
    scopes = (await request.get("/v1/admin/scopes", limit=200))["items"]
    largest = sorted(scopes, key=lambda each: -sum(each["kinds"].values()))[:12]
    by_kind = Counter[str]()
    for scope in scopes:
        by_kind.update(scope["kinds"])
    return {
        "by_kind": dict(by_kind.most_common()),
        "by_scope": {scope["scope"]: sum(scope["kinds"].values()) for scope in largest},
    }


def _iterate_attention(
    lists: Mapping[str, Sequence[_Item]], recent: Sequence[_Item], checks: Mapping[str, _Item]
) -> Iterator[tuple[str, str, str]]:
    """Problems that need attention: a text, its subject, and the page that shows it."""
    for name, check in checks.items():
        if not check.get("ok", True):
            yield CHECK, f"{name}: {check.get('hint') or ''}", page_path()
    for scope in lists["waiting"]:
        if scope["state"] == "parked":
            yield PARKED, scope["scope"], page_path("dreams")
    for dream in lists["dreams"]:
        if dream["status"] == "failed":
            yield FAILED, dream["scope"], page_path("dreams", dream["id"])
    if lists["stale"]:
        yield STALE, lists["stale"][0]["memory"]["content"], page_path("stale")
    if lists["reviews"]:
        yield REVIEW, lists["reviews"][0]["reason"], page_path("reviews")
    degraded = sorted({part for recall in recent for part in recall.get("degraded", [])})
    if degraded:
        yield DEGRADED, ", ".join(degraded), page_path("recalls")
