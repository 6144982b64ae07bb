"""Redaction of credentials and of a tenant's secrets in texts, JSON values and memories.

Each becomes a typed placeholder such as `[REDACTED_API_KEY]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from reverie.domain.core.memory import NewMemory, hash_content
from reverie.domain.redaction.matching import PASSWORD, SECRET, format_placeholder
from reverie.domain.redaction.secret_names import WEAK, classify_name
from reverie.domain.redaction.value_checks import ValueForm, is_secret
from reverie.domain.redaction.vault_secrets import (
    NO_SECRETS,
    VAULT,
    SecretMatcher,
    is_number,
    name_nothing,
)
from reverie.domain.text.index_terms import memory_index_text


@dataclass(frozen=True)
class RedactedText:
    """A text without its credentials, how many were replaced, and of which kinds (sorted)."""

    text: str
    count: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class RedactedValue:
    """A JSON-like value without its credentials, how many were replaced, and of which kinds."""

    value: Any
    count: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Redactor:
    """Redacts credentials, and the secrets of one tenant's vault.

    `may_name` returns for a scope whether a placeholder may name the vault keys of that scope.
    A secret is redacted if it covers one of the `scopes` of the text; None: every secret is.
    """

    secrets: SecretMatcher = NO_SECRETS
    may_name: Callable[[str], bool] = name_nothing
    scopes: tuple[str, ...] | None = None

    def naming(self, may_name: Callable[[str], bool]) -> Redactor:
        """Returns the same redactor for a reader who may see the vault keys of these scopes."""
        return replace(self, may_name=may_name)

    def within(self, *scopes: str) -> Redactor:
        """Returns the same redactor for texts of these scopes."""
        return replace(self, scopes=scopes)

    def redact(self, text: str) -> RedactedText:
        """The text with every credential replaced by `[REDACTED_<KIND>]`."""
        # Here and not above: the rules take 6 MB, and a process that stores no text needs none.
        from reverie.domain.redaction.credential_search import redact_credentials

        text, secret_count = self.secrets.redact(text, self.may_name, self.scopes)
        text, count, kinds = redact_credentials(text)
        if secret_count:
            kinds.add(VAULT)
        return RedactedText(text, secret_count + count, tuple(sorted(kinds)))

    def redact_value(self, value: Any) -> RedactedValue:
        """Redacts the keys and texts of a value of dicts, lists and scalars.

        A text under a key such as `password` is checked by that key, and so is the `value` next to
        such a `name`. Keys that become equal get a number.
        """
        results: list[RedactedText] = []
        clean = self._redact_any(value, None, results)
        kinds = {kind for entry in results for kind in entry.kinds}
        return RedactedValue(clean, sum(entry.count for entry in results), tuple(sorted(kinds)))

    def redact_memory(self, memory: NewMemory) -> NewMemory:
        """Redacts every text of a memory; returns the same object if none contained a secret."""
        redactor = self.within(memory.scope)
        texts = redactor.redact_value(
            {
                "summary": memory.summary,
                "tags": list(memory.tags),
                "git": memory.git,
                "metadata": memory.metadata,
            }
        )
        content = redactor.redact(memory.content)
        if not texts.count + content.count:
            return memory
        tags = tuple(dict.fromkeys(texts.value["tags"]))
        return replace(
            memory,
            content=content.text,
            content_hash=hash_content(content.text),
            words=memory_index_text(memory.key, content.text, tags, texts.value["metadata"]),
            summary=texts.value["summary"],
            tags=tags,
            git=texts.value["git"],
            metadata=texts.value["metadata"],
        )

    def _redact_any(self, value: Any, key: str | None, results: list[RedactedText]) -> Any:
        if isinstance(value, str):
            return self._redact_keyed_text(value, key, results)
        if isinstance(value, dict):
            return self._redact_dict(value, key, results)
        if isinstance(value, list | tuple):
            return type(value)(self._redact_any(entry, key, results) for entry in value)
        if is_number(value):
            return self._redact_keyed_number(value, key, results)
        return value

    def _redact_keyed_text(self, text: str, key: str | None, results: list[RedactedText]) -> str:
        result = self.redact(text)
        kind = classify_name(key) if key is not None else None
        if kind and not result.count and is_secret(kind, text, ValueForm.QUOTED):
            kind = SECRET if kind == WEAK else kind
            result = RedactedText(format_placeholder(kind), 1, (kind,))
        results.append(result)
        return result.text

    def _redact_keyed_number(
        self, number: float, key: str | None, results: list[RedactedText]
    ) -> Any:
        """A number under a password's name is a secret if it is long enough to be a PIN."""
        text, count = self.secrets.redact(str(number), self.may_name, self.scopes)
        if count:
            results.append(RedactedText(text, count, (VAULT,)))
            return text
        if (
            key is None
            or not isinstance(number, int)
            or classify_name(key) != PASSWORD
            or number < 1000
        ):
            return number
        results.append(RedactedText(format_placeholder(PASSWORD), 1, (PASSWORD,)))
        return results[-1].text

    def _redact_dict(
        self, value: dict[Any, Any], outer_key: str | None, results: list[RedactedText]
    ) -> dict[Any, Any]:
        entry_name = value.get("name", value.get("key"))
        out: dict[Any, Any] = {}
        for key, inner in value.items():
            clean = self._redact_keyed_text(key, None, results) if isinstance(key, str) else key
            context_key = key if isinstance(key, str) else outer_key
            if key == "value":
                context_key = entry_name if isinstance(entry_name, str) else outer_key
            numbered = (f"{clean} ({number})" for number in count(2))
            unique_key = next(name for name in chain([clean], numbered) if name not in out)
            out[unique_key] = self._redact_any(inner, context_key, results)
        return out


RedactorLoader = Callable[[int], Awaitable[Redactor]]
"""Loads the redactor of a tenant, by its number."""

CREDENTIAL_REDACTOR = Redactor()
"""Redacts credentials and knows no vault."""


def redact(text: str) -> RedactedText:
    """Calls `Redactor.redact` without a tenant's vault."""
    return CREDENTIAL_REDACTOR.redact(text)


def redact_value(value: Any) -> RedactedValue:
    """Calls `Redactor.redact_value` without a tenant's vault."""
    return CREDENTIAL_REDACTOR.redact_value(value)
