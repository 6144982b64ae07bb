"""Principals: the holder of an API key with its role, scope grants and usage limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from reverie.domain.access.scopes import (
    GLOBAL_SCOPE,
    intersect_patterns,
    restrict_to_agent,
    restrict_to_user,
    scope_matches,
    slugify,
)
from reverie.domain.core.errors import Forbidden

REQUESTS_PER_MINUTE = "requests_per_minute"
REQUESTS_PER_DAY = "requests_per_day"
MEMORIES_PER_DAY = "memories_per_day"
BYTES_PER_DAY = "bytes_per_day"
LLM_TOKENS_PER_DAY = "llm_tokens_per_day"
MEMORIES = "memories"
TENANT_QUOTA_HOLDER = UUID(int=0)
"""Holder of the quotas that all keys of a tenant share."""


@dataclass(frozen=True)
class UsageLimits:
    """Limits per key or tenant; None is no limit. Days begin at midnight UTC.

    `bytes_per_day` counts the bodies of writes. `llm_tokens_per_day` counts the tokens that
    a language model reads and writes for calls of the key. `memories`: the active memories of a
    tenant, which no key limits.
    """

    requests_per_minute: int | None = None
    requests_per_day: int | None = None
    memories_per_day: int | None = None
    bytes_per_day: int | None = None
    llm_tokens_per_day: int | None = None
    memories: int | None = None

    def get(self, name: str) -> int | None:
        """The limit of that name."""
        limit: int | None = getattr(self, name)
        return limit


NO_LIMITS = UsageLimits()
LIMIT_NAMES = tuple(field.name for field in fields(UsageLimits))


def combine_limits(*sources: Mapping[str, Any] | UsageLimits) -> UsageLimits:
    """The smallest value of each limit among several sources."""
    mappings = [vars(source) if isinstance(source, UsageLimits) else source for source in sources]
    values_by_name = {
        name: [source[name] for source in mappings if source.get(name) is not None]
        for name in LIMIT_NAMES
    }
    return UsageLimits(**{name: min(values) for name, values in values_by_name.items() if values})


def quota_holder_of(key_id: str) -> UUID:
    """The id under which the use of a key is counted."""
    try:
        return UUID(key_id)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"key:{key_id}")


class KeyRole(StrEnum):
    """The purpose of a key."""

    ADMIN = "admin"
    WRITER = "writer"
    READER = "reader"
    CI = "ci"


TENANT_DELETION_PATTERN = "!"
"""The only write pattern of a tenant's last key during the deletion. It matches no scope."""


@dataclass(frozen=True)
class Principal:
    """The holder of a key: its tenant, its role, and grant patterns per direction.

    A key that is bound to an agent covers no other agent's scopes, and one that is bound to a user
    no other user's: `reads` and `writes` are restricted accordingly. `limits` apply to this key,
    `tenant_limits` to all keys of its tenant. `acting_user` is whom the call names; it grants
    nothing. The holder of a token of an identity provider has no key; its rights end at
    `token_expires_at`.
    """

    tenant: int
    tenant_name: str
    key_id: str
    role: KeyRole
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    acting_user: str | None = None
    limits: UsageLimits = NO_LIMITS
    tenant_limits: UsageLimits = NO_LIMITS
    token_expires_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            restricted = restrict_to_agent(getattr(self, name), self.agent)
            object.__setattr__(self, name, restrict_to_user(restricted, self.user))

    @property
    def actor(self) -> str:
        """The name in histories: the agent, else the key."""
        return self.agent or f"key {self.key_id[-8:]}"

    @property
    def effective_user(self) -> str | None:
        """The slug of the user: the key's own, else whom the call names."""
        return self.user or (slugify(self.acting_user) if self.acting_user else None)

    @property
    def writable_patterns(self) -> tuple[str, ...]:
        """Returns the patterns whose memories the holder may change; none for a read-only role."""
        return self.writes if self.role in {KeyRole.ADMIN, KeyRole.WRITER} else ()

    @property
    def reads_whole_tenant(self) -> bool:
        """Whether the holder may read all scopes. Others get coarse scores.

        Word scores depend on how many memories of the tenant contain a word.
        """
        return "*" in self.reads

    def may_read(self, scope: str) -> bool:
        """Whether a read grant covers the scope."""
        return any(scope_matches(pattern, scope) for pattern in self.reads)

    def may_write(self, scope: str) -> bool:
        """Whether the role writes at all and a write grant covers the scope."""
        return any(scope_matches(pattern, scope) for pattern in self.writable_patterns)

    def check_read(self, scopes: Iterable[str]) -> None:
        """Raises `Forbidden` naming the first scope that may not be read."""
        for scope in scopes:
            if not self.may_read(scope):
                raise Forbidden("read", scope)

    def check_write(self, scope: str) -> None:
        """Raises `Forbidden` if the scope may not be written."""
        if not self.may_write(scope):
            raise Forbidden("write", scope)

    def check_git(self, scope: str) -> None:
        """Raises `Forbidden` unless the key may announce changes of this project or branch."""
        if not self.may_announce(scope):
            raise Forbidden("announce git changes of", scope)

    def may_announce(self, scope: str) -> bool:
        """Whether the key may announce changes of this project or branch."""
        has_role = self.role in {KeyRole.ADMIN, KeyRole.WRITER, KeyRole.CI}
        return has_role and any(scope_matches(pattern, scope) for pattern in self.writes)

    def narrow_to_readable(self, patterns: Iterable[str]) -> list[str]:
        """The patterns, restricted to scopes that the holder may read."""
        return intersect_patterns(self.reads, patterns)

    def check_role(self, role: KeyRole) -> None:
        """Raises `Forbidden` unless the key has that very role."""
        if self.role is not role:
            raise Forbidden(f"do what only a key of role {role.value} may in", "*")

    def check_admin(self, scope: str = "*") -> None:
        """Raises `Forbidden` unless this is an admin's key that may write all of the pattern."""
        self.check_role(KeyRole.ADMIN)
        if not any(scope_matches(pattern, scope) for pattern in self.writes):
            raise Forbidden("administer", scope)

    def check_tenant_deletion(self) -> None:
        """Raises `Forbidden` unless this key may delete its tenant, or continue a deletion."""
        if self.writes == (TENANT_DELETION_PATTERN,):
            self.check_role(KeyRole.ADMIN)
        else:
            self.check_admin("*")
        self.check_read(["*"])

    def check_grant(
        self,
        reads: Iterable[str],
        writes: Iterable[str],
        agent: str | None,
        user: str | None = None,
    ) -> None:
        """Raises `Forbidden` naming the first pattern that this key itself does not have."""
        for action, granted, requested in (
            ("read", self.reads, reads),
            ("write", self.writes, writes),
        ):
            for pattern in restrict_to_user(restrict_to_agent(requested, agent), user):
                if not any(scope_matches(granted_pattern, pattern) for granted_pattern in granted):
                    raise Forbidden(f"let another {action}", pattern)
        if self.agent and not (agent and scope_matches(f"{self.agent}/*", agent)):
            raise Forbidden("make a key for another agent in", f"agent/{agent or '*'}")
        if self.user and user != self.user:
            raise Forbidden("make a key for another user in", f"user/{user or '*'}")

    def default_scope(self) -> str:
        """The scope of a write that names none: the key's project, else global."""
        return f"project/{self.project}" if self.project else GLOBAL_SCOPE


def hash_key(key: str) -> bytes:
    """The stored form of a key. Keys are random and long, so one round of SHA-256 suffices."""
    return hashlib.sha256(key.encode()).digest()
