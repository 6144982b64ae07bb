"""Redaction of the secret values that a tenant's vault stores, also in escaped or encoded form.

A placeholder carries an id of what it replaced. It says nothing without the value, and with the
value the text can be put back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from reverie.domain.core.scope_patterns import scope_matches
from reverie.domain.redaction.value_checks import is_passphrase, is_wordy

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

MIN_SECRET_LENGTH = 8
"""Shortest value that is redacted: shorter ones occur in ordinary texts."""

VAULT = "VAULT"
_NON_SECRET_FIELDS = frozenset(
    {"database", "dbname", "domain", "driver", "email", "env", "environment", "host", "hostname"}
    | {"kind", "login", "name", "port", "region", "scheme", "type", "user", "username", "zone"}
)
"""Names of JSON fields next to a secret that are no secrets themselves."""

_MIN_DISTINCT = 5
_PLACEHOLDER = re.compile(r"(\[REDACTED_[A-Z_]+(?:[:#][^\]\s]{1,160})?\])")
_PLACEHOLDER_ID = re.compile(rf"\[REDACTED_{VAULT}(?::[^\]\s#]{{1,128}})?#([0-9a-f]{{10}})\]")
_NEIGHBOUR = re.compile(r"[0-9A-Za-z]")

Scopes = Sequence[str] | None
"""The scopes of a text, of which one must be covered by a secret; None: every secret counts."""


@dataclass(frozen=True)
class VaultSecret:
    """A secret text, the vault entry that contains it, and the scopes where it is redacted.

    `salt` makes the ids of placeholders; without one they have none. A `restored` secret is put
    back in place of its placeholders.
    """

    scope: str
    key: str
    text: str
    covers: tuple[str, ...] = ("*",)
    salt: bytes = b""
    restored: bool = False


def name_nothing(_: str) -> bool:
    """Returns False: no placeholder names its vault entry."""
    return False


class SecretMatcher:
    """Replaces the secrets of one tenant, the longest first.

    All secrets of the same scopes are found in one pass, so the time does not grow with their
    number.
    """

    def __init__(self, secrets: Sequence[VaultSecret] = (), epoch: int | None = None) -> None:
        """`epoch` counts the changes of the tenant's secrets up to when these were read."""
        self.epoch = epoch
        self._restored: dict[str, tuple[str, VaultSecret]] = {}
        groups: defaultdict[tuple[str, ...], dict[str, VaultSecret]] = defaultdict(dict)
        for secret in secrets:
            for form in _encoded_forms(secret.text):
                if secret.restored:
                    self._restored[_placeholder_id(secret, form)] = form, secret
                else:
                    groups[secret.covers].setdefault(form, secret)
        self._groups = [
            (covers, tuple(by_form.items()), _build_automaton(by_form))
            for covers, by_form in groups.items()
        ]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def redact(
        self, text: str, may_name: Callable[[str], bool] = name_nothing, scopes: Scopes = None
    ) -> tuple[str, int]:
        """Redacts each secret; returns the text and the number of secrets.

        `may_name` returns for a scope whether its keys may be named; existing placeholders stay.
        """
        total = 0
        for covers, forms, automaton in self._groups:
            if not _covers(covers, scopes) or not automaton.find_matches_as_indexes(text):
                continue
            parts = _PLACEHOLDER.split(text)
            for index in range(0, len(parts), 2):
                parts[index], count = _replace(parts[index], forms, automaton, may_name)
                total += count
            text = "".join(parts)
        return text, total

    def restore(self, text: str, scopes: Scopes = None) -> tuple[str, int]:
        """The text with restored secrets in place of their placeholders, and how many."""
        count = 0

        def put_back(match: re.Match[str]) -> str:
            nonlocal count
            form, secret = self._restored.get(match[1], ("", None))
            if secret is None or not _covers(secret.covers, scopes):
                return match[0]
            count += 1
            return form

        return (_PLACEHOLDER_ID.sub(put_back, text) if self._restored else text), count

    def redact_value(self, value: Any, scopes: Scopes = None) -> tuple[Any, int]:
        """A JSON value without the secrets in its keys, texts and numbers, and how many there were.

        The placeholders name no entry.
        """
        return _map_texts(value, lambda text: self.redact(text, scopes=scopes))

    def restore_value(self, value: Any, scopes: Scopes = None) -> tuple[Any, int]:
        """A JSON value with restored secrets in its keys and texts, and how many there were."""
        return _map_texts(value, lambda text: self.restore(text, scopes))


