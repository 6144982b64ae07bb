"""Calls about keys, scopes, projects, settings, the vault, webhooks and readiness."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, quote_segment

if TYPE_CHECKING:
    from reverie.contracts import admin as of_admin
    from reverie.contracts import context as of_context
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import vault as of_vault
else:
    of_admin = LazyModule("reverie.contracts.admin")
    of_context = LazyModule("reverie.contracts.context")
    of_dreams = LazyModule("reverie.contracts.dreams")
    of_vault = LazyModule("reverie.contracts.vault")

Id = UUID | str


class AdministrationCalls(ClientBase):
    """Calls of those who run it."""

    async def get_readiness(self) -> Mapping[str, Any]:
        """Returns the readiness, and each check with a hint if it fails.

        Raises `Unavailable` if no server answers, but not if a check fails.
        """
        response = await self._transport.call("GET", "/ready")
        return {"ready": response.status == 200, **(response.body or {})}

    def list_keys(self) -> AsyncIterator[of_admin.KeyBody]:
        """The keys of the tenant, without their texts."""
        return self.paginate(of_admin.KeyPage, "/v1/admin/keys")

    def list_audit_entries(
        self,
        *,
        principal: str | None = None,
        action: str | None = None,
        subject: Id | None = None,
        changes: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[of_admin.AuditEntryBody]:
        """Lists reads and changes, newest first.

        `principal`: an agent or a key's id. `action`: words of the action. `subject`: the id or
        name affected.
        """
        query = drop_none(
            actor=principal,
            action=action,
            subject=subject,
            changes=changes,
            since=since,
            until=until,
        )
        return self.paginate(of_admin.AuditPage, "/v1/admin/audit", query)

    def list_dead_letters(self) -> AsyncIterator[of_admin.DeadLetterBody]:
        """Messages that no worker could handle, oldest first."""
        return self.paginate(of_admin.DeadLetterPage, "/v1/admin/dead-letters")

    async def get_dead_letter(self, seq: int) -> of_admin.DeadLetterDetail:
        """A dead letter with its body."""
        path = f"/v1/admin/dead-letters/{seq}"
        return await self.request(of_admin.DeadLetterDetail, "GET", path)

    async def replay_dead_letter(self, seq: int) -> of_admin.ReplayResponse:
        """Sends a dead letter again."""
        path = f"/v1/admin/dead-letters/{seq}/replay"
        return await self.request(of_admin.ReplayResponse, "POST", path)

    async def create_key(
        self,
        label: str,
        *,
        role: Literal["admin", "writer", "reader", "ci"] = "writer",
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
        project: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        expires: datetime | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> of_admin.CreatedKeyBody:
        """A new key; its text is shown this once.

        If only one of `reads` and `writes` is given, the other is the same.
        """
        body = drop_none(label=label, role=role, reads=reads, writes=writes)
        body |= drop_none(project=project, agent=agent, user=user, expires=expires, limits=limits)
        return await self.request(of_admin.CreatedKeyBody, "POST", "/v1/admin/keys", body=body)

    async def get_key(self, id: Id) -> of_admin.KeyUsageBody:
        """A key, and what it used of its limits."""
        return await self.request(
            of_admin.KeyUsageBody, "GET", f"/v1/admin/keys/{quote_segment(id)}"
        )

    async def update_key(self, id: Id, changes: Mapping[str, Any]) -> of_admin.KeyBody:
        """Changes `label`, `expires` or `limits` of a key; None takes the last two away."""
        path = f"/v1/admin/keys/{quote_segment(id)}"
        return await self.request(of_admin.KeyBody, "PATCH", path, body=changes)

    async def rotate_key(
        self, id: Id, *, overlap_seconds: int | None = None
    ) -> of_admin.CreatedKeyBody:
        """Gives a key another text, shown this once; the old one works for an hour more, or for
        `overlap_seconds`."""
        path, body = (
            f"/v1/admin/keys/{quote_segment(id)}/rotate",
            drop_none(overlap_seconds=overlap_seconds),
        )
        return await self.request(of_admin.CreatedKeyBody, "POST", path, body=body)

    async def revoke_key(self, id: Id) -> of_admin.RevokeKeyResponse:
        """Makes a key void."""
        return await self.request(
            of_admin.RevokeKeyResponse, "DELETE", f"/v1/admin/keys/{quote_segment(id)}"
        )

    def list_projects(self) -> AsyncIterator[of_admin.ProjectBody]:
        """The projects, by name."""
        return self.paginate(of_admin.ProjectPage, "/v1/admin/projects")

    async def delete_project(
        self, name: str, *, cursor: str | None = None
    ) -> of_admin.DeletionResponse:
        """Deletes a project permanently; if not `done`, call again with its `next` as `cursor`."""
        path, query = f"/v1/admin/projects/{quote_segment(name)}", drop_none(cursor=cursor)
        return await self.request(of_admin.DeletionResponse, "DELETE", path, query=query)

    def list_scopes(self) -> AsyncIterator[of_admin.ScopeBody]:
        """The scopes, by name, with how many memories lie in each."""
        return self.paginate(of_admin.ScopePage, "/v1/admin/scopes")

    async def delete_scope(
        self, scope: str, *, include_descendants: bool = False, cursor: str | None = None
    ) -> of_admin.DeletionResponse:
        """Deletes a scope permanently, and with `include_descendants` all scopes below it.

        If the answer is not `done`, call again with its `next`.
        """
        query = drop_none(scope=scope, include_descendants=include_descendants, cursor=cursor)
        return await self.request(
            of_admin.DeletionResponse, "DELETE", "/v1/admin/scopes", query=query
        )

    async def delete_tenant(self, confirm: str) -> of_admin.DeletionResponse:
        """Deletes everything the tenant has; `confirm` is its name."""
        body = {"confirm": confirm}
        return await self.request(
            of_admin.DeletionResponse, "DELETE", "/v1/admin/tenant", body=body
        )

    async def get_tenant_settings(self) -> of_dreams.TenantSettingsBody:
        """Returns the settings that apply to all scopes of the tenant."""
        return await self.request(of_dreams.TenantSettingsBody, "GET", "/v1/admin/settings")

    async def update_tenant_settings(
        self, changes: Mapping[str, Any]
    ) -> of_dreams.TenantSettingsBody:
        """Changes settings of the tenant; None goes back to those of the services."""
        return await self.request(
            of_dreams.TenantSettingsBody, "PATCH", "/v1/admin/settings", body=changes
        )

    async def get_project_settings(self, name: str) -> of_context.ProjectSettingsBody:
        """Returns the settings of a project."""
        path = f"/v1/projects/{quote_segment(name)}/settings"
        return await self.request(of_context.ProjectSettingsBody, "GET", path)

    async def update_project_settings(
        self, name: str, changes: Mapping[str, Any]
    ) -> of_context.ProjectSettingsBody:
        """Changes settings of a project; None goes back to the defaults."""
        path = f"/v1/projects/{quote_segment(name)}/settings"
        return await self.request(of_context.ProjectSettingsBody, "PATCH", path, body=changes)

    async def list_models(self) -> of_admin.ModelListResponse:
        """The embedding and language models in use, and how far they are."""
        return await self.request(of_admin.ModelListResponse, "GET", "/v1/models")

    def list_vault(self, *, scope: str | None = None) -> AsyncIterator[of_vault.VaultItem]:
        """The entries of the vault, without their values."""
        return self.paginate(of_vault.VaultPage, "/v1/vault", drop_none(scope=scope))

    async def vault_get(self, key: str, *, scope: str | None = None) -> of_vault.VaultValue:
        """An entry with its value."""
        path, query = f"/v1/vault/{quote_segment(key)}", drop_none(scope=scope)
        return await self.request(of_vault.VaultValue, "GET", path, query=query)

    async def vault_put(
        self,
        key: str,
        value: Any,
        *,
        scope: str | None = None,
        secret: bool | None = None,
        version: int | None = None,
    ) -> of_vault.VaultWriteResponse:
        """Puts an entry.

        `version`: the expected current version, 0 for a new entry; else `conflict`.
        """
        body = {"value": value, **drop_none(secret=secret, version=version)}
        path, query = f"/v1/vault/{quote_segment(key)}", drop_none(scope=scope)
        return await self.request(of_vault.VaultWriteResponse, "PUT", path, query=query, body=body)

    async def vault_delete(
        self, key: str, *, scope: str | None = None, restore: bool = False
    ) -> of_vault.VaultWriteResponse:
        """Deletes an entry. `restore` puts its values back in the texts they were redacted from."""
        path = f"/v1/vault/{quote_segment(key)}"
        query = drop_none(scope=scope, restore=restore or None)
        return await self.request(of_vault.VaultWriteResponse, "DELETE", path, query=query)

    def list_vault_suggestions(self) -> AsyncIterator[of_vault.VaultSuggestion]:
        """Lists memories that contain state, and belong into the vault."""
        return self.paginate(of_vault.VaultSuggestionPage, "/v1/vault/suggestions")

    async def get_redaction_status(self) -> of_vault.RedactionBackfillStatus:
        """Returns the progress of redacting older texts since a secret was added."""
        return await self.request(
            of_vault.RedactionBackfillStatus, "GET", "/v1/vault/redaction-status"
        )

    def list_webhooks(self, *, project: str | None = None) -> AsyncIterator[of_admin.WebhookBody]:
        """The push webhooks that are set up, without their secrets."""
        query = drop_none(project=project)
        return self.paginate(of_admin.WebhookPage, "/v1/git/webhooks", query)

    async def set_webhook(
        self, kind: Literal["github", "gitlab"], project: str, *, secret: str | None = None
    ) -> of_admin.CreatedWebhookBody:
        """Sets up a push webhook; its secret is shown this once."""
        path = f"/v1/git/webhooks/{kind}/{quote_segment(project)}"
        return await self.request(
            of_admin.CreatedWebhookBody, "PUT", path, body=drop_none(secret=secret)
        )

    async def delete_webhook(
        self, kind: Literal["github", "gitlab"], project: str
    ) -> of_admin.DeleteWebhookResponse:
        """Refuses the deliveries of a push webhook from now on."""
        path = f"/v1/git/webhooks/{kind}/{quote_segment(project)}"
        return await self.request(of_admin.DeleteWebhookResponse, "DELETE", path)
