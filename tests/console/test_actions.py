"""What people change in the console, and that nobody changes more than they may."""

from __future__ import annotations

import json
from typing import Any

from reverie.domain.access.principals import KeyRole
from reverie_services.console.actions import ACTIONS
from tests.console.pages_over_http import visiting
from tests.console.sample import DISTINCT, SCOPE, fill, remember
from tests.support.stack import Stack


async def _state(stack: Stack, memory: str) -> list[Any]:
    """What people can change about a memory."""
    found = await stack.get(f"/v1/memories/{memory}")
    return [found[name] for name in ("content", "kind", "tags", "version", "status", "pinned")]


async def _links(stack: Stack, memory: str) -> list[str]:
    """What a memory was said to depend on; Reverie itself adds links of other types."""
    neighbours = (await stack.get(f"/v1/memories/{memory}"))["neighbours"]
    return [each["id"] for each in neighbours if each["type"] == "depends_on"]


async def test_a_reader_sees_no_form_and_can_change_nothing(stack: Stack) -> None:
    sample = await fill(stack, "plain")
    before = await _state(stack, sample.memory)
    async with visiting(stack, stack.key_of(role=KeyRole.READER)) as visitor:
        page = await visitor.get(f"/memories/{sample.memory}")
        csrf = await visitor.csrf()
        links = [attrs.get("href", "") for tag, attrs in page.page.elements if tag == "a"]
        fields = {
            "csrf": csrf, "id": sample.memory, "content": "changed", "kind": "lesson",
            "reason": "x", "to": sample.other, "type": "led_to", "to_version": "1", "state": "done",
        }  # fmt: skip
        statuses = {
            name: (await visitor.post(f"/do/{name}", fields)).status
            for name in ACTIONS
            if name != "golden"
        }
        dream = await visitor.post("/do/dream", {"csrf": csrf, "id": SCOPE})
    assert [link for link in links if link.startswith("/console/do/")] == []
    assert set(statuses.values()) <= {403, 404, 422}
    assert statuses["edit"] == statuses["forget"] == statuses["pin"] == dream.status == 403
    assert await _state(stack, sample.memory) == before


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
        gone = "01900000-0000-7000-8000-000000000000"
        answer = await visitor.post("/do/forget", {**fields, "id": [*memories, gone]})
        none = await visitor.post("/do/forget", {**fields, "id": [gone]})
    assert answer.headers["Location"] == "/console/stale?done=forget&count=2"
    assert none.status == 404
