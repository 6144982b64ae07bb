"""Each wrong body field is named in the error, and nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.interfaces.invalid_input import (
    CHANGE,
    GOOD,
    REMEMBER,
    SHA,
    TURN,
    Place,
    names,
)

WRONG_MEMORIES: list[tuple[dict[str, Any], str]] = [
    ({"content": None}, "content"),
    ({"content": ["a"]}, "content"),
    ({"content": "\u2003\u00a0"}, "content"),
    ({"scope": "project/../x"}, "scope"),
    ({"content": "\u200b\u2060\ufeff"}, "content"),
    ({"scope": "project/*"}, "scope"),
    ({"scope": "nowhere/x"}, "scope"),
    ({"scope": 1}, "scope"),
    ({"kind": "file"}, "kind"),
    ({"kind": "entity"}, "kind"),
    ({"kind": "rumour"}, "kind"),
    ({"key": "x" * 201}, "key"),
    ({"tags": [""]}, "tags.0"),
    ({"tags": ["x" * 65]}, "tags.0"),
    ({"tags": [str(n) for n in range(10_000)]}, "tags"),
    ({"session": "nope"}, "session"),
    ({"confidence": 2}, "confidence"),
    ({"confidence": 10**400}, "confidence"),
    ({"pinned": "yes"}, "pinned"),
    ({"valid_from": "2026-01-01T00:00:00"}, "valid_from"),
    ({"valid_from": "2026-01-01"}, "valid_from"),
    ({"valid_from": 1767225600}, "valid_from"),
    ({"valid_from": "1767225600"}, "valid_from"),
    ({"valid_from": "2026-02-30T00:00:00Z"}, "valid_from"),
    ({"valid_from": "0001-01-01T00:00:00+14:00"}, "valid_from"),
    ({"valid_to": "9999-12-31T23:59:59-14:00"}, "valid_to"),
    ({"valid_from": "2026-02-02T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"}, "valid_to"),
    ({"edges": [{"to": "$memory", "type": "follows"}]}, "edges.0.type"),
    ({"edges": [{"to": "$memory", "type": "likes"}]}, "edges.0.type"),
    ({"edges": [{"to": "x", "type": "led_to"}]}, "edges.0.to"),
    ({"edges": [{"to": "$memory", "type": "led_to", "weight": 1.5}]}, "edges.0.weight"),
    ({"edges": [{"to": "$memory", "type": "led_to"}] * 51}, "edges"),
    ({"metadata": {"a": {"b\u0000": 1}}}, "metadata.a"),
    ({"git": {"commit": "HEAD"}}, "git.commit"),
    ({"git": {"files": ["a.py", "../../etc/passwd"]}}, "git.files.1"),
    ({"git": {"files": ["/etc/passwd"]}}, "git.files.0"),
    ({"git": {"files": ["a\nb.py"]}}, "git.files.0"),
    ({"git": {"files": ["x" * 1025]}}, "git.files.0"),
    ({"git": {"files": ["\u6f22" * 1000]}}, "git.files.0"),
    ({"git": {"files": ["a.py"] * 201}}, "git.files"),
    ({"git": {"lines": {"/etc/passwd": [[1, 2]]}}}, "git.lines"),
    ({"git": {"lines": {"a.py": [[-1, 2]]}}}, "git.lines.a.py.0"),
    ({"git": {"lines": {"a.py": [[9, 2]]}}}, "git.lines.a.py.0"),
    ({"git": {"lines": {"a.py": [[1, 10**30]]}}}, "git.lines.a.py.0"),
    ({"summary": ""}, "summary"),
    ({"supersede_reason": " "}, "supersede_reason"),
]


async def check(place: Place, cases: Sequence[tuple[str, dict[str, Any], str]]) -> None:
    """Each body is refused for its field, and none leaves a row behind."""
    sent = [(path, json.dumps(place.filled(body)).encode()) for path, body, _ in cases]
    fields = iter(field for _, _, field in cases)
    async for case, document in place.all_refused(sent):
        assert document["status"] == 422, case
        assert names(document, next(fields)), (case, document)


async def test_an_invalid_field_of_a_memory_is_named(place: Place) -> None:
    path = "/v1/remember"
    await check(place, [(path, {**REMEMBER, **wrong}, field) for wrong, field in WRONG_MEMORIES])


async def test_a_batch_names_the_item_and_the_field(place: Place) -> None:
    async with place.unchanged():
        for wrong, field in WRONG_MEMORIES[::8]:
            items = [place.filled({**REMEMBER, **wrong})]
            data = json.dumps({"items": items}).encode()
            status, _, body = await place.send("POST", "/v1/remember/batch", data)
            document = json.loads(body)
            if status == 200:
                [document] = document["items"]
            assert document["status"] == 422, wrong
            assert names(document, f"items.0.{field}"), (wrong, document)


WRONG_TURNS: list[tuple[dict[str, Any], str]] = [
    ({"role": "robot"}, "turns.0.role"),
    ({"content": "\u200b \u3164"}, "turns.0.content"),
    ({"at": "9999-12-31T23:59:59-14:00"}, "turns.0.at"),
    ({"tool": "x" * 201}, "turns.0.tool"),
    ({"external_id": "x" * 201}, "turns.0.external_id"),
    ({"digested": True}, "turns.0.digested"),
]


async def test_an_invalid_field_of_a_turn_is_named(place: Place) -> None:
    def body(wrong: dict[str, Any]) -> dict[str, Any]:
        return {"session": place.session, "turns": [{**TURN, **wrong}]}

    await check(place, [("/v1/turns", body(wrong), field) for wrong, field in WRONG_TURNS])


async def test_one_invalid_turn_rejects_the_whole_call(place: Place) -> None:
    for wrong, status in (({"role": "x"}, 422), ({"content": "x" * 262_145}, 413)):
        turns = [TURN, {**TURN, **wrong}, TURN]
        data = json.dumps({"session": place.session, "turns": turns}).encode()
        document = await place.refused("POST", "/v1/turns", data)
        assert document["status"] == status
        assert document["field"].startswith("turns.1")
    for turns in ([], [TURN] * 1001):
        data = json.dumps({"session": place.session, "turns": turns}).encode()
        assert (await place.refused("POST", "/v1/turns", data))["field"] == "turns"


OTHER_POSTS: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/sessions/start", {"agent": "x" * 201}, "agent"),
    ("/v1/sessions/start", {"project": " "}, "project"),
    ("/v1/sessions/a%00b/end", {}, "id"),
    ("/v1/recall", {"limit": 0}, "limit"),
    ("/v1/recall", {"limit": 101}, "limit"),
    ("/v1/recall", {"budget_tokens": -1}, "budget_tokens"),
    ("/v1/recall", {"depth": 9}, "depth"),
    ("/v1/recall", {"kinds": ["rumour"]}, "kinds.0"),
    ("/v1/recall", {"kinds": ["bug"] * 21}, "kinds"),
    ("/v1/recall", {"scopes": ["global", "project/a/b"]}, "scopes.1"),
    ("/v1/recall", {"scopes": ["global"] * 51}, "scopes"),
    ("/v1/recall", {"include": ["secrets"]}, "include.0"),
    ("/v1/dream", {"scope": "project/.."}, "scope"),
    ("/v1/dream", {"session": "$session"}, "scope"),
    ("/v1/remember/batch", {"items": []}, "items"),
    ("/v1/remember/batch", {"items": [{}] * 501}, "items"),
    ("/v1/remember/batch", {"items": ["x"]}, "items.0"),
]


async def test_an_invalid_field_of_any_other_call_is_named(place: Place) -> None:
    await check(
        place,
        [(path, {**GOOD.get(path, {}), **wrong}, field) for path, wrong, field in OTHER_POSTS],
    )


FILE = CHANGE["files"][0]


COMMIT = CHANGE["commits"][0]


def _file(**wrong: Any) -> dict[str, Any]:
    return {"files": [{**FILE, **wrong}]}


def _commit(**wrong: Any) -> dict[str, Any]:
    return {"commits": [{**COMMIT, **wrong}]}


WRONG_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"project": " "}, "project"),
    ({"after": "HEAD"}, "after"),
    ({"after": "A" * 40}, "after"),
    ({"after": SHA + "\n"}, "after"),
    ({"before": "0" * 65}, "before"),
    ({"commits": []}, "commits"),
    ({"v": 2}, "v"),
    ({"branch": "refs/tags/v1"}, "branch"),
    ({"deleted": True}, "after"),
    ({"after": "0" * 40}, "after"),
    ({"deleted": True, "after": None}, "files"),
    ({"files": None}, "files"),
    (_commit(sha="main"), "commits.0.sha"),
    (_commit(subject="x" * 2001), "commits.0.subject"),
    (_commit(committed_at="9999-12-31T23:59:59-14:00"), "commits.0.committed_at"),
    (_commit(committed_at=1767225600), "commits.0.committed_at"),
    (_file(status="eaten"), "files.0.status"),
    (_file(path="/etc/passwd"), "files.0.path"),
    (_file(path="a/../../b"), "files.0.path"),
    (_file(path=".."), "files.0.path"),
    (_file(path="a\\..\\b"), "files.0.path"),
    (_file(path="C:\\a"), "files.0.path"),
    (_file(path="a\x7fb"), "files.0.path"),
    (_file(path="x" * 1025), "files.0.path"),
    (_file(path="\u6f22" * 1000), "files.0.path"),
    (_file(status="renamed"), "files.0.old_path"),
    (_file(status="renamed", old_path="../a"), "files.0.old_path"),
    (_file(hunks=[[-1, 1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[1, -1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[1, 1, 1, 2**63]]), "files.0.hunks.0"),
    (_file(hunks=[[3, 4, 3, 4], [6, 1, 9, 1]]), "files.0.hunks"),
    (_file(hunks=[[3, 1, 3, 4], [6, 1, 6, 1]]), "files.0.hunks"),
    (_file(hunks=[[0, 1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[2**31 - 1, 1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[{"old_start": 1, "old_lines": 1}]), "files.0.hunks.0"),
    (_file(commit="HEAD"), "files.0.commit"),
    (_file(mode="100644"), "files.0.mode"),
]


async def test_an_invalid_field_of_a_git_change_is_named(place: Place) -> None:
    path = "/v1/git/changes"
    await check(place, [(path, {**CHANGE, **wrong}, field) for wrong, field in WRONG_CHANGES])
