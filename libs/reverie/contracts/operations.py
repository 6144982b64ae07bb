"""The table of all operations and the REST call of each, shared by gRPC and MCP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATH_VARIABLE = re.compile(r"\{([a-z]+)\}")
"""A variable in a path."""

_BODY_METHODS = frozenset({"POST", "PATCH", "PUT"})

FieldValues = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """An operation and its REST call.

    `query_fields` names the fields of the query. By default, GET and DELETE send all fields in the
    query, and other methods send them in the body. `payload_field` is the one field that is the
    whole payload. With `uses_if_match`, the field `version` is sent as If-Match.
    """

    name: str
    method: str
    path: str
    query_fields: frozenset[str] | None = None
    payload_field: str | None = None
    uses_if_match: bool = False

    @property
    def rpc_name(self) -> str:
        """Its name over gRPC."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def path_fields(self) -> list[str]:
        """The fields that are parts of the path."""
        return PATH_VARIABLE.findall(self.path)

    def split_fields(self, fields: Mapping[str, Any]) -> tuple[FieldValues, FieldValues]:
        """Splits the fields into query and body. `fields` must not contain those of the path."""
        payload = dict(
            fields if self.payload_field is None else fields.get(self.payload_field) or {}
        )
        if self.query_fields is None:
            return ({}, payload) if self.method in _BODY_METHODS else (payload, {})
        query = {name: payload.pop(name) for name in self.query_fields & payload.keys()}
        return query, payload


_NO_FIELDS: frozenset[str] = frozenset()

