"""Git changes by REST and by GitHub and GitLab webhooks, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest

from reverie.contracts.memories.git import GitChange
from reverie.domain.access.principals import KeyRole
from reverie.store.db.encryption import create_cipher
from reverie.store.vault.vault_key_rotation import reencrypt_secrets
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Reply, Stack, eventually, running_stack
from tests.support.tables import Tables, rows

OLD = base64.b64encode(b"o" * 32).decode()
NEW = base64.b64encode(b"n" * 32).decode()
SECRET = "walnut-tulip-harbour-nine"
SHA, EARLIER = "a" * 40, "b" * 40
FIRST = {"sha": SHA, "subject": "Move the loop", "committed_at": "2099-01-01T00:00:00Z"}
CHANGE: dict[str, Any] = {
    "project": "shop",
    "branch": "main",
    "before": EARLIER,
    "after": SHA,
    "commits": [FIRST],
    "files": [{"path": "src/loop.py", "status": "modified", "hunks": [[1, 1, 1, 2]]}],
}


@pytest.fixture
async def shop(stack: Stack) -> Stack:
    """A tenant that knows the project `shop`, by one memory of it."""
    await stack.post("/v1/remember", {"content": "the loop runs", "scope": "project/shop"})
    return stack


@pytest.fixture
async def own_shop(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """The same on a system of its own, which may get another master key or be left with work."""
    async with running_stack(database, nats_url, model_home(), vault_key=OLD) as made:
        await made.post("/v1/remember", {"content": "the loop runs", "scope": "project/shop"})
        yield made


def stored_changes(stack: Stack) -> list[dict[str, Any]]:
    """The stored changes, the oldest first."""
    query = "select body from git_event where tenant = %s order by id"
    return [body for (body,) in rows(stack.admin_url, query, stack.number())]


def counted(tables: Tables) -> dict[str, int]:
    """How many rows there are of what a change may leave."""
    return {name: n for name, n in tables.counts().items() if name not in {"idempotency", "chunk"}}


def github(body: Mapping[str, Any], event: str = "push", secret: str = SECRET) -> dict[str, Any]:
    """A delivery as GitHub sends it."""
    data = json.dumps(body).encode()
    signature = hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={signature}"}
    return {"data": data, "headers": {**headers, "Content-Type": "application/json"}}


def pushed(**more: Any) -> dict[str, Any]:
    """A push in GitHub's words: a file moved, one changed, one removed with nothing beside it."""
    moved = {
        "id": EARLIER, "message": "Move it\n\nbody", "timestamp": "2099-01-01T00:00:00+02:00",
        "added": ["lib/loop.py", "README.md"], "removed": ["src/loop.py"], "modified": ["a.py"],
    }  # fmt: skip
    gone = {"id": SHA, "message": "Merge pull request #3 from us/feat/x", "removed": ["old.py"],
            "timestamp": "2099-01-02T00:00:00Z"}  # fmt: skip
    return {
        "ref": "refs/heads/main",
        "before": "0" * 40,
        "after": SHA,
        "created": True,
        "forced": False,
        "repository": {"full_name": "us/shop", "default_branch": "main", "id": 1},
        "commits": [moved, gone],
        **more,
    }


