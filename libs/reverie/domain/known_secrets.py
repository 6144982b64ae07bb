"""Secrets that are known by their text: the values of a tenant's vault.

They are taken out of every text that is redacted while they are in force (`knowing`), whatever
they look like, also where JSON or a URL has escaped them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

LEAST = 6
"""Characters from which a value is taken out: shorter ones stand in ordinary words."""

VAULT = "VAULT"
_PLACEHOLDER = r"\[REDACTED_[A-Z_]+(?::[^\]\s]{1,128})?\]"


@dataclass(frozen=True)
class KnownSecret:
    """A secret text, and the vault's entry that holds it."""

    scope: str
    key: str
    text: str


class Known:
    """The secrets of one tenant as one expression, the longest first."""

    def __init__(self, secrets: Sequence[KnownSecret]) -> None:
        self._by_text: dict[str, KnownSecret] = {}
        for secret in secrets:
            for form in _forms(secret.text):
                self._by_text.setdefault(form, secret)
        longest = sorted(self._by_text, key=len, reverse=True)
        parts = [_PLACEHOLDER, *map(re.escape, longest)]
        self._pattern = re.compile("|".join(parts)) if longest else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def taken_out(self, text: str, may_name: Callable[[str], bool]) -> tuple[str, int]:
        """The text with a placeholder for each secret, and how many there were.

        `may_name` says for a scope whether its keys may be named; placeholders stay as they are.
        """
        if self._pattern is None:
            return text, 0
        count = 0

        def placed(match: re.Match[str]) -> str:
            nonlocal count
            secret = self._by_text.get(match[0])
            if secret is None:
                return match[0]
            count += 1
            named = f":{secret.key}" if may_name(secret.scope) else ""
            return f"[REDACTED_{VAULT}{named}]"

        return self._pattern.sub(placed, text), count


@dataclass(frozen=True)
class _InForce:
    known: Known
    may_name: Callable[[str], bool]


_IN_FORCE: ContextVar[_InForce | None] = ContextVar("known_secrets", default=None)


@contextmanager
def knowing(known: Known, may_name: Callable[[str], bool]) -> Iterator[None]:
    """Inside it, what is redacted loses these secrets too."""
    token = _IN_FORCE.set(_InForce(known, may_name))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def without_known(text: str) -> tuple[str, int]:
    """The text without the secrets in force, and how many it held."""
    force = _IN_FORCE.get()
    return force.known.taken_out(text, force.may_name) if force else (text, 0)


def _forms(text: str) -> set[str]:
    """A secret as it may stand in a text: as it is, and escaped or encoded."""
    plain = text.strip()
    if len(plain) < LEAST:
        return set()
    data = plain.encode()
    return {
        plain,
        json.dumps(plain)[1:-1],
        json.dumps(plain, ensure_ascii=False)[1:-1],
        quote(plain, safe=""),
        quote_plus(plain),
        base64.b64encode(data).decode(),
    }
