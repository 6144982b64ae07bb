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
from typing import Any
from urllib.parse import quote, quote_plus

LEAST = 6
"""Characters from which a value is taken out: shorter ones stand in ordinary words."""

VAULT = "VAULT"
_PLACES = frozenset(
    {"database", "dbname", "domain", "driver", "email", "env", "environment", "host", "hostname"}
    | {"kind", "login", "name", "port", "region", "scheme", "type", "user", "username", "zone"}
)
"""Names of what stands beside a secret in a JSON object and is none."""

_PLACEHOLDER = r"\[REDACTED_[A-Z_]+(?::[^\]\s]{1,128})?\]"


@dataclass(frozen=True)
class KnownSecret:
    """A secret text, and the vault's entry that holds it."""

    scope: str
    key: str
    text: str


class Known:
    """The secrets of one tenant as one expression, the longest first."""

    def __init__(self, secrets: Sequence[KnownSecret], epoch: int | None = None) -> None:
        """`epoch`: how often they had changed when they were read, where it is known."""
        self.epoch = epoch
        self._by_text: dict[str, KnownSecret] = {}
        for secret in secrets:
            for form in _forms(secret.text):
                self._by_text.setdefault(form, secret)
        longest = sorted(self._by_text, key=len, reverse=True)
        parts = [_PLACEHOLDER, *map(_expression, longest)]
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

    def taken_out_of(self, value: Any) -> tuple[Any, int]:
        """A JSON value without the secrets in its keys, texts and numbers, none of them named, and
        how many there were."""
        if isinstance(value, str):
            return self.taken_out(value, lambda _: False)
        if isinstance(value, list):
            inner = [self.taken_out_of(one) for one in value]
            return [one for one, _ in inner], sum(count for _, count in inner)
        if isinstance(value, dict):
            names, values = self.taken_out_of(list(value)), self.taken_out_of(list(value.values()))
            return dict(zip(names[0], values[0], strict=True)), names[1] + values[1]
        if is_number(value):
            text, count = self.taken_out(str(value), lambda _: False)
            return (text if count else value), count
        return value, 0


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def secret_texts(value: Any) -> list[str]:
    """Every text and number in a secret JSON value, also in the JSON that a text holds.

    True and false are in every text, and so are names of places: those are left out.
    """
    if isinstance(value, dict):
        return [
            text
            for name, inner in value.items()
            if name.lower() not in _PLACES or isinstance(inner, dict | list)
            for text in secret_texts(inner)
        ]
    if isinstance(value, list):
        return [text for inner in value for text in secret_texts(inner)]
    if isinstance(value, str):
        return [value, *secret_texts(_held(value))]
    return [str(value)] if is_number(value) else []


def goes_unseen(value: Any) -> bool:
    """Whether a secret value holds nothing that is long enough to be taken out of texts."""
    return not any(_forms(text) for text in secret_texts(value))


def _held(text: str) -> Any:
    """The JSON object or array that a text is; else nothing."""
    if text.strip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _expression(text: str) -> str:
    """Finds the text; a number not within a longer one or a hash."""
    plain = re.escape(text)
    return rf"(?<![0-9A-Za-z]){plain}(?![0-9A-Za-z])" if text.isdigit() else plain


@dataclass(frozen=True)
class _InForce:
    known: Known
    may_name: Callable[[str], bool]


_IN_FORCE: ContextVar[_InForce | None] = ContextVar("known_secrets", default=None)


@contextmanager
def knowing(known: Known, may_name: Callable[[str], bool]) -> Iterator[None]:
    """Inside it, what is redacted loses these secrets too. `may_name` says for a scope whether
    its keys may be named."""
    token = _IN_FORCE.set(_InForce(known, may_name))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


class Outdated(Exception):
    """The secrets in force are no longer those of the tenant: know them anew, and do it again."""


def epoch_in_force() -> int | None:
    """Of what age the secrets in force are; None where there are none, or nobody knows."""
    force = _IN_FORCE.get()
    return force.known.epoch if force else None


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
