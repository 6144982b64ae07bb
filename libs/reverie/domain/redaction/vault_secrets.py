"""Redaction of the secret values that a tenant's vault stores, also in escaped or encoded form."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

MIN_SECRET_LENGTH = 6
"""Shortest value that is redacted: shorter ones occur in ordinary words."""

VAULT = "VAULT"
_NON_SECRET_FIELDS = frozenset(
    {"database", "dbname", "domain", "driver", "email", "env", "environment", "host", "hostname"}
    | {"kind", "login", "name", "port", "region", "scheme", "type", "user", "username", "zone"}
)
"""Names of JSON fields next to a secret that are no secrets themselves."""

_PLACEHOLDER = r"\[REDACTED_[A-Z_]+(?::[^\]\s]{1,128})?\]"


@dataclass(frozen=True)
class VaultSecret:
    """A secret text, and the vault entry that contains it."""

    scope: str
    key: str
    text: str


def name_nothing(_: str) -> bool:
    """Returns False: no placeholder names its vault entry."""
    return False


class SecretMatcher:
    """Replaces the secrets of one tenant by one expression, the longest first."""

    def __init__(self, secrets: Sequence[VaultSecret] = (), epoch: int | None = None) -> None:
        """`epoch` counts the changes of the tenant's secrets up to when these were read."""
        self.epoch = epoch
        self._by_text: dict[str, VaultSecret] = {}
        for secret in secrets:
            for form in _encoded_forms(secret.text):
                self._by_text.setdefault(form, secret)
        longest = sorted(self._by_text, key=len, reverse=True)
        # A number is not found within a longer one or a hash.
        parts = [
            rf"(?<![0-9A-Za-z]){text}(?![0-9A-Za-z])" if text.isdigit() else re.escape(text)
            for text in longest
        ]
        self._pattern = re.compile("|".join([_PLACEHOLDER, *parts])) if longest else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def redact(self, text: str, may_name: Callable[[str], bool] = name_nothing) -> tuple[str, int]:
        """Redacts each secret; returns the text and the number of secrets.

        `may_name` returns for a scope whether its keys may be named; existing placeholders stay.
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
            suffix = f":{secret.key}" if may_name(secret.scope) else ""
            return f"[REDACTED_{VAULT}{suffix}]"

        return self._pattern.sub(placed, text), count

    def redact_value(self, value: Any) -> tuple[Any, int]:
        """A JSON value without the secrets in its keys, texts and numbers, and how many there were.

        The placeholders name no entry.
        """
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            inner = [self.redact_value(element) for element in value]
            return [element for element, _ in inner], sum(count for _, count in inner)
        if isinstance(value, dict):
            names, values = self.redact_value(list(value)), self.redact_value(list(value.values()))
            return dict(zip(names[0], values[0], strict=True)), names[1] + values[1]
        if is_number(value):
            text, count = self.redact(str(value))
            return (text if count else value), count
        return value, 0


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def collect_secret_texts(value: Any) -> list[str]:
    """Collects every text and number in a secret JSON value, also in JSON that a text contains.

    Booleans and fields that are no secrets are left out.
    """
    if isinstance(value, dict):
        return [
            text
            for name, inner in value.items()
            if name.lower() not in _NON_SECRET_FIELDS or isinstance(inner, dict | list)
            for text in collect_secret_texts(inner)
        ]
    if isinstance(value, list):
        return [text for inner in value for text in collect_secret_texts(inner)]
    if isinstance(value, str):
        texts = [value]
        if value.strip()[:1] in {"{", "["}:
            with suppress(ValueError, RecursionError):
                texts += collect_secret_texts(json.loads(value))
        return texts
    return [str(value)] if is_number(value) else []


def is_too_short_to_redact(value: Any) -> bool:
    """Whether a secret value contains nothing that is long enough to be redacted."""
    return not any(_encoded_forms(text) for text in collect_secret_texts(value))


class OutdatedSecrets(Exception):
    """The tenant's secrets changed after they were read: load them again and repeat the write."""


def _encoded_forms(text: str) -> set[str]:
    """The forms in which a secret may occur in a text: plain, escaped and encoded."""
    plain = text.strip()
    if len(plain) < MIN_SECRET_LENGTH:
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


NO_SECRETS = SecretMatcher()
