"""Every operation that changes data, as a call and a query for its effect."""

from __future__ import annotations

import asyncio
from typing import Any, LiteralString
from uuid import UUID

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from tests.ingest.idempotency.changing_call import Case, Recipe, remember, text
from tests.support.import_files import export_file, memory_line
from tests.support.stack import Stack
from tests.support.tables import run

EDGE: LiteralString = "select known_to is null from edge where src = %s and kind = 'depends_on'"


def _of_memory(path: str, body: Any = None, **more: Any) -> Recipe:
    """A change of a memory made for it."""

    async def made(stack: Stack, n: int) -> Case:
        memory = await remember(stack, text(path, body, n), **more)
        return Case(path.format(memory), body, subject=memory)

    return made


async def _remember(stack: Stack, n: int) -> Case:
    body = {"content": text("told", n), "key": f"told{n}", "supersede_reason": "newer"}
    await stack.post("/v1/remember", {**body, "content": text("before", n)})
    state: LiteralString = "select status, version from memory where key = %s order by id"
    return Case("/v1/remember", body, state, f"told{n}", lost="remember")


async def _batch(stack: Stack, n: int) -> Case:
    body = {"items": [{"content": text("batch", n), "key": f"batch{n}"}, {"content": ""}]}
    state: LiteralString = "select status, version, confidence from memory where key = %s"
    return Case("/v1/remember/batch", body, state, f"batch{n}", lost="remember")


async def _restore(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("put away", n))
    archive = "update memory set status = 'archived' where id = %s"
    await asyncio.to_thread(run, stack.admin_url, archive, memory)
    return Case(f"/v1/memories/{memory}/restore", subject=memory)


async def _forget_batch(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("all forgotten", n), key=f"gone{n}")
    body = {"scope": "project/shop", "keys": [f"gone{n}"]}
    return Case("/v1/memories/forget", body, subject=memory)


async def _erase(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("erased", n))
    state: LiteralString = "select version, status, content from memory where id = %s"
    differs = frozenset(("rows", "in_backups_before"))
    path = f"/v1/memories/{memory}/erase"
    return Case(path, {}, state, memory, lost="erase_memory, committed", differs=differs)


async def edit(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("edited", n))
    body = {"content": text("anew", n)}
    return Case(f"/v1/memories/{memory}", body, subject=memory)


async def _rollback(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("rolled back", n))
    await stack.call("PATCH", f"/v1/memories/{memory}", {"content": text("rolled on", n)})
    return Case(f"/v1/memories/{memory}/rollback", {"version": 1}, subject=memory)


async def link(stack: Stack, n: int) -> Case:
    one, other = [await remember(stack, text("linked", side, n)) for side in "ab"]
    return Case("/v1/links", {"from": one, "to": other, "type": "depends_on"}, EDGE, one)


async def _unlink(stack: Stack, n: int) -> Case:
    one, other = [await remember(stack, text("unlinked", side, n)) for side in "ab"]
    told = {"from": one, "to": other, "type": "depends_on"}
    link = (await stack.post("/v1/links", told))["id"]
    return Case(f"/v1/links/{link}", None, EDGE, one)


def _of_task(path: str, body: Any, taken: bool = False) -> Recipe:
    state: LiteralString = (
        "select m.version, t.state, t.claimed_by from memory m join task t on t.memory = m.id"
        " where m.id = %s"
    )

    async def made(stack: Stack, n: int) -> Case:
        task = await remember(stack, text(path, n), kind="task")
        if taken:
            await stack.post(f"/v1/tasks/{task}/claim", {"agent": "ann"})
        differs = frozenset(("claimed_until",))
        return Case(path.format(task), body, state, task, differs=differs)

    return made


async def _add_fact(stack: Stack, n: int) -> Case:
    body = {"topic": f"rope {n}", "statement": text("claim", n), "confidence": "high",
            "verified": "2026-01-01"}  # fmt: skip
    state: LiteralString = "select status, version, confidence from memory where key like %s"
    differs = frozenset(("key", "topic", "statement"))
    return Case("/v1/facts", body, state, f"learn:rope-{n}:%", differs=differs)