def _build_automaton(forms: dict[str, VaultSecret]) -> AhoCorasick:
    from ahocorasick_rs import AhoCorasick, MatchKind

    return AhoCorasick(list(forms), matchkind=MatchKind.LeftmostLongest, store_patterns=False)


def _covers(covers: Sequence[str], scopes: Scopes) -> bool:
    return scopes is None or any(
        scope_matches(pattern, scope) for pattern in covers for scope in scopes
    )


def _replace(
    text: str,
    forms: Sequence[tuple[str, VaultSecret]],
    automaton: AhoCorasick,
    may_name: Callable[[str], bool],
) -> tuple[str, int]:
    parts, position = list[str](), 0
    for index, start, end in automaton.find_matches_as_indexes(text):
        form, secret = forms[index]
        # A number is not found within a longer one or a hash.
        neighbours = text[max(0, start - 1) : start] + text[end : end + 1]
        if form.isdigit() and _NEIGHBOUR.search(neighbours):
            continue
        name = f":{secret.key}" if may_name(secret.scope) else ""
        suffix = f"#{_placeholder_id(secret, form)}" if secret.salt else ""
        parts += text[position:start], f"[REDACTED_{VAULT}{name}{suffix}]"
        position = end
    return "".join([*parts, text[position:]]), len(parts) // 2


def _placeholder_id(secret: VaultSecret, form: str) -> str:
    return hashlib.sha256(secret.salt + form.encode()).hexdigest()[:10]


def _map_texts(value: Any, change: Callable[[str], tuple[str, int]]) -> tuple[Any, int]:
    """Changes every key, text and number of a JSON value; returns it with the sum of the counts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        inner = [_map_texts(element, change) for element in value]
        return [element for element, _ in inner], sum(count for _, count in inner)
    if isinstance(value, dict):
        names = _map_texts(list(value), change)
        values = _map_texts(list(value.values()), change)
        return dict(zip(names[0], values[0], strict=True)), names[1] + values[1]
    if is_number(value):
        text, count = change(str(value))
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


def is_redactable(text: str) -> bool:
    """Whether a secret is redacted: it is long enough, and does not consist of ordinary words.

    Words, names, dates and short numbers occur in texts that have nothing to do with the secret.
    """
    plain = text.strip()
    if len(plain) < MIN_SECRET_LENGTH or len(set(plain)) < _MIN_DISTINCT:
        return False
    return not is_wordy(plain) or is_passphrase(plain)


def count_unredactable(value: Any) -> tuple[int, int]:
    """How many texts of a secret value are not redacted, and how many it has."""
    texts = collect_secret_texts(value)
    return sum(not is_redactable(text) for text in texts), len(texts)


class OutdatedSecrets(Exception):
    """The tenant's secrets changed after they were read: load them again and repeat the write."""


def _encoded_forms(text: str) -> Iterator[str]:
    """The forms in which a secret may occur in a text: plain, escaped and encoded."""
    plain = text.strip()
    if not is_redactable(plain):
        return
    data = plain.encode()
    yield from {
        plain,
        json.dumps(plain)[1:-1],
        json.dumps(plain, ensure_ascii=False)[1:-1],
        quote(plain, safe=""),
        quote_plus(plain),
        base64.b64encode(data).decode(),
    }


NO_SECRETS = SecretMatcher()
