"""Who asks: a principal, what it may read and write."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.errors import Forbidden
from reverie.domain.limits import NONE, Limits
from reverie.domain.scopes import GLOBAL, common, matches, without_other_agents


class Role(StrEnum):
    """What a key is for."""

    ADMIN = "admin"
    WRITER = "writer"
    READER = "reader"
    CI = "ci"


ENDING = "!"
"""What alone the last key of a tenant may write while that is deleted: it covers no scope."""


@dataclass(frozen=True)
class Principal:
    """The holder of a key: its tenant, its role, and grant patterns per direction.

    A key that is bound to an agent covers no other agent's scopes, whatever its patterns say:
    `reads` and `writes` are what is left of them. `limits`: what this key may do, `tenant_limits`:
    what all keys of its tenant may do together.
    """

    tenant: int
    tenant_name: str
    key_id: str
    role: Role
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    project: str | None = None
    agent: str | None = None
    limits: Limits = NONE
    tenant_limits: Limits = NONE

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            left = without_other_agents(getattr(self, name), self.agent)
            object.__setattr__(self, name, left)

    @property
    def actor(self) -> str:
        """Who does something, as histories name it: the agent, else the key."""
        return self.agent or f"key {self.key_id[-8:]}"

    @property
    def writable(self) -> tuple[str, ...]:
        """The patterns whose memories the holder may change; none for a role that does not."""
        return self.writes if self.role in {Role.ADMIN, Role.WRITER} else ()

    def may_read(self, scope: str) -> bool:
        """Whether a read grant covers the scope."""
        return any(matches(pattern, scope) for pattern in self.reads)

    def may_write(self, scope: str) -> bool:
        """Whether the role writes at all and a write grant covers the scope."""
        return any(matches(pattern, scope) for pattern in self.writable)

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

    def seen_through(self, patterns: Iterable[str]) -> list[str]:
        """The patterns, narrowed to what may be read."""
        return common(self.reads, patterns)

    def check_role(self, role: Role) -> None:
        """Raises `Forbidden` unless the key has that very role."""
        if self.role is not role:
            raise Forbidden(f"do what only a key of role {role.value} may in", "*")

    def check_admin(self, scope: str = "*") -> None:
        """Raises `Forbidden` unless this is an admin's key that may write all of the pattern."""
        self.check_role(Role.ADMIN)
        if not any(matches(one, scope) for one in self.writes):
            raise Forbidden("administer", scope)

    def check_end(self) -> None:
        """Raises `Forbidden` unless this key may delete its tenant, or go on with that."""
        if self.writes == (ENDING,):
            self.check_role(Role.ADMIN)
        else:
            self.check_admin("*")
        self.check_read(["*"])

    def check_grant(self, reads: Iterable[str], writes: Iterable[str], agent: str | None) -> None:
        """Raises `Forbidden` naming the first pattern that this key does not hold itself."""
        for action, held, wanted in (("read", self.reads, reads), ("write", self.writes, writes)):
            for pattern in without_other_agents(wanted, agent):
                if not any(matches(one, pattern) for one in held):
                    raise Forbidden(f"let another {action}", pattern)
        if self.agent and not (agent and matches(f"{self.agent}/*", agent)):
            raise Forbidden("make a key for another agent in", f"agent/{agent or '*'}")

    def default_scope(self) -> str:
        """Where a write goes that names no scope: the key's project, else global."""
        return f"project/{self.project}" if self.project else GLOBAL


_ACTING: ContextVar[Principal | None] = ContextVar("acting", default=None)


def act_for(who: Principal | None) -> None:
    """What is done from here on in this task is done for the holder of a key, or for nobody."""
    _ACTING.set(who)


def acting_for() -> Principal | None:
    """For whom this task does what it does; None: nobody asked for it by a key."""
    return _ACTING.get()


def key_hash(key: str) -> bytes:
    """What is stored of a key. Keys are random and long, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).digest()
