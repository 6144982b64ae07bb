"""Verifies the signatures of deliveries of GitHub and GitLab while their bodies arrive.

The webhook routes call it. Until the sender is known, `UnverifiedBodies` bounds the memory that
bodies take.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from reverie.domain.core.errors import Overloaded

MAX_SIGNATURE_AGE: Final = 300
_MAX_SIGNATURES: Final = 8
_GITHUB_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")


class RequestHeaders(Protocol):
    """The headers of a delivery; names are case-insensitive."""

    def get(self, name: str, default: str, /) -> str: ...


@dataclass(frozen=True)
class DeliverySignature:
    """The signatures in the headers of a delivery, one of which must be that of its body.

    Without a `hasher`, the headers alone have proved the sender.
    """

    hasher: hmac.HMAC | None = None
    signatures: Sequence[str] = ()
    encode: Callable[[bytes], str] = field(default=bytes.hex)

    def update(self, chunk: bytes) -> None:
        """Adds the next part of the body."""
        if self.hasher is not None:
            self.hasher.update(chunk)

    def is_valid(self) -> bool:
        """Whether the body that was added is signed."""
        if self.hasher is None:
            return True
        expected = self.encode(self.hasher.digest())
        return any(_compare_constant_time(expected, actual) for actual in self.signatures)


def read_github_signature(secret: str, headers: RequestHeaders) -> DeliverySignature | None:
    """GitHub's signature: HMAC-SHA256 of the body in `X-Hub-Signature-256`.

    None if there is none that could be valid.
    """
    signature = headers.get("X-Hub-Signature-256", "")
    if not _GITHUB_SIGNATURE.fullmatch(signature):
        return None
    hasher = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    return DeliverySignature(hasher, [signature.removeprefix("sha256=")])


def read_gitlab_signature(
    secret: str, headers: RequestHeaders, now: float
) -> DeliverySignature | None:
    """GitLab's signature, by the Standard Webhooks specification, or else the secret itself in
    `X-Gitlab-Token`.

    None if there is none that could be valid. A signature older than five minutes is not.
    """
    signatures = headers.get("webhook-signature", "")
    if not signatures:
        is_secret = _compare_constant_time(secret, headers.get("X-Gitlab-Token", ""))
        return DeliverySignature() if is_secret else None
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(now - int(timestamp[:12])) > MAX_SIGNATURE_AGE:
        return None
    # A secret that is no signing token signs nothing. Its deliveries are refused like others.
    key = _signing_key(secret) or secrets.token_bytes(32)
    head = f"{headers.get('webhook-id', '')}.{timestamp}.".encode()
    found = [text.removeprefix("v1,") for text in signatures.split() if text.startswith("v1,")]
    return DeliverySignature(
        hmac.new(key, head, hashlib.sha256),
        found[:_MAX_SIGNATURES],
        lambda digest: base64.b64encode(digest).decode(),
    )


def _signing_key(secret: str) -> bytes | None:
    """Decodes the key of a signing token."""
    if not secret.startswith("whsec_"):
        return None
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return None


def _compare_constant_time(expected: str, actual: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(expected.encode(), actual.encode(errors="replace"))


class UnverifiedBodies:
    """Collects bodies whose signature can be checked only at their end.

    All of them together take at most `max_bytes`; those of one address take `max_bytes_each`, so
    that a flood at one address leaves room for the others.
    """

    def __init__(self, max_bytes: int, max_bytes_each: int) -> None:
        self._max_bytes, self._max_bytes_each = max_bytes, max_bytes_each
        self._bytes_by_address = Counter[str]()
        self._running = 0

    async def collect(self, address: str, chunks: AsyncIterator[bytes]) -> bytes:
        """The whole body. Raises `Overloaded` if there is no room for it."""
        kept: list[bytes] = []
        self._running += 1
        try:
            async for chunk in chunks:
                kept.append(chunk)
                self._bytes_by_address[address] += len(chunk)
                if (
                    self._bytes_by_address[address] > self._max_bytes_each
                    or self._bytes_by_address.total() > self._max_bytes
                ):
                    raise Overloaded("deliveries", self._running, 0)
            return b"".join(kept)
        finally:
            self._running -= 1
            self._bytes_by_address[address] -= sum(map(len, kept))
            if not self._bytes_by_address[address]:
                del self._bytes_by_address[address]
