"""Interface test cases of tasks, facts, sessions, dreams, git changes, traces and events."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.interfaces.case import Case, Fields
from tests.interfaces.memory_and_graph_cases import ids
from tests.interfaces.running_system import PROJECT, SCOPE, World


async def _tasks(world: World) -> Fields:
    scope = f"project/p{world.number()}"
    return {"scope": scope, "_id": (await world.task(scope=scope))["id"]}


async def _anchored(world: World) -> Fields:
    made = await world.learned()
    git = {"commit": world.clone.git("rev-parse", "HEAD"), "files": ["lamp.py"]}
    return {**made, "anchors": [{"memory": made["_id"], "git": git}]}


async def _moving(world: World) -> Fields:
    return {**await world.task(), "state": "done"}


async def _claiming(world: World) -> Fields:
    return {**await world.task(), "agent": "ann", "seconds": 60}


async def _dreams(world: World) -> Fields:
    made = await world.dreamt()
    return {"scope": made["_scope"], "_id": made["id"]}


async def _reviews(world: World) -> Fields:
    return {"_id": (await world.review())["id"]}


async def _claim(world: World) -> Fields:
    day = datetime.now(UTC).date().isoformat()
    claim = f"Hemp rope {world.words()} shrinks when wet."
    return {
        "topic": f"rope{world.number()}",
        "statement": claim,
        "confidence": "high",
        "verified": day,
    }


async def _claims(world: World) -> Fields:
    claim = await _claim(world)
    made = await world.post("/v1/facts", claim)
    return {"topic": claim["topic"], "_id": made["id"]}


async def _turns(world: World) -> Fields:
    fields = await world.session("session")
    said = f"Pier {world.words()} is closed."
    return {**fields, "turns": [{"role": "user", "content": said}], "_said": said}


async def _sessions(world: World) -> Fields:
    agent = f"agent{world.number()}"
    start = {"agent": agent, "project": PROJECT}
    session = (await world.post("/v1/sessions/start", start))["session"]
    return {"agent": agent, "_id": session}


async def _told(world: World) -> Fields:
    scope = f"topic/told{world.number()}"
    await world.memory("Bell {} tolls.", scope=scope)
    return {"scope": [scope], "_scope": scope}


async def _file(world: World) -> Fields:
    scope = (await _told(world))["_scope"]
    headers = {"Authorization": f"Bearer {world.stack.key}"}
    where = f"{world.stack.url}/v1/export?scope={scope}"
    async with world.stack.http.get(where, headers=headers) as answer:
        return {"data": await answer.text(), "dry_run": True}


async def _happening(world: World) -> Fields:
    fields = {**await world.place(), "event": ["remembered"]}
    await world.memory()
    return fields


async def _delivered(world: World) -> Fields:
    session = (await world.session())["id"]
    given = await world.post("/v1/preflow", {"query": "lamps", "session": session})
    return {"id": given["trace_id"]}


async def _traces(world: World) -> Fields:
    session = (await world.session())["id"]
    asked = await world.post("/v1/recall", {"query": "lamps", "session": session})
    return {"session": session, "_trace": asked["trace_id"]}


WORK_CASES = (
    Case("list_tasks", _tasks, lambda a, f: ids(a) == {f["_id"][-8:]},
         cli="task list --scope {scope}", client="list_tasks"),
    Case("update_task", _moving, lambda a, f: a["task"]["state"] == "done",
         cli="task update {id} {state}", client="update_task", tool="task_update"),
    Case("claim_task", _claiming, lambda a, f: a["task"]["claimed_by"] == "ann",
         cli="task claim {id} --agent {agent} --lease {seconds}", client="claim_task",
         tool="task_update", called={"seconds": "claim_seconds"}),
    Case("release_task", World.claimed, lambda a, f: not a["task"].get("claimed_by"),
         cli="task release {id} --agent {agent}", client="release_task"),
    Case("add_fact", _claim, lambda a, f: a["fact"]["statement"] == f["statement"],
         cli="fact add {topic} '{statement}' --confidence {confidence} --verified {verified}",
         client="add_fact"),
    Case("list_facts", _claims, lambda a, f: ids(a) == {f["_id"][-8:]},
         cli="fact list --topic {topic}", client="list_facts"),
    Case("session_start", lambda w: w.none(agent="ann", project=PROJECT),
         lambda a, f: a["scope"] == SCOPE,
         cli="session start --agent {agent} --project {project}", client="start_session"),
    Case("append_turns", _turns, lambda a, f: a["accepted"] == 1,
         cli="session append {session} user '{_said}'", client="append_turns"),
    Case("session_end", lambda w: w.session(summary="Mooring."),
         lambda a, f: a["session"] == f["id"],
         cli="session end {id} --summary {summary}", client="end_session"),
    Case("list_sessions", _sessions, lambda a, f: ids(a) == {f["_id"][-8:]},
         cli="sessions --agent {agent}", client="list_sessions", tool="sessions"),
    Case("list_turns", lambda w: w.session(), lambda a, f: a["items"][0]["role"] == "user",
         cli="sessions {id}", client="list_turns", renamed={"id": "session"}),
    Case("replay_session", lambda w: w.session(),
         lambda a, f: a["items"][0]["turn"]["role"] == "user",
         cli="sessions {id} --replay", client="replay_session", renamed={"id": "session"}),
    Case("correct_session", lambda w: w.session(diff="no, at the south pier"),
         lambda a, f: a["session"] == f["id"],
         cli="session correct {id} '{diff}'", client="correct_memories", renamed={"id": "session"}),
    Case("dream", lambda w: w.none(scope=SCOPE), lambda a, f: a["scope"] == SCOPE,
         cli="dream run --scope {scope} --no-wait", client="start_dream", tool="dream"),
    Case("list_dreams", _dreams, lambda a, f: f["_id"][-8:] in ids(a),
         cli="dream history --scope {scope}", client="list_dreams"),
    Case("get_dream", World.dreamt, lambda a, f: a["id"] == f["id"],
         cli="dream history {id}", client="get_dream"),
    Case("list_undigested", lambda w: w.none(scope=SCOPE), lambda a, f: "items" in a,
         cli="dream status --scope {scope}", client="list_undigested"),
    Case("list_summaries", World.narrated, lambda a, f: a["items"][0]["overview"] == f["_told"],
         cli="dream summaries --scope {scope}", client="list_summaries"),
    Case("list_summary_versions", World.summarised, lambda a, f: a["items"][0]["version"] >= 1,
         cli="dream summaries --scope {scope} --history", client="list_summary_versions"),
    Case("run_maintenance", lambda w: w.none(steps=["archive"], dry_run=True),
         lambda a, f: a["archived"] == 0,
         cli="maintenance run --step archive --dry-run", client="run_maintenance"),
    Case("list_reviews", _reviews, lambda a, f: f["_id"][-8:] in ids(a),
         cli="review list", client="list_reviews"),
    Case("accept_review", World.review, lambda a, f: a["state"] == "accepted",
         cli="review accept {id}", client="accept_review"),
    Case("reject_review", World.review, lambda a, f: a["state"] == "rejected",
         cli="review reject {id}", client="reject_review"),
    Case("git_change", World.change,
         lambda a, f: "event" in a or a["items"][0]["state"] == "announced",
         cli=f"git announce --range {{_range}} --project {PROJECT} -C {{_clone}}",
         client="announce_git_change"),
    Case("list_unanchored", World.learned, lambda a, f: f["_id"] in str(a),
         cli="git anchor --dry-run --project {project} -C {_clone}", client="list_unanchored"),
    Case("set_anchors", _anchored, lambda a, f: a.get("anchored") == 1 or f["_id"] in str(a),
         cli="git anchor --project {project} -C {_clone}", client="set_anchors"),
    Case("list_traces", _traces, lambda a, f: "items" in a,
         cli="trace --session {session}", client="list_traces"),
    Case("get_trace", World.trace, lambda a, f: a["trace_id"] == f["id"],
         cli="trace {id}", client="get_trace"),
    Case("confirm_delivery", _delivered, lambda a, f: a["delivered_at"],
         cli="trace {id} --confirm", client="confirm_delivery"),
    Case("watch_memories", _happening, lambda a, f: a["items"][0]["data"]["event"] == "remembered",
         cli="watch --event remembered --limit 1", client="stream_events"),
    Case("export", _told, lambda a, f: f["_scope"] in a["data"],
         cli="export --scope {_scope}", client="export_memories"),
    Case("import", _file, lambda a, f: (a["rejected"], a["dry_run"]) == (0, True),
         cli="import memories --dry-run", client="import_memories", renamed={"data": "source"}),
)  # fmt: skip
