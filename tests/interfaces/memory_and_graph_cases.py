"""Interface test cases of memories and the graph."""

from __future__ import annotations

import base64
from typing import Any
from uuid import uuid4

from tests.interfaces.case import Case, Fields
from tests.interfaces.running_system import PICTURE, PROJECT, SCOPE, World
from tests.support.stack import eventually
from tests.support.tables import rows

GIF = "image/gif"


def ids(answer: Any, name: str = "items") -> set[str]:
    """The ends of the ids in a list of the answer; MCP prints no more of them."""
    return {str(one["id"])[-8:] for one in answer[name]}


async def _fact(world: World) -> Fields:
    content = f"Rope {world.words()} is new."
    return {"content": content, "kind": "lesson", "scope": SCOPE, "key": f"rope{world.number()}"}


async def _facts(world: World) -> Fields:
    items = [{"content": f"Chain {world.words()} rusts.", "scope": SCOPE} for _ in range(2)]
    return {"items": items, "_lines": "\n".join(one["content"] for one in items)}


async def _asked(world: World) -> Fields:
    made = await world.memory("The anchor number {} weighs two tons.")

    async def known() -> bool:
        """Whether its meaning is known too, as that of others like it."""
        asked = "select 1 from memory where id = %s and enriched_version >= version"
        return bool(rows(world.stack.admin_url, asked, made["id"]))

    await eventually(known)
    return {"query": made["_content"], "limit": 3, "_id": made["id"]}


async def _knowing(world: World) -> Fields:
    return {"query": (await _asked(world))["query"]}


async def _start(world: World) -> Fields:
    made = await world.memory("Always check rope {}.", kind="convention")
    return {"project": PROJECT, "_content": made["_content"]}


async def _turn(world: World) -> Fields:
    session = await world.session("session")
    made = await world.memory("The winch number {} sticks.")
    return {**session, "query": made["_content"]}


async def _attaching(world: World) -> Fields:
    file = world.folder / f"rope{world.number()}.gif"
    file.write_bytes(base64.b64decode(PICTURE))
    fields = {"id": (await world.memory())["id"], "data": PICTURE}
    return {**fields, "text": f"Rope {world.words()}", "_file": file}


async def _illustrated(world: World) -> Fields:
    fields = await world.picture()
    return {"id": fields["id"], "_hash": fields["hash"]}


async def _touched(world: World) -> Fields:
    path, sha = f"src/rope{world.number()}.py", uuid4().hex + "0" * 8
    commit = {"sha": sha, "subject": "s", "committed_at": "2026-01-01T00:00:00Z"}
    change = {"project": "coil", "branch": "main", "after": sha, "commits": [commit]}
    files = [{"path": path, "status": "modified"}]
    await world.post("/v1/git/changes", {**change, "files": files})
    return {"project": "coil", "edited": [path]}


async def _listed(world: World) -> Fields:
    scope = f"topic/t{world.number()}"
    return {"scope": scope, "_id": (await world.memory(scope=scope))["id"]}


async def _skills(world: World) -> Fields:
    return {"scope": SCOPE, "_id": (await world.skill())["id"]}


async def _edit(world: World) -> Fields:
    return {**await world.memory(), "content": f"Lamp {world.words()} is out.", "tier": "hot"}


async def _two_ids(world: World) -> Fields:
    two = await world.two()
    return {"ids": [two["from"], two["to"]]}


async def _around(world: World) -> Fields:
    two = await world.two()
    await world.post("/v1/links", two)
    return {"id": two["from"], "depth": 1, "_near": two["to"]}


async def _back(world: World) -> Fields:
    return {**await world.edited(), "version": 1}


async def _judged(world: World) -> Fields:
    return {**await world.memory(), "verdict": "approve"}


async def _remembered(world: World) -> Fields:
    """Nothing to send; a memory is there."""
    await world.memory()
    return {}


async def _touching(world: World) -> Fields:
    return {"path": "lamp.py", "project": PROJECT}


