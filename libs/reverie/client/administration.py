"""Keys, scopes, projects, settings, the vault, webhooks, health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import Base, given, part
from reverie.client.later import Later

if TYPE_CHECKING:
    from reverie.contracts import admin as of_admin
    from reverie.contracts import context as of_context
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import hooks as of_hooks
    from reverie.contracts import models as of_models
    from reverie.contracts import vault as of_vault
else:
    of_admin = Later("reverie.contracts.admin")
    of_context = Later("reverie.contracts.context")
    of_dreams = Later("reverie.contracts.dreams")
    of_hooks = Later("reverie.contracts.hooks")
    of_models = Later("reverie.contracts.models")
    of_vault = Later("reverie.contracts.vault")

Id = UUID | str


class Administration(Base):
    """Calls of those who run it."""

    async def ready(self) -> Mapping[str, Any]:
        """`ready`, and each check with a hint where it fails. Raises `Unavailable` where none
        answers; not where a check fails."""
        answer = await self._caller.call("GET", "/ready")
        return {"ready": answer.status == 200, **(answer.body or {})}

    def keys(self) -> AsyncIterator[of_admin.KeyBody]:
        """The keys of the tenant, without their texts."""
        return self.walk(of_admin.KeyPage, "/v1/admin/keys")

    def audit(
        self,
        *,
        who: str | None = None,
        action: str | None = None,
        subject: Id | None = None,
        changes: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[of_admin.AuditBody]:
        """Who read and changed what, newest first: `who` is an agent or a key's id, `action` words
        in it, `subject` an id or name that it was about."""
        query = given(
            who=who, action=action, subject=subject, changes=changes, since=since, until=until
        )
        return self.walk(of_admin.AuditPage, "/v1/admin/audit", query)

    async def make_key(
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
    ) -> of_admin.MadeKey:
        """A new key; its text is shown this once."""
        body = given(label=label, role=role, reads=reads, writes=writes)
        body |= given(project=project, agent=agent, expires=expires, limits=limits)
        return await self.ask(of_admin.MadeKey, "POST", "/v1/admin/keys", body=body)

    async def key(self, id: Id) -> of_admin.KeyUse:
        """A key, and what it used of its limits."""
        return await self.ask(of_admin.KeyUse, "GET", f"/v1/admin/keys/{part(id)}")

    async def change_key(self, id: Id, changes: Mapping[str, Any]) -> of_admin.KeyBody:
        """Changes `label`, `expires` or `limits` of a key; None takes the last two away."""
        path = f"/v1/admin/keys/{part(id)}"
        return await self.ask(of_admin.KeyBody, "PATCH", path, body=changes)

    async def rotate_key(self, id: Id, *, overlap_seconds: int | None = None) -> of_admin.MadeKey:
        """Gives a key another text, shown this once; the old one works for an hour more, or for
        `overlap_seconds`."""
        path, body = f"/v1/admin/keys/{part(id)}/rotate", given(overlap_seconds=overlap_seconds)
        return await self.ask(of_admin.MadeKey, "POST", path, body=body)

    async def revoke_key(self, id: Id) -> of_admin.RevokedKey:
        """Makes a key void."""
        return await self.ask(of_admin.RevokedKey, "DELETE", f"/v1/admin/keys/{part(id)}")

    def projects(self) -> AsyncIterator[of_admin.ProjectBody]:
        """The projects, by name."""
        return self.walk(of_admin.ProjectPage, "/v1/admin/projects")

    async def delete_project(self, name: str, *, cursor: str | None = None) -> of_admin.Deleted:
        """Deletes a project for good; not `done`: call again with its `next` as `cursor`."""
        path, query = f"/v1/admin/projects/{part(name)}", given(cursor=cursor)
        return await self.ask(of_admin.Deleted, "DELETE", path, query=query)

    def scopes(self) -> AsyncIterator[of_admin.ScopeBody]:
        """The scopes, by name, with how many memories lie in each."""
        return self.walk(of_admin.ScopePage, "/v1/admin/scopes")

    async def delete_scope(
        self, scope: str, *, below: bool = False, cursor: str | None = None
    ) -> of_admin.Deleted:
        """Deletes a scope, and all `below` it, for good; not `done`: call again with `next`."""
        query = given(scope=scope, below=below, cursor=cursor)
        return await self.ask(of_admin.Deleted, "DELETE", "/v1/admin/scopes", query=query)

    async def delete_tenant(self, confirm: str) -> of_admin.Deleted:
        """Deletes everything the tenant has; `confirm` is its name."""
        body = {"confirm": confirm}
        return await self.ask(of_admin.Deleted, "DELETE", "/v1/admin/tenant", body=body)

    async def tenant_settings(self) -> of_dreams.TenantSettings:
        """What holds for all scopes of the tenant."""
        return await self.ask(of_dreams.TenantSettings, "GET", "/v1/admin/settings")

    async def set_tenant(self, changes: Mapping[str, Any]) -> of_dreams.TenantSettings:
        """Changes settings of the tenant; None goes back to those of the services."""
        return await self.ask(of_dreams.TenantSettings, "PATCH", "/v1/admin/settings", body=changes)

    async def project_settings(self, name: str) -> of_context.ProjectSettings:
        """What a project has set."""
        path = f"/v1/projects/{part(name)}/settings"
        return await self.ask(of_context.ProjectSettings, "GET", path)

    async def set_project(
        self, name: str, changes: Mapping[str, Any]
    ) -> of_context.ProjectSettings:
        """Changes settings of a project; None goes back to the defaults."""
        path = f"/v1/projects/{part(name)}/settings"
        return await self.ask(of_context.ProjectSettings, "PATCH", path, body=changes)

    async def models(self) -> of_models.Models:
        """The embedding and language models in use, and how far they are."""
        return await self.ask(of_models.Models, "GET", "/v1/models")

    def vault(self, *, scope: str | None = None) -> AsyncIterator[of_vault.VaultItem]:
        """The entries of the vault, without their values."""
        return self.walk(of_vault.VaultPage, "/v1/vault", given(scope=scope))

    async def vault_get(self, key: str, *, scope: str | None = None) -> of_vault.VaultValue:
        """An entry with its value."""
        path, query = f"/v1/vault/{part(key)}", given(scope=scope)
        return await self.ask(of_vault.VaultValue, "GET", path, query=query)

    async def vault_put(
        self,
        key: str,
        value: Any,
        *,
        scope: str | None = None,
        secret: bool | None = None,
        version: int | None = None,
    ) -> of_vault.VaultWritten:
        """Puts an entry. `version`: only where that one stands, 0 for none; else `conflict`."""
        body = {"value": value, **given(secret=secret, version=version)}
        path, query = f"/v1/vault/{part(key)}", given(scope=scope)
        return await self.ask(of_vault.VaultWritten, "PUT", path, query=query, body=body)

    async def vault_delete(self, key: str, *, scope: str | None = None) -> of_vault.VaultWritten:
        """Deletes an entry."""
        path, query = f"/v1/vault/{part(key)}", given(scope=scope)
        return await self.ask(of_vault.VaultWritten, "DELETE", path, query=query)

    def vault_advice(self) -> AsyncIterator[of_vault.VaultAdvised]:
        """Which memories are state, and belong into the vault."""
        return self.walk(of_vault.VaultAdvice, "/v1/vault/advice")

    async def vault_scrub(self) -> of_vault.VaultScrub:
        """How far older texts were gone through since a secret was put."""
        return await self.ask(of_vault.VaultScrub, "GET", "/v1/vault/scrub")

    def webhooks(self, *, project: str | None = None) -> AsyncIterator[of_hooks.HookBody]:
        """The push webhooks that are set up, without their secrets."""
        query = given(project=project)
        return self.walk(of_hooks.HookPage, "/v1/git/webhooks", query)

    async def set_webhook(
        self, kind: Literal["github", "gitlab"], project: str, *, secret: str | None = None
    ) -> of_hooks.HookMade:
        """Sets up a push webhook; its secret is shown this once."""
        path = f"/v1/git/webhooks/{kind}/{part(project)}"
        return await self.ask(of_hooks.HookMade, "PUT", path, body=given(secret=secret))

    async def remove_webhook(
        self, kind: Literal["github", "gitlab"], project: str
    ) -> of_hooks.HookRemoved:
        """Refuses the deliveries of a push webhook from now on."""
        path = f"/v1/git/webhooks/{kind}/{part(project)}"
        return await self.ask(of_hooks.HookRemoved, "DELETE", path)
