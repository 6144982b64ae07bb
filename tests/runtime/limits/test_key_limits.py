"""Expiry, rotation and rate limits of keys, on every replica."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from reverie.domain.access.principals import KeyRole
from reverie.store.platform.api_keys import (
    NewApiKey,
    create_key,
    find_key,
    list_keys,
    rotate_key,
    set_tenant_limits,
    update_key,
)
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack
from tests.support.store_setup import admin_rows


def _notes(count: int, word: str) -> dict[str, Any]:
    return {"items": [{"content": f"{word} number {n} is worth keeping"} for n in range(count)]}


async def test_a_key_is_rotated_with_an_overlap_and_expires_as_announced(stack: Stack) -> None:
    boss, guest = stack.key, stack.key_of(role=KeyRole.WRITER)
    made = await stack.post("/v1/admin/keys", {"label": "ci", "role": "reader"})
    path = f"/v1/admin/keys/{made['id']}"
    assert (await stack.call("POST", f"{path}/rotate", {}, key=guest)).status == 403
    fresh = await stack.post(f"{path}/rotate", {"overlap_seconds": 3600})
    assert fresh["key"] not in {made["key"], boss}
    assert fresh["previous_expires_at"] is not None
    for text in (made["key"], fresh["key"]):
        assert (await stack.call("GET", "/v1/memories", key=text)).status == 200
    # The next rotation ends what was there before the last at once.
    newest = await stack.post(f"{path}/rotate", {"overlap_seconds": 0})
    for text, status in ((made["key"], 401), (fresh["key"], 401), (newest["key"], 200)):
        assert (await stack.call("GET", "/v1/memories", key=text)).status == status
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    changed = await stack.call("PATCH", path, {"expires_at": past, "label": "old ci"})
    assert (changed.status, changed.body["label"]) == (200, "old ci")
    assert (await stack.call("GET", "/v1/memories", key=newest["key"])).status == 401
    await stack.call("PATCH", path, {"expires_at": None})
    assert (await stack.call("GET", "/v1/memories", key=newest["key"])).status == 200
    await stack.call("DELETE", path)
    refused = await stack.call("POST", f"{path}/rotate", {})
    assert (refused.status, refused.body["code"]) == (409, "conflict")


async def test_limits_of_a_key_and_its_tenant_apply_at_every_replica(
    alone: Stack, database: DatabaseUrls
) -> None:
    limits = {"requests_per_minute": 5}
    made = await alone.post("/v1/admin/keys", {"label": "busy", "limits": limits})
    assert made["limits"] == limits
    # Two services that know nothing of each other: what one let through the other counts too.
    doors = [f"{alone.urls[name]}{path}" for name, path in (
        ("recall", "/v1/memories"), ("ingest", "/v1/facts"))]  # fmt: skip
    answers = [await alone.call("GET", doors[n % 2], key=made["key"]) for n in range(8)]
    assert sorted(one.status for one in answers).count(200) in {4, 5}
    refused = next(one for one in answers if one.status == 429)
    assert refused.body["code"] == "too_many"
    assert "5 requests per minute" in refused.body["detail"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 12
    assert refused.headers["RateLimit"].startswith('"key";r=0;t=')
    used = await alone.get(f"/v1/admin/keys/{made['id']}")
    assert 4 <= used["used"]["requests_per_minute"] <= 5

    writer = await alone.post("/v1/admin/keys", {"label": "w", "limits": {"memories_per_day": 3}})
    assert len(
        (await alone.post("/v1/remember/batch", _notes(3, "owl"), key=writer["key"]))["items"]
    )
    for path, body in (
        ("/v1/remember", {"content": "one more owl"}),
        ("/v1/remember/batch", _notes(1, "jay")),
    ):
        over = await alone.call("POST", path, body, writer["key"])
        assert over.status == 429
        assert "3 memories per day" in over.body["detail"]
    import_ = await alone.call(
        "POST", "/v1/import", data=b"# a\n\nwren\n", key=writer["key"],
        params={"scope": "project/shop"}, headers={"Content-Type": "text/markdown"},
    )  # fmt: skip
    assert import_.body["created"] == 0, import_

    # The tenant's own admin may only set less than its operators do.
    tenant = await alone.call("PATCH", "/v1/admin/settings", {"limits": {"bytes_per_day": 90_000}})
    assert tenant.body["limits"]["limits"] == {"bytes_per_day": 90_000}
    assert set_tenant_limits(database.admin_url, "default", {"bytes_per_day": 2_000}) == {
        "bytes_per_day": 2_000
    }
    other = alone.key_of(role=KeyRole.WRITER)
    long = await alone.call("POST", "/v1/remember", {"content": "x" * 3_000}, other)
    assert (long.status, "2000 bytes per day" in long.body["detail"]) == (429, True)
    assert (await alone.call("POST", "/v1/remember", {"content": "short"}, other)).status == 201
    shown = (await alone.get("/v1/admin/settings"))["limits"]
    assert (shown["limits"], shown["overrides"]) == ({"bytes_per_day": 2_000}, ["bytes_per_day"])
    assert shown["used"]["bytes_per_day"] > 0
    # No key of another tenant is touched by it.
    stranger = create_key(database.admin_url, NewApiKey("s", tenant="other"))
    assert (
        await alone.call("POST", "/v1/remember", {"content": "x" * 3_000}, stranger)
    ).status == 201


def test_operators_rotate_and_limit_keys_by_their_last_digits(
    shared_database: DatabaseUrls,
) -> None:
    url, tenant = shared_database.admin_url, f"keys-{uuid4().hex}"
    end = datetime.now(UTC) + timedelta(days=1)
    create_key(url, NewApiKey("a", expires_at=end, limits={"requests_per_day": 9}, tenant=tenant))
    [row] = [each for each in list_keys(url) if each.tenant == tenant]
    assert (row.expires_at, row.limits, row.previous_expires_at) == (
        end,
        {"requests_per_day": 9},
        None,
    )
    hashes = "select hash, old_hash from api_key where id = %s"
    [(before, _)] = admin_rows(url, hashes, row.id)
    text = rotate_key(url, row.id[-12:], 60)
    assert text.startswith("rv_")
    [(after, old)] = admin_rows(url, hashes, row.id)
    assert (old, after != before) == (before, True)
    update_key(url, row.id, {"expires_at": None, "limits": {}})
    changed = find_key(url, row.id)
    assert (changed.expires_at, changed.limits) == (None, {})
    assert changed.previous_expires_at is not None
