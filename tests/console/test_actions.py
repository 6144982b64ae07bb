"""What people change in the console, and that nobody changes more than they may."""

from __future__ import annotations

import json
import re
from typing import Any

from reverie.domain.access.principals import KeyRole
from reverie_services.console.action import Action
from reverie_services.console.actions import ACTIONS
from tests.console.pages_over_http import visiting
from tests.console.sample_tenant import DISTINCT, NOWHERE, Sample, fill, remember
from tests.support.dead_letters import bury
from tests.support.stack import Stack


async def _state(stack: Stack, memory: str) -> list[Any]:
    """What people can change about a memory."""
    found = await stack.get(f"/v1/memories/{memory}")
    return [found[name] for name in ("content", "kind", "tags", "version", "status", "pinned")]


async def _links(stack: Stack, memory: str) -> list[str]:
    """What a memory was said to depend on; Reverie itself adds links of other types."""
    neighbours = (await stack.get(f"/v1/memories/{memory}"))["neighbours"]
    return [each["id"] for each in neighbours if each["type"] == "depends_on"]


def _fields(sample: Sample, action: Action) -> dict[str, Any]:
    """A form of an action, filled in so that whoever may do it does it."""
    filled = {
        "id": sample.subject_of(action), "content": "changed", "kind": "lesson", "label": "a key",
        "role": "reader", "to": sample.other, "type": "led_to", "to_version": "1", "state": "done",
        "dream.turns": "9",
    }  # fmt: skip
    return {name: filled[name] for name in ("id", *(each.name for each in action.fields))
            if name in filled}  # fmt: skip


RIGHTS: tuple[dict[str, Any], ...] = (
    {"role": KeyRole.READER},
    {"role": KeyRole.CI},
    {"role": KeyRole.WRITER, "reads": ["*"], "writes": ["project/mill"]},
    {"role": KeyRole.ADMIN, "reads": ["*"], "writes": ["project/mill"]},
)


async def test_no_action_is_done_for_who_may_not(stack: Stack) -> None:
    sample = await fill(stack, "plain")
    before = await _state(stack, sample.memory)
    # A review that is not there is not found by anybody; nor are chats where no engine runs.
    unseen = {name for name, action in ACTIONS.items() if action.subject in {"review", "chat"}}
    for rights in RIGHTS:
        async with visiting(stack, stack.key_of(**rights)) as visitor:
            page = await visitor.get(f"/memories/{sample.memory}")
            csrf = await visitor.csrf()
            statuses = {}
            for name, action in ACTIONS.items():
                if rights["role"] is KeyRole.ADMIN and action.subject in {"key", "webhook"}:
                    continue
                fields = {"csrf": csrf, **_fields(sample, action)}
                statuses[name] = (await visitor.post(f"/do/{name}", fields)).status
        forms = [link["href"] for link in page.page.find("a") if "/console/do/" in link["href"]]
        assert forms == [], rights
        done = {name: status for name, status in statuses.items() if status != 403}
        assert done.keys() <= unseen, (rights, done)
        assert await _state(stack, sample.memory) == before, rights


async def test_every_form_needs_a_token_and_is_refused_from_another_site(stack: Stack) -> None:
    memory = await remember(stack, "The sluice opens at nine.")
    other = await remember(stack, "The crane lifts four tonnes.")
    sample = Sample(memory, other, task=other, session="", trace="", edge=NOWHERE, picture="")
    forms = {f"/do/{name}": _fields(sample, action) for name, action in ACTIONS.items()}
    forms |= {"/sign-out": {}, "/language": {"language": "zh"}, "/golden-set": {"question": "x"}}
    before = await _state(stack, memory)
    async with visiting(stack, stack.key) as visitor:
        csrf = await visitor.csrf()
        refused = {
            path: (
                (await visitor.post(path, fields)).status,
                (await visitor.post(path, {**fields, "csrf": csrf}, Origin="https://evil.example"))
                .status,
                (await visitor.get(path)).status,
            )
            for path, fields in forms.items()
        }  # fmt: skip
    shown = {path: 200 if path.startswith("/do/") else 404 for path in forms}
    assert {path: statuses[:2] for path, statuses in refused.items()} == dict.fromkeys(
        forms, (403, 403)
    )
    assert {path for path, statuses in refused.items() if statuses[2] > shown[path]} <= {
        f"/do/{name}" for name, action in ACTIONS.items() if action.subject == "memory"
    }
    assert await _state(stack, memory) == before