OPERATIONS = (
    Operation("remember", "POST", "/v1/remember"),
    Operation("remember_batch", "POST", "/v1/remember/batch"),
    Operation("recall", "POST", "/v1/recall"),
    Operation("recall_projects", "POST", "/v1/recall/projects"),
    Operation("context", "GET", "/v1/context"),
    Operation("preflow", "POST", "/v1/preflow"),
    Operation("predict", "POST", "/v1/predict"),
    Operation("list_memories", "GET", "/v1/memories"),
    Operation("get_memory", "GET", "/v1/memories/{id}"),
    Operation("edit_memory", "PATCH", "/v1/memories/{id}", uses_if_match=True),
    Operation("archive", "POST", "/v1/memories/{id}/archive", uses_if_match=True),
    Operation("forget", "DELETE", "/v1/memories/{id}", uses_if_match=True),
    Operation("forget_batch", "POST", "/v1/memories/forget"),
    Operation("erase", "POST", "/v1/memories/{id}/erase"),
    Operation("pin", "PUT", "/v1/memories/{id}/pin", uses_if_match=True),
    Operation("unpin", "DELETE", "/v1/memories/{id}/pin", uses_if_match=True),
    Operation("restore", "POST", "/v1/memories/{id}/restore"),
    Operation("confirm", "POST", "/v1/memories/{id}/confirm"),
    Operation("feedback", "POST", "/v1/memories/{id}/feedback"),
    Operation("history", "GET", "/v1/memories/{id}/history"),
    Operation("rollback", "POST", "/v1/memories/{id}/rollback"),
    Operation("attach_picture", "POST", "/v1/memories/{id}/pictures"),
    Operation("list_pictures", "GET", "/v1/memories/{id}/pictures"),
    Operation("get_picture", "GET", "/v1/memories/{id}/pictures/{hash}"),
    Operation("remove_picture", "DELETE", "/v1/memories/{id}/pictures/{hash}"),
    Operation("provenance", "GET", "/v1/memories/{id}/provenance"),
    Operation("replay", "GET", "/v1/memories/{id}/replay", payload_field="values"),
    Operation("list_skills", "GET", "/v1/skills"),
    Operation("link", "POST", "/v1/links"),
    Operation("unlink", "DELETE", "/v1/links/{id}"),
    Operation("subgraph", "GET", "/v1/memories/{id}/subgraph"),
    Operation("impact", "GET", "/v1/impact"),
    Operation("graph_stats", "GET", "/v1/graph/stats"),
    Operation("list_tasks", "GET", "/v1/tasks"),
    Operation("update_task", "PATCH", "/v1/tasks/{id}"),
    Operation("claim_task", "POST", "/v1/tasks/{id}/claim"),
    Operation("release_task", "POST", "/v1/tasks/{id}/release"),
    Operation("add_fact", "POST", "/v1/facts"),
    Operation("list_facts", "GET", "/v1/facts"),
    Operation("session_start", "POST", "/v1/sessions/start"),
    Operation("append_turns", "POST", "/v1/turns"),
    Operation("session_end", "POST", "/v1/sessions/{id}/end"),
    Operation("list_sessions", "GET", "/v1/sessions"),
    Operation("list_turns", "GET", "/v1/sessions/{id}/turns"),
    Operation("replay_session", "GET", "/v1/sessions/{id}/replay"),
    Operation("correct_session", "POST", "/v1/sessions/{id}/correct"),
    Operation("dream", "POST", "/v1/dream"),
    Operation("list_dreams", "GET", "/v1/dreams"),
    Operation("get_dream", "GET", "/v1/dreams/{id}"),
    Operation("list_undigested", "GET", "/v1/dream"),
    Operation("list_summaries", "GET", "/v1/dream/summaries"),
    Operation("list_summary_versions", "GET", "/v1/dream/summaries/history"),
    Operation(
        "run_maintenance",
        "POST",
        "/v1/maintenance/run",
        query_fields=frozenset({"steps", "dry_run"}),
    ),
    Operation("list_reviews", "GET", "/v1/reviews"),
    Operation("accept_review", "POST", "/v1/reviews/{id}/accept"),
    Operation("reject_review", "POST", "/v1/reviews/{id}/reject"),
    Operation("git_change", "POST", "/v1/git/changes", payload_field="change"),
    Operation("stale", "GET", "/v1/stale"),
    Operation("list_unanchored", "GET", "/v1/git/anchors"),
    Operation("set_anchors", "POST", "/v1/git/anchors"),
    Operation("list_webhooks", "GET", "/v1/git/webhooks"),
    Operation("set_webhook", "PUT", "/v1/git/webhooks/{kind}/{project}"),
    Operation("delete_webhook", "DELETE", "/v1/git/webhooks/{kind}/{project}"),
    Operation("list_traces", "GET", "/v1/traces"),
    Operation("get_trace", "GET", "/v1/traces/{id}"),
    Operation("confirm_delivery", "POST", "/v1/traces/{id}/delivery"),
    Operation("list_vault", "GET", "/v1/vault"),
    Operation("vault_get", "GET", "/v1/vault/{key}"),
    Operation("vault_put", "PUT", "/v1/vault/{key}", query_fields=frozenset({"scope"})),
    Operation("vault_delete", "DELETE", "/v1/vault/{key}"),
    Operation("list_vault_suggestions", "GET", "/v1/vault/suggestions"),
    Operation("get_redaction_status", "GET", "/v1/vault/redaction-status"),
    Operation("put_documents", "POST", "/v1/documents"),
    Operation("list_documents", "GET", "/v1/documents"),
    Operation("list_collections", "GET", "/v1/documents/collections"),
    Operation("delete_documents", "POST", "/v1/documents/delete"),
    Operation("list_models", "GET", "/v1/models"),
    Operation("list_keys", "GET", "/v1/admin/keys"),
    Operation("create_key", "POST", "/v1/admin/keys"),
    Operation("revoke_key", "DELETE", "/v1/admin/keys/{id}"),
    Operation("get_key", "GET", "/v1/admin/keys/{id}"),
    Operation("update_key", "PATCH", "/v1/admin/keys/{id}", payload_field="changes"),
    Operation("rotate_key", "POST", "/v1/admin/keys/{id}/rotate"),
    Operation("list_audit_entries", "GET", "/v1/admin/audit"),
    Operation("list_dead_letters", "GET", "/v1/admin/dead-letters"),
    Operation("get_dead_letter", "GET", "/v1/admin/dead-letters/{seq}"),
    Operation("replay_dead_letter", "POST", "/v1/admin/dead-letters/{seq}/replay"),
    Operation("list_projects", "GET", "/v1/admin/projects"),
    Operation("delete_project", "DELETE", "/v1/admin/projects/{name}"),
    Operation("get_project_settings", "GET", "/v1/projects/{name}/settings"),
    Operation(
        "update_project_settings", "PATCH", "/v1/projects/{name}/settings", payload_field="changes"
    ),
    Operation("list_project_links", "GET", "/v1/projects/{name}/links"),
    Operation("link_projects", "PUT", "/v1/projects/{name}/links/{linked}"),
    Operation("unlink_projects", "DELETE", "/v1/projects/{name}/links/{linked}"),
    Operation("list_scopes", "GET", "/v1/admin/scopes"),
    Operation("delete_scope", "DELETE", "/v1/admin/scopes"),
    Operation("get_tenant_settings", "GET", "/v1/admin/settings"),
    Operation("update_tenant_settings", "PATCH", "/v1/admin/settings", payload_field="changes"),
    Operation("delete_tenant", "DELETE", "/v1/admin/tenant", query_fields=_NO_FIELDS),
    Operation("list_agents", "GET", "/v1/agents"),
    Operation("get_agent_spend", "GET", "/v1/agents/spend"),
    Operation("put_agent", "PUT", "/v1/agents/{name}", payload_field="spec"),
    Operation("delete_agent", "DELETE", "/v1/agents/{name}"),
    Operation("create_group", "POST", "/v1/groups"),
    Operation("list_groups", "GET", "/v1/groups"),
    Operation("post_message", "POST", "/v1/groups/{id}/messages"),
    Operation("list_messages", "GET", "/v1/groups/{id}/messages"),
    Operation("get_image", "GET", "/v1/groups/{id}/images/{image}"),
    Operation("approve_call", "POST", "/v1/groups/{id}/approvals"),
    Operation("stop_turns", "POST", "/v1/groups/{id}/stop"),
)
"""Operations with one request and one response. `SPECIAL_OPERATIONS` holds the others."""

SPECIAL_OPERATIONS = (
    Operation("watch_memories", "GET", "/v1/events"),
    Operation("export", "GET", "/v1/export"),
    Operation(
        "import", "POST", "/v1/import", query_fields=frozenset({"strategy", "dry_run", "scope"})
    ),
    Operation("watch_group", "GET", "/v1/groups/{id}/events"),
    Operation("health", "GET", "/ready"),
)
"""Streaming operations, and the operation that needs no key."""