async def _session(stack: Stack, agent: str) -> str:
    start = {"agent": agent, "project": "shop"}
    return str((await stack.post("/v1/sessions/start", start))["session"])


async def _start(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from session where agent = %s"
    body = {"agent": f"starter{n}", "project": "shop"}
    return Case("/v1/sessions/start", body, state, f"starter{n}")


async def _turns(stack: Stack, n: int) -> Case:
    session = await _session(stack, "talker")
    turns = [{"role": "user", "content": "the same words"}] * 2
    state: LiteralString = "select ordinal, content from turn where session = %s order by ordinal"
    body = {"session": session, "turns": turns}
    counted = frozenset(("accepted", "duplicates"))
    return Case("/v1/turns", body, state, session, lost="append_turns", differs=counted)


async def _end_session(stack: Stack, n: int) -> Case:
    session = await _session(stack, "ender")
    state: LiteralString = "select ended is not null, summary from session where id = %s"
    path = f"/v1/sessions/{session}/end"
    return Case(path, {"summary": "Done"}, state, session, lost="session_end, committed")


async def _correct(stack: Stack, n: int) -> Case:
    """It takes one memory back, and makes another of what is meant to last."""
    thing = ("kettles", "whistles")[n]
    await remember(stack, f"Use {thing} at the pier", kind="convention")
    session = await _session(stack, f"adjuster{n}")
    said = f"No longer {thing}, use {thing[:4]}bells. From now on no longer {thing[:5]}x, use y{n}."
    state: LiteralString = (
        "select status, count(*) from memory where content like %s group by status order by status"
    )
    body = {"messages": [{"role": "user", "content": said}]}
    return Case(f"/v1/sessions/{session}/correct", body, state, f"%{thing[:4]}%")


async def _dream(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) > 1 from dream_job where scope = %s"
    body = {"scope": f"topic/tides{n}"}
    return Case("/v1/dream", body, state, f"topic/tides{n}", lost="dream_request",
                differs=frozenset(("status", "scope")))  # fmt: skip


async def _run_maintenance(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from dream_run where id = %s"
    path, lost = "/v1/maintenance/run?steps=archive", "fading_memories, committed"
    return Case(path, None, state, UUID(int=0), lost=lost)


def _decide(verb: str) -> Recipe:
    state: LiteralString = (
        "select r.state, m.status, m.version from review r join memory m on m.id = r.memory"
        " where r.id = %s"
    )

    async def made(stack: Stack, n: int) -> Case:
        memory = await remember(stack, text("judged", verb, n))
        review = new_id()
        made = (
            "insert into review (tenant, id, memory, version, verdict, reason, author, seen)"
            " values (1, %s, %s, 1, 'gone', 'it is gone', 'stub', now())"
        )
        await asyncio.to_thread(run, stack.admin_url, made, review, memory)
        return Case(f"/v1/reviews/{review}/{verb}", None, state, review)

    return made


async def _change(stack: Stack, n: int) -> Case:
    await _session(stack, "pusher")
    sha = f"{n + 1}" * 40
    commit = {"sha": sha, "subject": "s", "committed_at": "2026-01-01T00:00:00Z"}
    body = {"project": "shop", "branch": "main", "after": sha, "commits": [commit]}
    state: LiteralString = "select count(*) from git_event where body ->> 'after' = %s"
    differs = frozenset(("duplicate",))
    return Case("/v1/git/changes", body, state, sha, lost="git_event_add", differs=differs)


async def _anchor(stack: Stack, n: int) -> Case:
    memory = await remember(stack, text("anchored", n))
    lines = {"memory": memory, "git": {"lines": {f"src/pier{n}.py": [[1, 2]]}}}
    state: LiteralString = (
        "select count(*) from edge e join memory f on f.id = e.dst"
        " where e.src = %s and e.known_to is null and f.content like 'src/pier%%'"
    )
    body = {"project": "shop", "anchors": [lines]}
    return Case("/v1/git/anchors", body, state, memory, lost="edge_put, committed")


async def hook(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from webhook where project = %s"
    path = f"/v1/git/webhooks/github/hooked{n}"
    return Case(path, {}, state, f"hooked{n}", lost="webhook_put, committed")


async def _delete_webhook(stack: Stack, n: int) -> Case:
    path = f"/v1/git/webhooks/gitlab/hooked{n}"
    assert (await stack.call("PUT", path, {})).status == 200
    state: LiteralString = "select count(*) from webhook where kind = 'gitlab' and project = %s"
    return Case(path, None, state, f"hooked{n}")


async def put(stack: Stack, n: int) -> Case:
    await stack.call("PUT", f"/v1/vault/berth{n}", {"value": 1})
    state: LiteralString = "select version, secret from vault where key = %s"
    body = {"value": f"{text(n)}", "version": 1, "secret": True}
    return Case(f"/v1/vault/berth{n}", body, state, f"berth{n}")


async def _delete(stack: Stack, n: int) -> Case:
    await stack.call("PUT", f"/v1/vault/gone{n}", {"value": 1})
    state: LiteralString = "select count(*) from vault where key = %s"
    return Case(f"/v1/vault/gone{n}", None, state, f"gone{n}")


_DOCUMENTS: LiteralString = "select count(*) from document where collection = %s"


async def _put_documents(stack: Stack, n: int) -> Case:
    body = {"collection": f"log{n}", "documents": [{"key": "a", "value": text("log", n)}]}
    return Case("/v1/documents", body, _DOCUMENTS, f"log{n}")


async def _delete_documents(stack: Stack, n: int) -> Case:
    body = {"collection": f"gone{n}", "documents": [{"key": "a", "value": 1}]}
    await stack.post("/v1/documents", body)
    return Case("/v1/documents/delete", {"collection": f"gone{n}"}, _DOCUMENTS, f"gone{n}")


async def create_key(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from api_key where label = %s"
    return Case("/v1/admin/keys", {"label": f"made{n}"}, state, f"made{n}", lost=HELD)


HELD = "admin_key_get, committed"
KEY: LiteralString = (
    "select label, revoked is null, previous_expires_at > now() + interval '1 hour' from api_key"
    " where id = %s"
)


def _of_key(path: str, body: Any, lost: str) -> Recipe:
    async def made(stack: Stack, n: int) -> Case:
        key = (await stack.post("/v1/admin/keys", {"label": "held"}))["id"]
        return Case(path.format(key), body, KEY, key, lost=lost)

    return made


def _clear(path: str, scope: str) -> Recipe:
    state: LiteralString = "select count(*) from memory where scope = %s"

    async def made(stack: Stack, n: int) -> Case:
        at = scope.format(n)
        await remember(stack, text("cleared", at), scope=at)
        differs = frozenset(("rows", "messages"))
        return Case(
            path.format(n), None, state, at, lost="scope_delete_batch, committed", differs=differs
        )

    return made


async def _set_project(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from project_setting where project = %s"
    body = {"context": {"hot": 77}, "dream": {"turns": 9}}
    path = f"/v1/projects/set{n}/settings"
    return Case(path, body, state, f"set{n}", lost="setting_put, committed")


_HALVES: LiteralString = "select count(*) from project_setting where name = %s"
_PICTURES: LiteralString = "select count(*) from picture where memory = %s"
_PICTURE = {"data": "R0lGODlhAQABAAAAACw="}


async def _link_projects(stack: Stack, n: int) -> Case:
    subject, lost = f"link/kept{n}", "setting_put, committed"
    return Case(f"/v1/projects/kept{n}/links/shop", {}, _HALVES, subject, lost=lost)


async def _unlink_projects(stack: Stack, n: int) -> Case:
    await stack.call("PUT", path := f"/v1/projects/ended{n}/links/shop", {})
    return Case(path, None, _HALVES, f"link/ended{n}")


async def _attach_picture(stack: Stack, n: int) -> Case:
    path = f"/v1/memories/{(memory := await remember(stack, text('picture', n)))}/pictures"
    differs, lost = frozenset(("created", "created_at")), "picture_put, committed"
    return Case(path, _PICTURE, _PICTURES, memory, lost=lost, differs=differs)


async def _remove_picture(stack: Stack, n: int) -> Case:
    path = f"/v1/memories/{(memory := await remember(stack, text('pictured', n)))}/pictures"
    path += f"/{(await stack.post(path, _PICTURE))['hash']}"
    return Case(path, None, _PICTURES, memory, lost="picture_delete, committed")


async def _set_tenant(stack: Stack, n: int) -> Case:
    state: LiteralString = "select count(*) from project_setting where project = %s"
    body = {"dream": {"turns": 8}, "limits": {"requests_per_day": 100_000}}
    return Case("/v1/admin/settings", body, state, "*", lost="setting_put, committed",
                differs=frozenset(("used",)))  # fmt: skip


async def _end_tenant(stack: Stack, n: int) -> Case:
    name = f"ended{n}"
    key = stack.key_of(tenant=name, role=KeyRole.ADMIN)
    await stack.post("/v1/remember", {"content": text(name)}, key=key)
    state: LiteralString = "select count(*) from tenant where name = %s"
    differs = frozenset(("rows", "messages"))
    return Case("/v1/admin/tenant", {"confirm": name}, state, name, key=key,
                lost="tenant_tables, committed", differs=differs)  # fmt: skip


async def _import(stack: Stack, n: int) -> Case:
    content = text("imported", n)
    state: LiteralString = "select status, version, confidence from memory where content = %s"
    counted = frozenset(("created", "skipped", "updated"))
    file = export_file(memory_line(content)).decode()
    return Case("/v1/import", file, state, content, differs=counted,
                lost="import_memories, committed")  # fmt: skip


RECIPES: dict[str, Recipe] = {
    "remember": _remember,
    "remember_batch": _batch,
    "edit_memory": edit,
    "archive": _of_memory("/v1/memories/{}/archive"),
    "forget": _of_memory("/v1/memories/{}"),
    "forget_batch": _forget_batch,
    "erase": _erase,
    "pin": _of_memory("/v1/memories/{}/pin"),
    "unpin": _of_memory("/v1/memories/{}/pin", pinned=True),
    "restore": _restore,
    "confirm": _of_memory("/v1/memories/{}/confirm"),
    "feedback": _of_memory("/v1/memories/{}/feedback", {"verdict": "approve"}),
    "rollback": _rollback,
    "link": link,
    "unlink": _unlink,
    "update_task": _of_task("/v1/tasks/{}", {"state": "doing", "agent": "ann"}),
    "claim_task": _of_task("/v1/tasks/{}/claim", {"agent": "ann"}),
    "release_task": _of_task("/v1/tasks/{}/release", {"agent": "ann"}, taken=True),
    "add_fact": _add_fact,
    "session_start": _start,
    "append_turns": _turns,
    "session_end": _end_session,
    "correct_session": _correct,
    "dream": _dream,
    "run_maintenance": _run_maintenance,
    "accept_review": _decide("accept"),
    "reject_review": _decide("reject"),
    "git_change": _change,
    "set_anchors": _anchor,
    "set_webhook": hook,
    "delete_webhook": _delete_webhook,
    "vault_put": put,
    "vault_delete": _delete,
    "put_documents": _put_documents,
    "delete_documents": _delete_documents,
    "create_key": create_key,
    "update_key": _of_key("/v1/admin/keys/{}", {"label": "other"}, "admin_key_change, committed"),
    "rotate_key": _of_key("/v1/admin/keys/{}/rotate", {"overlap_seconds": 7200}, HELD),
    "revoke_key": _of_key("/v1/admin/keys/{}", None, "admin_key_revoke, committed"),
    "delete_project": _clear("/v1/admin/projects/ended{}", "project/ended{}"),
    "delete_scope": _clear("/v1/admin/scopes?scope=topic/ended{}", "topic/ended{}"),
    "update_project_settings": _set_project,
    "attach_picture": _attach_picture,
    "remove_picture": _remove_picture,
    "link_projects": _link_projects,
    "unlink_projects": _unlink_projects,
    "update_tenant_settings": _set_tenant,
    "delete_tenant": _end_tenant,
    "import": _import,
}
"""How each change is made anew, by the name of its operation."""
