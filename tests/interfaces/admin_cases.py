"""Interface test cases of administration: vault, keys, projects, scopes, settings, health."""

from __future__ import annotations

from tests.interfaces.case import Case, Fields
from tests.interfaces.memory_and_graph_cases import ids
from tests.interfaces.running_system import PROJECT, World
from tests.support.stack import eventually

LASTING = "it cannot be undone; a person does it with `reverie {}`"
SECRET = "a model would have a secret in its conversation; a person does it with `reverie {}`"


async def _put(world: World) -> Fields:
    return {"key": f"berth{world.number()}", "value": "nine", "secret": False}


async def _entries(world: World) -> Fields:
    return {"_key_name": (await world.entry())["key"]}


async def _hooks(world: World) -> Fields:
    return {"project": (await world.webhook())["project"]}


async def _project(world: World) -> Fields:
    return {"_id": (await world.memory())["id"]}


async def _label(world: World) -> Fields:
    return {"label": f"guest{world.number()}", "role": "reader"}


async def _scope(world: World) -> Fields:
    scope = f"topic/gone{world.number()}"
    await world.memory(scope=scope)
    return {"scope": scope}


async def _audited(world: World) -> Fields:
    fields = {"subject": (await world.memory())["id"], "changes": True}

    async def noted() -> bool:
        query = f"subject={fields['subject']}&changes=true"
        return bool((await world.stack.get(f"/v1/admin/audit?{query}"))["items"])

    await eventually(noted)
    return fields


async def _scopes(world: World) -> Fields:
    return {"_scope": (await _scope(world))["scope"]}


async def _letters(world: World) -> Fields:
    return {"_seq": (await world.dead_letter())["seq"]}


async def _keys(world: World) -> Fields:
    return {"_id": (await world.key())["id"]}


async def _documents(world: World) -> Fields:
    documents = [{"key": "first", "value": "seven"}]
    collection = f"log-{world.number()}"
    return {"collection": collection, "documents": documents, "_value": '"seven"'}


async def _collections(world: World) -> Fields:
    return {"prefix": (await world.document())["collection"]}