async def test_github_pushes_are_accepted_with_the_project_signature(own_shop: Stack) -> None:
    shop = own_shop
    path = "/v1/git/webhooks/github/shop"
    assert (await shop.call("PUT", path, {"secret": "short"})).status == 422
    writer = shop.key_of(role=KeyRole.WRITER)
    assert (await shop.call("PUT", path, {"secret": SECRET}, writer)).status == 403
    made = (await shop.call("PUT", path, {"secret": SECRET})).body
    assert (made["path"], made["secret"]) == ("/v1/git/github/default/shop", SECRET)
    listed = await shop.get("/v1/git/webhooks?project=shop")
    assert [one["kind"] for one in listed["items"]] == ["github"]
    assert SECRET not in json.dumps(listed)
    assert SECRET not in str(rows(shop.admin_url, "select * from webhook"))
    kept = await shop.post(
        "/v1/remember", {"content": f"the hook is {SECRET}", "scope": "project/shop"}
    )
    assert SECRET not in json.dumps(await shop.get(f"/v1/memories/{kept['id']}"))

    async def deliver(at: str = made["path"], **sent: Any) -> Reply:
        return await shop.call("POST", at, **sent)

    with closing(Tables(shop.admin_url, tenant=1)) as tables:
        await shop.settled()
        before = counted(tables)
        unsigned = github(pushed())
        del unsigned["headers"]["X-Hub-Signature-256"]
        forged = [
            await deliver(**github(pushed(), secret="another-secret")),
            await deliver(**unsigned),
            await deliver(**{**github(pushed()), "data": json.dumps(pushed(forced=True)).encode()}),
            await deliver("/v1/git/github/default/other", **github(pushed())),
            await deliver("/v1/git/github/nobody/shop", **github(pushed())),
            await deliver("/v1/git/gitlab/default/shop", **github(pushed())),
        ]
        assert [(one.status, one.body["code"]) for one in forged] == [(401, "unauthenticated")] * 6
        for wrong in ("../../etc/passwd", "a\0b", "a\nb"):
            bad = pushed(commits=[{**pushed()["commits"][0], "removed": [wrong]}])
            refused = await deliver(**github(bad))
            assert (refused.status, refused.body["field"]) == (422, "commits.0.removed.0")
        padded = github(pushed(padding="x" * 26 * 1024 * 1024))
        huge = await deliver(**padded | {"data": io.BytesIO(padded["data"])})
        assert (huge.status, huge.body["code"]) == (413, "too_large")
        for event, why in (("ping", "works"), ("issues", "event issues")):
            told = await deliver(**github({"zen": "x"}, event))
            assert why in told.body["ignored"]
        tag = await deliver(**github(pushed(ref="refs/tags/v1")))
        assert "no push to a branch" in tag.body["ignored"]
        assert counted(tables) == before

    taken = await deliver(**github(pushed()))
    assert (taken.status, taken.body["duplicate"], taken.body["hints"]) == (202, False, [])
    assert (await deliver(**github(pushed()))).body["duplicate"] is True
    [change] = stored_changes(shop)
    stands = GitChange.model_validate_json(json.dumps(change))
    assert (stands.before, stands.detail, stands.merged) == (None, "files", [])
    assert [(one.path, one.status, one.possible_path) for one in stands.files] == [
        ("lib/loop.py", "added", None),
        ("README.md", "added", None),
        ("a.py", "modified", None),
        ("src/loop.py", "deleted", "lib/loop.py"),
        ("old.py", "deleted", None),
    ]
    form = github(pushed(after="c" * 40, before=SHA, forced=True))
    form["data"] = urlencode({"payload": form["data"].decode()}).encode()
    signature = hmac.new(SECRET.encode(), form["data"], hashlib.sha256).hexdigest()
    kind = "application/x-www-form-urlencoded"
    headers = {"X-Hub-Signature-256": f"sha256={signature}", "Content-Type": kind}
    assert (await deliver(data=form["data"], headers=headers)).status == 202
    request = pull(merged=True)
    assert (await deliver(**github(request, "pull_request"))).body["duplicate"] is False
    for other in (pull(merged=False), pull(merged=True, head={"ref": "x", "repo": None})):
        assert "request" in (await deliver(**github(other, "pull_request"))).body["ignored"]
    ended = pushed(after="0" * 40, before=SHA, deleted=True, commits=[], ref="refs/heads/feat/x")
    assert (await deliver(**github(ended))).body["duplicate"] is False
    many = [{**pushed()["commits"][1], "id": f"{n:040x}"} for n in range(1, 2049)]
    capped = await deliver(**github(pushed(after="d" * 40, commits=many)))
    assert "announce" in capped.body["hints"][0]
    _, forced, squashed, deleted, partial = stored_changes(shop)
    assert (squashed["after"], squashed["merged"]) == (SHA, ["feat/squashed"])
    assert (forced["forced"], deleted["deleted"], deleted["branch"]) == (True, True, "feat/x")
    assert partial["partial"] is True
    await asyncio.to_thread(
        reencrypt_secrets, shop.admin_url, create_cipher(f"{NEW},{OLD}"), lambda done, total: None
    )
    sealed_under = rows(shop.admin_url, "select distinct key_id from webhook")
    assert sealed_under == [(create_cipher(NEW).newest_key_id,)]
    assert (await shop.call("DELETE", path)).status == 200
    assert (await deliver(**github(pushed()))).status == 401
    assert (await shop.call("DELETE", path)).status == 404


