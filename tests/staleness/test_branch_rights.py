"""Merges and deletions of branches act only on memories that the announcing key may write."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.domain.access.principals import KeyRole
from tests.staleness.test_http_intake import github, pull, pushed
from tests.support.stack import Stack, eventually

SHA, EARLIER = "a" * 40, "b" * 40
BRANCH = "project/shop/feature/secret-branch"
MERGE: dict[str, Any] = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "merge": True,
    "merged": ["secret-branch"],
    "commits": [{"sha": SHA, "subject": "Merge it", "committed_at": "2026-01-01T00:00:00Z"}],
}
DELETION = {"project": "shop", "branch": "secret-branch", "before": SHA, "deleted": True}


async def _secret(stack: Stack) -> str:
    body = {"content": "the launch is in May", "scope": BRANCH}
    return str((await stack.post("/v1/remember", body))["id"])


async def _place(stack: Stack, memory: str) -> tuple[str, str]:
    await stack.settled()
    found = await stack.get(f"/v1/memories/{memory}")
    return found["scope"], found["status"]


@pytest.mark.parametrize("role", [KeyRole.CI, KeyRole.WRITER, KeyRole.ADMIN])
async def test_a_key_of_the_project_alone_neither_publishes_nor_archives_a_branch(
    stack: Stack, role: KeyRole
) -> None:
    secret = await _secret(stack)
    key = stack.key_of(role=role, reads=("project/shop",), writes=("project/shop",))
    merged = await stack.post("/v1/git/changes", MERGE, key=key)
    assert [BRANCH in hint for hint in merged["hints"]] == [True]
    refused = await stack.call("POST", "/v1/git/changes", DELETION, key)
    assert refused.status == 403
    assert BRANCH in refused.body["detail"]
    assert await _place(stack, secret) == (BRANCH, "active")
    # The same announcement by a key that may write the branch is no repetition.
    ci = stack.key_of(role=KeyRole.CI, reads=(), writes=("project/shop/*",))
    assert await stack.post("/v1/git/changes", MERGE, key=ci) | {"event": ""} == {
        "event": "",
        "duplicate": False,
        "hints": [],
    }

    async def promoted() -> bool:
        return await _place(stack, secret) == ("project/shop", "active")

    await eventually(promoted)


async def test_a_branch_is_archived_by_a_key_that_may_write_it(stack: Stack) -> None:
    secret = await _secret(stack)
    ci = stack.key_of(role=KeyRole.CI, reads=(), writes=(BRANCH, "project/shop"))
    await stack.post("/v1/git/changes", DELETION, key=ci)
    assert await _place(stack, secret) == (BRANCH, "archived")


async def test_of_a_signed_webhook_a_merged_request_promotes_and_a_subject_does_not(
    stack: Stack,
) -> None:
    secret = await _secret(stack)
    hook = await stack.call("PUT", "/v1/git/webhooks/github/shop", {})
    merge = {**pushed()["commits"][0], "message": "Merge branch 'secret-branch'"}
    forged = github(pushed(commits=[merge]), secret=hook.body["secret"])
    assert (await stack.call("POST", hook.body["path"], **forged)).status == 202
    assert await _place(stack, secret) == (BRANCH, "active")
    home = {"full_name": "us/shop", "default_branch": "main"}
    request = pull(merged=True, head={"ref": "secret-branch", "repo": home})
    signed = github(request, "pull_request", hook.body["secret"])
    assert (await stack.call("POST", hook.body["path"], **signed)).status == 202

    async def promoted() -> bool:
        return await _place(stack, secret) == ("project/shop", "active")

    await eventually(promoted)


async def test_the_first_change_of_a_project_makes_it_known_where_the_key_may(
    stack: Stack,
) -> None:
    ci = stack.key_of(role=KeyRole.CI, reads=(), writes=("project/*",))
    first = {**MERGE, "project": "brand-new", "merged": [], "merge": False}
    made = await stack.post("/v1/git/changes", first, key=ci)
    assert "brand-new" in made["hints"][0]
    later = {**first, "after": EARLIER}
    assert (await stack.post("/v1/git/changes", later, key=ci))["hints"] == []
    elsewhere = stack.key_of(role=KeyRole.CI, reads=(), writes=("project/shop/*",))
    assert (await stack.call("POST", "/v1/git/changes", first, elsewhere)).status == 403
