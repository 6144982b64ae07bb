"""Generated from `administration.py`: the same calls for synchronous code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.sync_base import SyncClientBase

if TYPE_CHECKING:
    from reverie.contracts import admin as of_admin
    from reverie.contracts import admin as of_models
    from reverie.contracts import context as of_context
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import vault as of_vault
    from reverie.contracts import webhooks as of_hooks
Id = UUID | str


class SyncAdministrationCalls(SyncClientBase):
    """Calls of those who run it."""

    def get_readiness(self) -> Mapping[str, Any]:
        """`get_readiness`, and each check with a hint where it fails. Raises `Unavailable` where
        none
        answers; not where a check fails."""
        return self._portal.run(self._reverie.get_readiness())

    def list_keys(self) -> Iterator[of_admin.KeyBody]:
        """The keys of the tenant, without their texts."""
        return self._portal.iterate(self._reverie.list_keys())

    def list_audit_entries(
        self,
        *,
        principal: str | None = None,
        action: str | None = None,
        subject: Id | None = None,
        changes: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[of_admin.AuditEntryBody]:
        """Who read and changed what, newest first: `principal` is an agent or a key's id,
        `action` words
        in it, `subject` an id or name that it was about."""
        return self._portal.iterate(
            self._reverie.list_audit_entries(
                principal=principal,
                action=action,
                subject=subject,
                changes=changes,
                since=since,
                until=until,
            )
        )

    def create_key(
        self,
        label: str,
        *,
        role: Literal["admin", "writer", "reader", "ci"] = "writer",
        reads: Sequence[str] = ("*",),
        writes: Sequence[str] = ("*",),
        project: str | None = None,
        agent: str | None = None,
        expires: datetime | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> of_admin.CreatedKeyBody:
        """A new key; its text is shown this once."""
        return self._portal.run(
            self._reverie.create_key(
                label,
                role=role,
                reads=reads,
                writes=writes,
                project=project,
                agent=agent,
                expires=expires,
                limits=limits,
            )
        )

    def get_key(self, id: Id) -> of_admin.KeyUsageBody:
        """A key, and what it used of its limits."""
        return self._portal.run(self._reverie.get_key(id))

    def update_key(self, id: Id, changes: Mapping[str, Any]) -> of_admin.KeyBody:
        """Changes `label`, `expires` or `limits` of a key; None takes the last two away."""
        return self._portal.run(self._reverie.update_key(id, changes))

    def rotate_key(self, id: Id, *, overlap_seconds: int | None = None) -> of_admin.CreatedKeyBody:
        """Gives a key another text, shown this once; the old one works for an hour more, or for
        `overlap_seconds`."""
        return self._portal.run(self._reverie.rotate_key(id, overlap_seconds=overlap_seconds))

    def revoke_key(self, id: Id) -> of_admin.RevokeKeyResponse:
        """Makes a key void."""
        return self._portal.run(self._reverie.revoke_key(id))

    def list_projects(self) -> Iterator[of_admin.ProjectBody]:
        """The projects, by name."""
        return self._portal.iterate(self._reverie.list_projects())

    def delete_project(self, name: str, *, cursor: str | None = None) -> of_admin.DeletionResponse:
        """Deletes a project for good; not `done`: call again with its `next` as `cursor`."""
        return self._portal.run(self._reverie.delete_project(name, cursor=cursor))

    def list_scopes(self) -> Iterator[of_admin.ScopeBody]:
        """The scopes, by name, with how many memories lie in each."""
        return self._portal.iterate(self._reverie.list_scopes())

    def delete_scope(
        self, scope: str, *, below: bool = False, cursor: str | None = None
    ) -> of_admin.DeletionResponse:
        """Deletes a scope, and all `below` it, for good; not `done`: call again with `next`."""
        return self._portal.run(self._reverie.delete_scope(scope, below=below, cursor=cursor))

    def delete_tenant(self, confirm: str) -> of_admin.DeletionResponse:
        """Deletes everything the tenant has; `confirm` is its name."""
        return self._portal.run(self._reverie.delete_tenant(confirm))

    def get_tenant_settings(self) -> of_dreams.TenantSettingsBody:
        """What holds for all scopes of the tenant."""
        return self._portal.run(self._reverie.get_tenant_settings())

    def update_tenant_settings(self, changes: Mapping[str, Any]) -> of_dreams.TenantSettingsBody:
        """Changes settings of the tenant; None goes back to those of the services."""
        return self._portal.run(self._reverie.update_tenant_settings(changes))

    def get_project_settings(self, name: str) -> of_context.ProjectSettingsBody:
        """What a project has set."""
        return self._portal.run(self._reverie.get_project_settings(name))

    def update_project_settings(
        self, name: str, changes: Mapping[str, Any]
    ) -> of_context.ProjectSettingsBody:
        """Changes settings of a project; None goes back to the defaults."""
        return self._portal.run(self._reverie.update_project_settings(name, changes))

    def list_models(self) -> of_models.ModelListResponse:
        """The embedding and language models in use, and how far they are."""
        return self._portal.run(self._reverie.list_models())

    def list_vault(self, *, scope: str | None = None) -> Iterator[of_vault.VaultItem]:
        """The entries of the vault, without their values."""
        return self._portal.iterate(self._reverie.list_vault(scope=scope))

    def vault_get(self, key: str, *, scope: str | None = None) -> of_vault.VaultValue:
        """An entry with its value."""
        return self._portal.run(self._reverie.vault_get(key, scope=scope))

    def vault_put(
        self,
        key: str,
        value: Any,
        *,
        scope: str | None = None,
        secret: bool | None = None,
        version: int | None = None,
    ) -> of_vault.VaultWriteResponse:
        """Puts an entry. `version`: only where that one stands, 0 for none; else `conflict`."""
        return self._portal.run(
            self._reverie.vault_put(key, value, scope=scope, secret=secret, version=version)
        )

    def vault_delete(self, key: str, *, scope: str | None = None) -> of_vault.VaultWriteResponse:
        """Deletes an entry."""
        return self._portal.run(self._reverie.vault_delete(key, scope=scope))

    def list_vault_advice(self) -> Iterator[of_vault.VaultSuggestion]:
        """Which memories are state, and belong into the vault."""
        return self._portal.iterate(self._reverie.list_vault_advice())

    def get_vault_scrub(self) -> of_vault.RedactionBackfillStatus:
        """How far older texts were gone through since a secret was put."""
        return self._portal.run(self._reverie.get_vault_scrub())

    def list_webhooks(self, *, project: str | None = None) -> Iterator[of_hooks.WebhookBody]:
        """The push webhooks that are set up, without their secrets."""
        return self._portal.iterate(self._reverie.list_webhooks(project=project))

    def set_webhook(
        self, kind: Literal["github", "gitlab"], project: str, *, secret: str | None = None
    ) -> of_hooks.CreatedWebhookBody:
        """Sets up a push webhook; its secret is shown this once."""
        return self._portal.run(self._reverie.set_webhook(kind, project, secret=secret))

    def remove_webhook(
        self, kind: Literal["github", "gitlab"], project: str
    ) -> of_hooks.DeleteWebhookResponse:
        """Refuses the deliveries of a push webhook from now on."""
        return self._portal.run(self._reverie.remove_webhook(kind, project))