MEMORY_CASES = (
    Case(
        "remember", _fact, lambda a, f: a["status"] == "created",
        cli="remember '{content}' --kind {kind} --scope {scope} --key {key}",
        client="remember", tool="remember",
    ),
    Case(
        "remember_batch", _facts, lambda a, f: [one["version"] for one in a["items"]] == [1, 1],
        cli=f"remember - --lines --scope {SCOPE}", stdin="_lines", client="remember_batch",
    ),
    Case(
        "recall", _asked, lambda a, f: f["_id"][-8:] in ids(a, "memories"),
        cli="recall '{query}' --limit {limit}", client="recall", tool="recall",
    ),
    Case(
        "recall_projects", _knowing, lambda a, f: a["items"][0]["project"] == PROJECT,
        cli="project which '{query}'", client="recall_projects",
    ),
    Case(
        "context", _start, lambda a, f: f["_content"] in a["markdown"],
        cli="context --project {project}", client="get_context", tool="context",
    ),
    Case(
        "preflow", _turn, lambda a, f: f["query"] in a["markdown"] and a["turn"] == 1,
        cli="preflow {session} '{query}'", client="preflow",
    ),
    Case(
        "attach_picture", _attaching, lambda a, f: (a["media_type"], a["text"]) == (GIF, f["text"]),
        cli="picture add {id} {_file} --text '{text}'", client="attach_picture",
    ),
    Case(
        "list_pictures", _illustrated, lambda a, f: a["items"][0]["hash"] == f["_hash"],
        cli="picture list {id}", client="list_pictures",
    ),
    Case(
        "get_picture", World.picture, lambda a, f: a["data"] == PICTURE,
        cli="picture get {id} {hash}", client="get_picture",
    ),
    Case(
        "remove_picture", World.picture, lambda a, f: a["hash"] == f["hash"],
        cli="picture remove {id} {hash}", client="remove_picture",
    ),
    Case(
        "predict", _touched, lambda a, f: f["edited"][0] in {file["path"] for file in a["files"]},
        cli="predict --project {project} --edited {edited[0]}", client="predict",
    ),
    Case(
        "list_memories", _listed, lambda a, f: ids(a) == {f["_id"][-8:]},
        cli="memories --scope {scope}", client="list_memories",
    ),
    Case(
        "get_memory", World.memory, lambda a, f: a["content"] == f["_content"],
        cli="show {id}", client="get_memory",
    ),
    Case(
        "edit_memory", _edit, lambda a, f: (a["version"], a["changed"]) == (2, True),
        cli="edit {id} --content '{content}' --tier {tier}", client="edit_memory",
    ),
    Case("archive", World.memory, lambda a, f: (a["version"], a["changed"]) == (2, True),
         cli="archive {id}", client="archive"),
    Case(
        "forget", World.memory, lambda a, f: a["changed"] and a["restorable_until"],
        cli="forget {id}", client="forget", tool="forget",
    ),
    Case("forget_batch", _two_ids, lambda a, f: (a["forgotten"], a["more"]) == (2, False),
         cli="forget {ids[0]} {ids[1]}", client="forget_batch"),
    Case("erase", World.memory, lambda a, f: int(a["rows"]["memory"]) == 1,
         cli="erase {id} --yes", client="erase"),
    Case("pin", World.memory, lambda a, f: a["changed"], cli="pin {id}", client="pin"),
    Case("unpin", lambda w: w.memory(pinned=True), lambda a, f: a["changed"],
         cli="unpin {id}", client="unpin"),
    Case("restore", World.archived, lambda a, f: a["status"] == "active",
         cli="restore {id}", client="restore"),
    Case("confirm", World.memory, lambda a, f: a["cleared"] == 0,
         cli="confirm {id}", client="confirm", tool="confirm"),
    Case(
        "feedback", _judged, lambda a, f: a["changed"],
        cli="feedback {id} {verdict}", client="feedback", tool="feedback",
    ),
    Case("history", World.edited, lambda a, f: [one["version"] for one in a["items"]] == [2, 1],
         cli="history {id}", client="list_versions", tool="history"),
    Case("rollback", _back, lambda a, f: a["version"] == 3,
         cli="rollback {id} {version}", client="rollback", tool="rollback"),
    Case("provenance", World.memory, lambda a, f: a["id"] == f["id"],
         cli="provenance {id}", client="get_provenance"),
    Case("replay", World.skill, lambda a, f: a["steps"][0] == "Steer to pier",
         cli="skill replay {id} place=pier", client="replay_skill"),
    Case("list_skills", _skills, lambda a, f: f["_id"][-8:] in ids(a),
         cli="skill list --scope {scope}", client="list_skills"),
    Case("link", World.two, lambda a, f: a["created"],
         cli="link {from} {to} {type}", client="link", tool="link",
         renamed={"from": "source", "to": "target"}),
    Case("unlink", World.edge, lambda a, f: a["id"] == f["id"],
         cli="unlink {id}", client="unlink", tool="unlink"),
    Case("subgraph", _around, lambda a, f: f["_near"][-8:] in ids(a, "nodes"),
         cli="subgraph {id} --depth {depth}", client="get_subgraph", tool="subgraph"),
    Case("impact", _touching, lambda a, f: a["path"] == f["path"] if "path" in a else "items" in a,
         cli="impact {path} --project {project}", client="list_impact", tool="impact"),
    Case("graph_stats", _remembered, lambda a, f: a["memories"] > 0 and "components" in a,
         cli="stats", client="get_graph_stats"),
    Case("stale", lambda w: w.none(project=PROJECT), lambda a, f: "items" in a,
         cli="stale --project {project}", client="list_stale", tool="stale"),
)  # fmt: skip
