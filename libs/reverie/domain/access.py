"""Who asks: a principal, what it may read and write."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.errors import Forbidden
from reverie.domain.scopes import GLOBAL, matches


class Role(StrEnum):
    """What a key is for."""

    ADMIN = "admin"
    WRITER = "writer"
    READER = "reader"
    CI = "ci"


@dataclass(frozen=True)
class Principal:
    """The holder of a key: its tenant, its role, and grant patterns per direction."""

    tenant: int
    tenant_name: str
    key_id: str
    role: Role
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    project: str | None = None
    agent: str | None = None

    def may_read(self, scope: str) -> bool:
        """Whether a read grant covers the scope."""
        return any(matches(pattern, scope) for pattern in self.reads)

    def may_write(self, scope: str) -> bool:
        """Whether the role writes at all and a write grant covers the scope."""
        return self.role in {Role.ADMIN, Role.WRITER} and any(
            matches(pattern, scope) for pattern in self.writes
        )

    def check_read(self, scopes: Iterable[str]) -> None:
        """Raises `Forbidden` naming the first scope that may not be read."""
        for scope in scopes:
            if not self.may_read(scope):
                raise Forbidden("read", scope)

    def check_write(self, scope: str) -> None:
        """Raises `Forbidden` if the scope may not be written."""
        if not self.may_write(scope):
            raise Forbidden("write", scope)

    def check_git(self, project_scope: str) -> None:
        """Raises `Forbidden` unless the key may announce changes of this project."""
        may = self.role in {Role.ADMIN, Role.WRITER, Role.CI}
        if not may or not any(matches(pattern, project_scope) for pattern in self.writes):
            raise Forbidden("announce git changes of", project_scope)

    def default_scope(self) -> str:
        """Where a write goes that names no scope: the key's project, else global."""
        return f"project/{self.project}" if self.project else GLOBAL


def key_hash(key: str) -> bytes:
    """What is stored of a key. Keys are random and long, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).digest()
