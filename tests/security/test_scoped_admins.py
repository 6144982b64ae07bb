"""Admins of a part of a tenant manage keys within their own grants, limits and expiry."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from reverie.cli.app.main import app
from reverie.store.platform.api_keys import list_keys
from tests.support.stack import Stack


async def test_a_key_with_one_direction_of_grants_has_no_wider_other_one(stack: Stack) -> None:
    shop = ["project/shop/*"]
    for given, grants in (
        ({}, (["*"], ["*"])),
        ({"reads": shop}, (shop, shop)),
        ({"writes": shop}, (shop, shop)),
        ({"reads": ["*"], "writes": shop}, (["*"], shop)),
        ({"reads": shop, "writes": []}, (shop, [])),
    ):
        made = await stack.post("/v1/admin/keys", {"label": "one", **given})
        assert (made["reads"], made["writes"]) == grants
    created = CliRunner().invoke(
        app,
        ["key", "create", "two", "--read", "project/shop", "--tenant", stack.tenant],
        env={"REVERIE_DATABASE_MIGRATION_URL": stack.admin_url},
    )
    assert created.exit_code == 0, created
    [two] = [key for key in list_keys(stack.admin_url) if key.label == "two"]
    assert (two.reads, two.writes) == (["project/shop"], ["project/shop"])


async def test_an_admin_of_one_project_sees_and_changes_keys_within_its_grants_only(
    stack: Stack,
) -> None:
    shop = {"reads": ["project/shop", "project/shop/*"], "writes": ["project/shop"]}
    narrow = {"label": "shop admin", "role": "admin", **shop}
    limited = {"limits": {"requests_per_day": 500}, "expires_at": "2098-01-01T00:00:00Z"}
    boss = await stack.post("/v1/admin/keys", {**narrow, **limited})
    for n in range(3):
        await stack.post("/v1/admin/keys", {"label": f"whole {n}", "role": "reader"})
    mine = await stack.post("/v1/admin/keys", {**narrow, "label": "shop reader", "role": "reader"})
    for limit in (1, 2, 50):
        listed = await stack.walked("/v1/admin/keys", limit=limit, key=boss["key"])
        assert {key["label"] for key in listed} == {"shop admin", "shop reader"}
    assert len(await stack.walked("/v1/admin/keys")) >= 6

    async def status(method: str, path: str, body: Any) -> int:
        return (await stack.call(method, f"/v1/admin/keys{path}", body, boss["key"])).status

    own, other = f"/{boss['id']}", f"/{mine['id']}"
    raised: list[tuple[str, str, Any]] = [
        ("PATCH", own, {"limits": {"requests_per_day": 501}}),
        ("PATCH", own, {"limits": {}}),
        ("PATCH", own, {"expires_at": None}),
        ("PATCH", own, {"expires_at": "2099-01-01T00:00:00Z"}),
        ("POST", f"{own}/rotate", {"expires_at": None}),
        ("PATCH", other, {"limits": {"requests_per_minute": 9}}),
        ("PATCH", other, {"expires_at": "2099-01-01T00:00:00Z"}),
        ("POST", "", {**narrow, "label": "more"}),
        ("POST", "", {**narrow, "label": "more", "limits": limited["limits"]}),
    ]
    assert [await status(*call) for call in raised] == [403] * len(raised)
    lowered: list[tuple[str, str, Any]] = [
        ("PATCH", own, {"limits": {"requests_per_day": 400}}),
        ("PATCH", own, {"label": "renamed"}),
        ("PATCH", other, {"limits": {"requests_per_day": 9}, "expires_at": "2097-01-01T00:00:00Z"}),
    ]
    assert [await status(*call) for call in lowered] == [200] * len(lowered)
    within = {**limited, "limits": {"requests_per_day": 400}}
    assert await status("POST", "", {**narrow, "label": "less", **within}) == 201
    stranger = await stack.get("/v1/admin/keys?limit=1")
    assert await status("GET", f"/{stranger['items'][0]['id']}", None) == 403
