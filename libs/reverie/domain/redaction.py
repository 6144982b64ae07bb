"""Taking credentials out of text before it is stored, logged or sent on.

Each becomes a typed placeholder such as `[REDACTED_API_KEY]`. Pure and linear in the text;
redacting what was redacted changes nothing. Told apart by form (`redaction_patterns`), by the
names they are given (`redaction_assignments`, `redaction_values`) and by the commands they stand
in (`redaction_commands`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from reverie.domain.known_secrets import VAULT, is_number, without_known
from reverie.domain.redaction_assignments import WEAK, assigned, name_kind
from reverie.domain.redaction_commands import commanded
from reverie.domain.redaction_patterns import (
    PASSWORD,
    SECRET,
    Span,
    headers,
    private_keys,
    shaped,
    url_passwords,
)
from reverie.domain.redaction_values import Form, is_secret

_MAX_ROUNDS = 8
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True)
class Redacted:
    """A text without its credentials, how many were taken out, and of which kinds (sorted)."""

    text: str
    count: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class RedactedValue:
    """A JSON-like value without its credentials, how many were taken out, and of which kinds."""

    value: Any
    count: int
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """The text with every credential replaced by `[REDACTED_<KIND>]`.

    Secrets of the vault that are in force (`known_secrets.knowing`) go first.
    """
    text, count = without_known(text)
    kinds = {VAULT} if count else set[str]()
    # A placeholder can lay bare what stood beside it: again, until nothing is found.
    for _ in range(_MAX_ROUNDS):
        spans = _merged(_found(text))
        if not spans:
            break
        text = _replaced(text, spans)
        count += len(spans)
        kinds |= {kind for _, _, kind in spans}
    return Redacted(text, count, tuple(sorted(kinds)))


def redact_value(value: Any) -> RedactedValue:
    """A value of dicts, lists and scalars with the credentials in its keys and texts replaced.

    A text under a telling key (`{"password": ...}`) is judged by that key; so is the `value`
    beside such a `name`. Keys that become equal are told apart by a number.
    """
    found: list[Redacted] = []
    cleaned = _cleaned(value, None, found)
    kinds = {kind for entry in found for kind in entry.kinds}
    return RedactedValue(cleaned, sum(entry.count for entry in found), tuple(sorted(kinds)))


def _found(text: str) -> Iterator[tuple[int, Span]]:
    """Spans with the rank of who found them: the more telling comes first."""
    lower = _ascii_lower(text)
    finders = (
        private_keys(text),
        shaped(text),
        url_passwords(text),
        headers(text, lower),
        assigned(text, lower),
        commanded(text, lower),
    )
    for rank, finder in enumerate(finders):
        for span in finder:
            yield rank, span


def _merged(found: Iterator[tuple[int, Span]]) -> list[Span]:
    """Spans in order, those that overlap made one, of the kind that tells most."""
    merged: list[tuple[int, int, tuple[int, str]]] = []
    for start, end, kind in sorted((s, e, (rank, kind)) for rank, (s, e, kind) in found):
        if merged and start < merged[-1][1]:
            first, last, best = merged[-1]
            merged[-1] = (first, max(last, end), min(best, kind))
        else:
            merged.append((start, end, kind))
    return [(start, end, kind) for start, end, (_, kind) in merged]


def _replaced(text: str, spans: list[Span]) -> str:
    parts, position = [], 0
    for start, end, kind in spans:
        parts += [text[position:start], _placeholder(kind)]
        position = end
    return "".join([*parts, text[position:]])


def _placeholder(kind: str) -> str:
    return f"[REDACTED_{kind}]"


def _ascii_lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def _cleaned(value: Any, key: str | None, found: list[Redacted]) -> Any:
    if isinstance(value, str):
        return _cleaned_text(value, key, found)
    if isinstance(value, dict):
        return _cleaned_dict(value, key, found)
    if isinstance(value, list | tuple):
        return type(value)(_cleaned(entry, key, found) for entry in value)
    if is_number(value):
        return _cleaned_number(value, key, found)
    return value


def _cleaned_text(text: str, key: str | None, found: list[Redacted]) -> str:
    result = redact(text)
    kind = name_kind(key) if key is not None else None
    if kind and not result.count and is_secret(kind, text, Form.QUOTED):
        kind = SECRET if kind == WEAK else kind
        result = Redacted(_placeholder(kind), 1, (kind,))
    found.append(result)
    return result.text


def _cleaned_number(number: float, key: str | None, found: list[Redacted]) -> Any:
    """A number under a password's name is a secret if it is long enough to be a PIN."""
    text, count = without_known(str(number))
    if count:
        found.append(Redacted(text, count, (VAULT,)))
        return text
    if key is None or not isinstance(number, int) or name_kind(key) != PASSWORD or number < 1000:
        return number
    found.append(Redacted(_placeholder(PASSWORD), 1, (PASSWORD,)))
    return found[-1].text


def _cleaned_dict(
    value: dict[Any, Any], outer: str | None, found: list[Redacted]
) -> dict[Any, Any]:
    named = value.get("name", value.get("key"))
    out: dict[Any, Any] = {}
    for key, inner in value.items():
        clean = _cleaned_text(key, None, found) if isinstance(key, str) else key
        telling = key if isinstance(key, str) else outer
        if key == "value":
            telling = named if isinstance(named, str) else outer
        out[_free(clean, out)] = _cleaned(inner, telling, found)
    return out


def _free(key: Any, taken: dict[Any, Any]) -> Any:
    number, free = 2, key
    while free in taken:
        free, number = f"{key} ({number})", number + 1
    return free