def pull(**more: Any) -> dict[str, Any]:
    """A pull request that GitHub tells of."""
    home = {"full_name": "us/shop", "default_branch": "main"}
    sides = {"head": {"ref": "feat/squashed", "repo": home}, "base": {"ref": "main", "repo": home}}
    body = {"number": 12, "merge_commit_sha": SHA, **sides, **more}
    return {"action": "closed", "pull_request": body, "repository": home}


async def test_gitlab_pushes_are_accepted_by_token_or_signature(shop: Stack) -> None:
    body = pushed(
        object_kind="push",
        project={"path_with_namespace": "us/shop", "default_branch": "main"},
        total_commits_count=25,
    )
    del body["repository"]
    data, at = json.dumps(body).encode(), str(int(time.time()))
    made = await shop.call("PUT", "/v1/git/webhooks/gitlab/shop", {"secret": SECRET})
    for place in ("github/shop", "github/arcade"):
        await shop.call("PUT", f"/v1/git/webhooks/{place}", {"secret": SECRET})
    listed = await shop.walked("/v1/git/webhooks")
    places = [(one["project"], one["kind"]) for one in listed]
    assert places == [("arcade", "github"), ("shop", "github"), ("shop", "gitlab")]

    async def deliver(**headers: str) -> Reply:
        return await shop.call("POST", made.body["path"], data=data, headers=headers)

    def signed(key: bytes, at: str) -> dict[str, str]:
        told = f"one.{at}.".encode() + data
        mark = base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()
        return {
            "webhook-id": "one",
            "webhook-timestamp": at,
            "webhook-signature": f"v1,x v1,{mark}",
        }

    assert (await deliver(**{"X-Gitlab-Token": "another-secret"})).status == 401
    assert (await deliver()).status == 401
    taken = await deliver(**{"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Push Hook"})
    assert (taken.status, len(taken.body["hints"])) == (202, 1)
    ends = {"source_branch": "feat/y", "target_branch": "main", "squash_commit_sha": SHA}
    request = {"object_attributes": {"action": "merge", **ends}, "project": body["project"]}
    asked = {"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Merge Request Hook"}
    told = await shop.call("POST", made.body["path"], json=request, headers=asked)
    assert (told.status, told.body["duplicate"]) == (202, False)
    change, merge = stored_changes(shop)
    assert (change["repository"], change["partial"]) == ("us/shop", True)
    assert (merge["branch"], merge["merged"]) == ("main", ["feat/y"])
    key = b"k" * 32
    token = "whsec_" + base64.b64encode(key).decode()
    await shop.call("PUT", "/v1/git/webhooks/gitlab/shop", {"secret": token})
    assert (await deliver(**signed(b"other", at))).status == 401
    assert (await deliver(**signed(key, str(int(at) - 900)))).status == 401
    assert (await deliver(**{**signed(key, at), "webhook-id": "two"})).status == 401
    assert (await deliver(**signed(key, at))).body["duplicate"] is True