async def test_a_new_key_is_shown_once_and_works_until_it_is_revoked(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        refused = await visitor.act("create-key", "", label="All", role="writer", reads=" , ")
        made = await visitor.act(
            "create-key", "", label="The mill", role="writer", reads="project/mill, topic/grain",
            writes="project/mill", expires_at="2099-01-31T12:00",
        )  # fmt: skip
        [key] = re.findall(r"rv_[A-Za-z0-9_-]{20,}", made.body)
        listed = await visitor.get("/keys")
        found = (await stack.get("/v1/memories", key=key))["items"]
        [entry] = [
            each for each in (await stack.get("/v1/admin/keys"))["items"]
            if each["label"] == "The mill"
        ]  # fmt: skip
        revoked = await visitor.act("revoke-key", entry["id"])
    assert (made.status, made.headers["Cache-Control"], found) == (200, "no-store", [])
    assert "Location" not in made.headers
    assert key not in listed.body
    # A key whose scopes are none is not made.
    assert (refused.status, ">All<" in listed.body) == (422, False)
    assert entry["reads"] == ["project/mill", "topic/grain"]
    assert (entry["writes"], entry["role"]) == (["project/mill"], "writer")
    assert entry["expires_at"].startswith("2099-01-31T12:00")
    assert revoked.status == 303
    assert (await stack.call("GET", "/v1/memories", key=key)).status == 401


async def test_settings_are_changed_and_go_back_to_the_operators(stack: Stack) -> None:
    project, tenant = "/v1/projects/harbour/settings", "/v1/admin/settings"
    before = [await stack.get(project), await stack.get(tenant)]
    async with visiting(stack, stack.key) as visitor:

        async def change(page: str, action: str, **fields: str) -> None:
            form = (await visitor.get(page)).page
            [link] = [each["href"] for each in form.find("a") if f"/do/{action}?" in each["href"]]
            shown = (await visitor.get(link.removeprefix("/console"))).page
            filled = {**shown.form(f"/console/do/{action}"), **fields}
            answer = await visitor.post(f"/do/{action}", filled)
            assert answer.status == 303, answer.page.text

        at = "/settings?project=harbour"
        await change(at, "project-settings", **{"context.hot": "700", "dream.idle_minutes": "2.5"})
        await change(at, "project-settings", **{"context.warm": "600"})
        changed = await stack.get(project)
        await change(at, "tenant-settings", **{"limits.requests_per_day": "90000"})
        limited = await stack.get(tenant)
        names = ("context.hot", "context.warm", "dream.idle_minutes")
        await change(at, "project-settings", **dict.fromkeys(names, ""))
        await change("/settings", "tenant-settings", **{"limits.requests_per_day": ""})
        wrong = await visitor.act("project-settings", "harbour", **{"context.hot": "many"})
    assert (changed["context"]["hot"], changed["context"]["warm"]) == (700, 600)
    assert changed["dream"]["idle_minutes"] == 2.5
    assert limited["limits"]["limits"]["requests_per_day"] == 90_000
    after = [await stack.get(project), await stack.get(tenant)]
    assert [each["dream"] for each in after] == [each["dream"] for each in before]
    assert after[0]["context"] == before[0]["context"]
    assert after[1]["limits"]["limits"] == before[1]["limits"]["limits"]
    assert wrong.status == 422


async def test_dead_letters_are_shown_and_sent_again(stack: Stack) -> None:
    first, second = await bury(stack, "no such scope"), await bury(stack)
    async with visiting(stack, stack.key) as visitor:
        listed = await visitor.get("/dead-letters")
        shown = await visitor.get(f"/dead-letters/{first}")
        [for_all] = [
            link["href"] for link in listed.page.find("a")
            if link["href"].count("id=") == 2
        ]  # fmt: skip
        sent = await visitor.follow_form(for_all, "/console/do/replay-letter")
        after = await visitor.get("/dead-letters")
    assert "no such scope" in listed.page.text
    assert "no such scope" in shown.page.text
    assert f"id={first}&id={second}&" in for_all
    assert sent.headers["Location"] == "/console/dead-letters?done=replay-letter&count=2"
    assert "Nothing here." in after.page.text


async def test_a_memory_is_edited_rolled_back_and_its_history_shows_the_difference(
    stack: Stack,
) -> None:
    memory = await remember(stack, "The sluice opens at nine.", tags=["water"])
    async with visiting(stack, stack.key) as visitor:
        edited = await visitor.act(
            "edit", memory, content="The sluice opens at ten.", kind="lesson", reason="new times"
        )
        page = await visitor.get(f"/memories/{memory}")
        back = await visitor.act("rollback", memory, to_version="1")
    assert edited.headers["Location"] == "/console/memories?done=edit&count=1"
    assert "<del>nine</del><ins>ten</ins>" in page.body
    assert "new times" in page.page.text
    assert back.status == 303
    restored = await stack.get(f"/v1/memories/{memory}")
    assert (restored["content"], restored["version"]) == ("The sluice opens at nine.", 3)
    assert restored["tags"] == ["water"]


async def test_an_edit_does_not_overwrite_one_that_came_between(stack: Stack) -> None:
    memory = await remember(stack, "The sluice opens at nine.")
    async with visiting(stack, stack.key) as visitor:
        form = (await visitor.get("/do/edit", id=memory)).page.form("/console/do/edit")
        await stack.call("PATCH", f"/v1/memories/{memory}", {"content": "It opens at noon."})
        late = await visitor.post("/do/edit", {**form, "content": "At ten.", "kind": "lesson"})
    assert late.status == 412
    assert (await stack.get(f"/v1/memories/{memory}"))["content"] == "It opens at noon."


async def test_memories_are_pinned_confirmed_linked_and_forgotten(stack: Stack) -> None:
    memory, other = (
        await remember(stack, "Moor at the east quay."),
        await remember(stack, "Low tide."),
    )
    path = f"/v1/memories/{memory}"
    async with visiting(stack, stack.key) as visitor:
        await visitor.act("pin", memory)
        assert (await stack.get(path))["pinned"] is True
        await visitor.act("unpin", memory)
        assert (await stack.get(path))["pinned"] is False
        assert (await visitor.act("confirm", memory)).status == 303
        await visitor.act("link", memory, to=other[-8:], type="depends_on")
        assert await _links(stack, memory) == [other]
        graph = await visitor.get("/graph", type="depends_on", **{"from": memory})
        [edge] = json.loads(graph.page.find("div", id="graph")[0]["data-graph"])["edges"]
        await visitor.act("unlink", edge["id"])
        assert await _links(stack, memory) == []
        asked = await visitor.get("/do/forget", id=memory)
        assert "can be restored until" in " ".join(asked.page.text.split())
        assert "east quay" in asked.page.text
        form = asked.page.form("/console/do/forget")
        gone = await visitor.post("/do/forget", {**form, "next": f"/console/memories/{memory}"})
        assert (await stack.call("GET", path)).status == 404
        # The page of what is forgotten is gone, too: the list offers to undo it.
        listed = await visitor.get(gone.headers["Location"].removeprefix("/console"))
        [undo] = [link for link in listed.page.find("a") if "/do/restore?" in link["href"]]
        await visitor.follow_form(undo["href"], "/console/do/restore")
        assert (await stack.get(path))["status"] == "active"
        await visitor.act("archive", memory)
        assert (await stack.get(path))["status"] == "archived"
        await visitor.act("restore", memory)
        assert (await stack.get(path))["status"] == "active"
        final = await visitor.get("/do/erase", id=memory)
        assert "cannot be undone" in final.page.text
        await visitor.act("erase", memory)
    assert (await stack.call("POST", f"{path}/restore")).status == 404


async def test_several_are_confirmed_at_once_and_one_failure_stops_no_other(stack: Stack) -> None:
    memories = [await remember(stack, content) for content in DISTINCT[:2]]
    async with visiting(stack, stack.key) as visitor:
        fields = {"csrf": await visitor.csrf(), "next": "/console/stale"}
        gone = NOWHERE
        answer = await visitor.post("/do/forget", {**fields, "id": [*memories, gone]})
        none = await visitor.post("/do/forget", {**fields, "id": [gone]})
    assert answer.headers["Location"] == "/console/stale?done=forget&count=2"
    assert none.status == 404
