"""Interface test cases of the engine: agents, groups, messages, approvals and their events."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.console.sample_tenant import PNG
from tests.interfaces.case import Case, Fields
from tests.interfaces.memory_and_graph_cases import ids
from tests.interfaces.running_engine import ASKS
from tests.interfaces.running_system import World
from tests.support.stack import eventually

FOR_PEOPLE = "no model may approve what asks a person; a person does it with `reverie {}`"
ENDLESS = "a tool call has an end and this stream has none; `list_messages` has the answers"


async def _spec(world: World) -> Fields:
    spec = {"persona": "Be brief."}
    return {"name": f"mate{world.number()}", "spec": spec, "_spec": json.dumps(spec)}


async def _agent(world: World) -> Fields:
    fields = await _spec(world)
    await world.stack.call("PUT", f"/v1/agents/{fields['name']}", fields["spec"])
    return {"name": fields["name"]}


async def _group(world: World) -> Fields:
    made = await world.post("/v1/groups", {"agents": ["beck"], "project": "quay"})
    return {"id": made["id"]}


async def _listed(world: World) -> Fields:
    return {"_id": (await _group(world))["id"]}


async def _saying(world: World) -> Fields:
    return {**await _group(world), "text": f"Ahoy {world.words()}."}


async def _said(world: World) -> Fields:
    fields = await _saying(world)
    posted = await world.post(f"/v1/groups/{fields['id']}/messages", {"text": fields["text"]})
    return {"id": fields["id"], "after": 0, "_text": fields["text"], "_posted": posted}


async def _shown(world: World) -> Fields:
    fields = await _saying(world)
    path = f"/v1/groups/{fields['id']}/messages"
    image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    await world.post(path, {"text": fields["text"], "images": [image]})
    [said, *_] = (await world.stack.get(path))["items"]
    return {"id": fields["id"], "image": said["images"][0], "_data": image["data"]}


async def _watched(world: World) -> Fields:
    fields = await _said(world)
    return {"id": fields["id"], "after": fields["_posted"]["after"]}


async def _waiting(world: World) -> Fields:
    group = (await _group(world))["id"]
    await world.post(f"/v1/groups/{group}/messages", {"text": ASKS})

    async def look() -> Any:
        [turn] = (await world.stack.get(f"/v1/groups/{group}/messages"))["turns"]
        return turn if turn["status"] == "waiting" else None

    turn = await eventually(look)
    return {"id": group, "turn": turn["id"], "call": next(iter(turn["waits"])), "approved": True}


async def _stopping(world: World) -> Fields:
    fields = await _waiting(world)
    return {"id": fields["id"], "turn": fields["turn"]}


ENGINE_CASES = (
    Case("list_agents", World.none, lambda a, f: "beck" in {one["name"] for one in a["items"]},
         cli="agents list", client="list_agents"),
    Case("get_agent_spend", World.none, lambda a, f: "agents" in a,
         cli="agents spend", client="get_agent_spend"),
    Case("put_agent", _spec, lambda a, f: a["spec"]["persona"] == f["spec"]["persona"],
         cli="agents put {name} {_spec}", client="put_agent"),
    Case("delete_agent", _agent, lambda a, f: a["name"] == f["name"],
         cli="agents delete {name}", client="delete_agent"),
    Case("create_group", lambda w: w.none(agents=["beck"], name="watch"),
         lambda a, f: (a["name"], a["agents"]) == ("watch", ["beck"]),
         cli="groups create beck --name {name}", client="create_group"),
    Case("list_groups", _listed, lambda a, f: f["_id"][-8:] in ids(a),
         cli="groups list", client="list_groups"),
    Case("post_message", _saying, lambda a, f: "beck" in a["turns"],
         cli="groups say {id} '{text}'", client="post_message", renamed={"id": "group"}),
    Case("list_messages", _said, lambda a, f: a["items"][0]["content"] == f["_text"],
         cli="groups messages {id} --after {after}", client="load_conversation",
         renamed={"id": "group"}),
    Case("get_image", _shown, lambda a, f: a["data"] == f["_data"],
         cli="groups image {id} {image}", client="get_image", renamed={"id": "group"}),
    Case("approve_call", _waiting, lambda a, f: a["turns"] == [f["turn"]],
         cli="groups approve {id} {turn} {call}", client="approve_call", renamed={"id": "group"},
         empty={"MCP": FOR_PEOPLE.format("groups approve")}),
    Case("stop_turns", _stopping, lambda a, f: a["turns"] == [f["turn"]],
         cli="groups stop {id} --turn {turn}", client="stop_turns", renamed={"id": "group"}),
    Case("watch_group", _watched, lambda a, f: a["items"][0]["data"]["type"] == "turn_started",
         cli="groups watch {id} --after {after} --limit 1", client="watch_group",
         renamed={"id": "group"}, empty={"MCP": ENDLESS}),
)  # fmt: skip