async def test_the_rest_route_accepts_large_changes_once_and_refuses_by_name(
    own_shop: Stack,
) -> None:
    shop = own_shop
    words = [f"identifier_{n}" for n in range(30)]
    files = [
        {"path": f"src/{n}.py", "status": "modified", "commit": SHA,
         "hunks": [{"old_start": 5 * m + 1, "old_lines": 2, "new_start": 5 * m + 1, "new_lines": 2,
                    "kind": "code", "symbols": [f"f{m}"], "identifiers": words}
                   for m in range(5)]}
        for n in range(700)
    ]  # fmt: skip
    large = {**CHANGE, "files": files}
    assert len(json.dumps(large)) > 1024 * 1024
    told = [
        await shop.call("POST", "/v1/git/changes", data=io.BytesIO(json.dumps(large).encode()))
        for _ in range(2)
    ]
    first, again = [one.body for one in told]
    assert (first["duplicate"], again) == (False, {**first, "duplicate": True})
    [kept] = stored_changes(shop)
    assert len(kept["files"]) == 700
    forced = {**CHANGE, "forced": True}
    assert (await shop.post("/v1/git/changes", forced))["duplicate"] is False
    assert (await shop.post("/v1/git/changes", forced))["duplicate"] is True
    new = {**CHANGE, "branch": "refs/heads/feat/y", "before": "0" * 40}
    assert (await shop.post("/v1/git/changes", new))["duplicate"] is False
    gone = {**CHANGE, "branch": "feat/y", "before": SHA, "after": "0" * 40, "deleted": True,
            "commits": [], "files": []}  # fmt: skip
    assert (await shop.post("/v1/git/changes", gone))["duplicate"] is False
    ci = shop.key_of(role=KeyRole.CI, writes=("project/shop",))
    mine = {**CHANGE, "after": "e" * 40}
    assert (await shop.post("/v1/git/changes", mine, key=ci))["duplicate"] is False
    with closing(Tables(shop.admin_url, shop.number())) as tables:
        await shop.settled()
        before = counted(tables)
        other = {**CHANGE, "project": "unheard-of"}
        assert (await shop.call("POST", "/v1/git/changes", other, ci)).status == 403
        huge = b'{"project": "' + b"x" * 26 * 1024 * 1024 + b'"}'
        for data in (io.BytesIO(huge), _pieces(huge)):
            too_large = await shop.call("POST", "/v1/git/changes", data=data)
            assert (too_large.status, too_large.body["code"]) == (413, "too_large")
            assert "large_body_limit" in too_large.body["detail"]
        assert counted(tables) == before


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    """A body that does not say beforehand how long it is."""
    for at in range(0, len(data), 1024 * 1024):
        yield data[at : at + 1024 * 1024]


async def test_a_change_by_file_gives_way_to_one_with_lines(shop: Stack) -> None:
    git = {"files": ["a.py"], "lines": {"a.py": [[3, 4]]}, "commit": EARLIER}
    body = {"content": "lines 3 and 4 of a.py", "scope": "project/shop", "git": git}
    await shop.post("/v1/remember", {**body, "valid_from": "2025-01-01T00:00:00Z"})
    await shop.settled()
    await shop.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    commits = [
        {"id": SHA, "message": "x", "timestamp": "2099-01-01T00:00:00Z", "modified": ["a.py"]}
    ]
    coarse = pushed(before=EARLIER, commits=commits)
    fine = {**CHANGE, "files": [{"path": "a.py", "status": "modified", "hunks": [[90, 1, 90, 1]]}]}

    async def doubt() -> float:
        items = (await shop.get("/v1/stale?project=shop"))["items"]
        return float(items[0]["score"]) if items else 0.0

    first = await shop.call("POST", f"/v1/git/github/{shop.tenant}/shop", **github(coarse))
    by_file = await eventually(doubt)
    told = await shop.post("/v1/git/changes", fine)
    assert (told["event"], told["duplicate"]) == (first.body["event"], False)

    async def doubted_less() -> bool:
        return await doubt() < by_file

    await eventually(doubted_less)
    again = await shop.call("POST", f"/v1/git/github/{shop.tenant}/shop", **github(coarse))
    assert again.body["duplicate"] is True
    assert (await shop.post("/v1/git/changes", fine))["duplicate"] is True
    [kept] = stored_changes(shop)
    assert "detail" not in kept
