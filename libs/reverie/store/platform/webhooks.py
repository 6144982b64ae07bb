"""Stores git webhooks and their encrypted secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.core.errors import NotFound
from reverie.store.db.database import Database
from reverie.store.db.encryption import SecretCipher, SecretLocation
from reverie.store.db.idempotency import run_once


@dataclass(frozen=True)
class WebhookInfo:
    """A webhook without its secret. Not `readable`: sealed under a master key that is not set."""

    project: str
    kind: str
    updated_by: str
    readable: bool
    created: datetime
    updated: datetime


class WebhookStore:
    """The webhooks of all tenants, which may write to a project without a key."""

    def __init__(self, database: Database, cipher: SecretCipher) -> None:
        self._db = database
        self._cipher = cipher

    @property
    def can_encrypt(self) -> bool:
        """Whether secrets can be stored."""
        return self._cipher.newest_key_id is not None

    async def project_exists(self, tenant: int, project: str) -> bool:
        """Whether a project is known."""
        return bool(await self._db.call("project_exists", tenant, project))

    async def find_tenant(self, name: str) -> int | None:
        """Returns the number of a tenant; None if there is no tenant of that name."""
        number = await self._db.call("tenant_find", name)
        return None if number is None else int(number)

    async def find(self, tenant_name: str, project: str, kind: str) -> tuple[Principal, str] | None:
        """Returns the principal and the secret of a webhook; None if not set.

        Raises `Unavailable` if the secret's master key is missing.
        """
        found = await self._db.fetch_rows("webhook_find", tenant_name, project, kind)
        if not found:
            return None
        row = found[0]
        secret = self._cipher.decrypt(
            _secret_location(row["tenant"], project, kind), row["sealed"], row["key_id"]
        )
        return create_webhook_principal(
            row["tenant"], tenant_name, project, f"{kind} webhook"
        ), str(secret)

    async def put(self, principal: Principal, project: str, kind: str, secret: str) -> WebhookInfo:
        """Sets the secret of a webhook. Raises `Misconfigured` without a master key."""
        sealed, key_id = self._cipher.encrypt(
            _secret_location(principal.tenant, project, kind), secret
        )
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row(
                "webhook_put", project, kind, sealed, key_id, principal.key_id
            )
        return self._parse_webhook(row)

    async def page(
        self,
        principal: Principal,
        grants: Sequence[str],
        project: str | None,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> list[WebhookInfo]:
        """The webhooks of projects that the grants cover, after a project and a kind."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "webhook_list", list(grants), project, *after, limit
            )
        return [self._parse_webhook(row) for row in found]

    async def delete(self, principal: Principal, project: str, kind: str) -> None:
        """Deletes a webhook's secret. Raises `NotFound`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            if not await run_once(
                connection,
                "delete",
                lambda: connection.fetch_value("webhook_delete", project, kind),
            ):
                raise NotFound(f"{kind} webhook of project", project)

    def _parse_webhook(self, row: Any) -> WebhookInfo:
        readable = self._cipher.has_key(row["key_id"])
        names = ("project", "kind", "created", "updated")
        return WebhookInfo(
            readable=readable, updated_by=row["actor"], **{name: row[name] for name in names}
        )


def create_webhook_principal(tenant: int, name: str, project: str, key_id: str) -> Principal:
    """Creates a principal that may announce the changes of one project and nothing else.

    It acts for all branches: it speaks for the project's own host or bus subject.
    """
    return Principal(tenant, name, key_id, KeyRole.CI, (), (f"project/{project}/*",))


def _secret_location(tenant: int, project: str, kind: str) -> SecretLocation:
    return SecretLocation(tenant, f"project/{project}", f"webhook {kind}")