ADMIN_CASES = (
    Case("list_webhooks", _hooks, lambda a, f: a["items"][0]["project"] == f["project"],
         cli="admin webhooks list --project {project}", client="list_webhooks"),
    Case("set_webhook", lambda w: w.none(kind="gitlab", project=f"set{w.number()}"),
         lambda a, f: len(a["secret"]) > 20,
         cli="admin webhooks set {project} {kind}", client="set_webhook",
         empty={"MCP": SECRET.format("admin webhooks set")}),
    Case("delete_webhook", World.webhook, lambda a, f: f["project"] in str(a),
         cli="admin webhooks remove {project} {kind}", client="delete_webhook"),
    Case("list_vault", _entries, lambda a, f: f["_key_name"] in {one["key"] for one in a["items"]},
         cli="vault list", client="list_vault"),
    Case("vault_get", World.entry, lambda a, f: a["value"] == "seven",
         cli="vault get {key}", client="vault_get"),
    Case("vault_put", _put, lambda a, f: a["version"] == 1,
         cli="vault set {key} --plain", stdin="value", client="vault_put"),
    Case("vault_delete", World.entry, lambda a, f: a["deleted"],
         cli="vault delete {key} --yes", client="vault_delete"),
    Case("list_vault_suggestions", World.none, lambda a, f: "items" in a,
         cli="vault suggestions", client="list_vault_suggestions"),
    Case("get_redaction_status", World.none, lambda a, f: a["state"] in {"none", "waiting", "done"},
         cli="vault redaction-status", client="get_redaction_status"),
    Case("put_documents", _documents, lambda a, f: a["written"] == 1,
         cli="documents put {collection} first", stdin="_value", client="put_documents"),
    Case("list_documents", World.document, lambda a, f: a["items"][0]["value"] == {"boats": 7},
         cli="documents list {collection}", client="list_documents"),
    Case("list_collections", _collections, lambda a, f: a["items"][0]["documents"] == 1,
         cli="documents collections --prefix {prefix}", client="list_collections"),
    Case("delete_documents", World.document, lambda a, f: a["deleted"] == 1,
         cli="documents delete {collection} --yes", client="delete_documents"),
    Case("list_models", World.none, lambda a, f: a["models"][0]["name"],
         cli="models status", client="list_models"),
    Case("list_keys", _keys, lambda a, f: f["_id"][-8:] in ids(a),
         cli="key list", client="list_keys"),
    Case("create_key", _label, lambda a, f: a["key"].startswith("rv_"),
         cli="key create {label} --role {role}", client="create_key",
         empty={"MCP": SECRET.format("key create")}),
    Case("get_key", World.key, lambda a, f: a["id"] == f["id"],
         cli="key show {id}", client="get_key"),
    Case("update_key", lambda w: w.key(changes={"limits": {"requests_per_day": 7}}),
         lambda a, f: "7" in str(a),
         cli="key change {id} --limit requests_per_day=7", client="update_key"),
    Case("rotate_key", World.key, lambda a, f: a["key"].startswith("rv_"),
         cli="key rotate {id}", client="rotate_key",
         empty={"MCP": SECRET.format("key rotate")}),
    Case("revoke_key", World.key, lambda a, f: f["id"] in str(a),
         cli="key revoke {id}", client="revoke_key"),
    Case("list_audit_entries", _audited,
         lambda a, f: any(f["subject"] in one["subjects"] for one in a["items"]),
         cli="admin audit --subject {subject} --changes", client="list_audit_entries"),
    Case("list_dead_letters", _letters,
         lambda a, f: f["_seq"] in {str(one["seq"]) for one in a["items"]},
         cli="dead-letters list --limit 1000", client="list_dead_letters"),
    Case("get_dead_letter", World.dead_letter,
         lambda a, f: (str(a["seq"]), a["data"]) == (f["seq"], "{}"),
         cli="dead-letters show {seq}", client="get_dead_letter"),
    Case("replay_dead_letter", World.dead_letter, lambda a, f: a["replayed"] == 1,
         cli="dead-letters replay {seq}", client="replay_dead_letter"),
    Case("list_projects", _project,
         lambda a, f: PROJECT in {one["project"] for one in a["items"]},
         cli="admin projects list", client="list_projects"),
    Case("delete_project", World.own_project, lambda a, f: int(a["rows"]["memory"]) == 1,
         cli="admin projects delete {name} --yes", client="delete_project",
         empty={"MCP": LASTING.format("admin projects delete")}),
    Case("get_project_settings", lambda w: w.none(name=PROJECT),
         lambda a, f: int(a["context"]["hot"]) > 0,
         cli="admin settings --project {name}", client="get_project_settings"),
    Case("update_project_settings",
         lambda w: w.none(name=PROJECT, changes={"context": {"hot": 77}}),
         lambda a, f: a["context"]["hot"] == 77,
         cli="admin settings --project {name} -c context.hot=77", client="update_project_settings"),
    Case("list_project_links", World.linked, lambda a, f: f["_linked"] == a["items"][0]["linked"],
         cli="project links {name}", client="list_project_links"),
    Case("link_projects",
         lambda w: w.none(name=PROJECT, linked=f"mole{w.number()}", discoverable=True),
         lambda a, f: (a["linked"], a["discoverable"]) == (f["linked"], True),
         cli="project link {name} {linked} --discoverable", client="link_projects"),
    Case("unlink_projects", World.link_to_end, lambda a, f: a["linked"] == f["linked"],
         cli="project unlink {name} {linked}", client="unlink_projects"),
    Case("list_scopes", _scopes, lambda a, f: f["_scope"] in {one["scope"] for one in a["items"]},
         cli="admin scopes list", client="list_scopes"),
    Case("delete_scope", _scope, lambda a, f: int(a["rows"]["memory"]) == 1,
         cli="admin scopes delete {scope} --yes", client="delete_scope",
         empty={"MCP": LASTING.format("admin scopes delete")}),
    Case("get_tenant_settings", World.none, lambda a, f: a["dream"]["turns"] > 0,
         cli="admin settings", client="get_tenant_settings"),
    Case("update_tenant_settings", lambda w: w.none(changes={"dream": {"turns": 900}}),
         lambda a, f: a["dream"]["turns"] == 900,
         cli="admin settings -c dream.turns=900", client="update_tenant_settings"),
    Case("delete_tenant", World.own_tenant, lambda a, f: int(a["rows"]["tenant"]) == 1,
         cli="admin tenants delete {confirm} --yes", client="delete_tenant",
         empty={"MCP": LASTING.format("admin tenants delete")}),
    Case("health", World.none, lambda a, f: a.get("ready") is not False,
         cli="status", client="get_readiness", tool="status"),
)  # fmt: skip
