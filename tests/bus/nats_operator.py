"""Creates NATS operator, account and user credentials files, as `nsc` does.

See the JWT of NATS: a header, claims and a signature by the key of whoever vouches.
"""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

import nkeys  # type: ignore[import-untyped]


def _key(kind: int) -> Any:
    """A pair of keys of a kind."""
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), kind))


def user_key() -> tuple[str, str]:
    """The seed of a new user, and its public key."""
    made = _key(nkeys.PREFIX_BYTE_USER)
    return made.seed.decode(), made.public_key.decode()


class Operator:
    """One who vouches for an account, and the account for its users."""

    def __init__(self) -> None:
        self._key, self._account = _key(nkeys.PREFIX_BYTE_OPERATOR), _key(nkeys.PREFIX_BYTE_ACCOUNT)

    def config(self) -> str:
        """The server's: whom it believes, and the account that it knows."""
        own = self._signed(self._key, self._key, "operator", {"type": "operator"})
        unlimited = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn"), -1)
        streams = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
        may = {"REVERIE": {**unlimited, **streams, "wildcards": True}, "SYS": unlimited}
        accounts = {"REVERIE": self._account, "SYS": _key(nkeys.PREFIX_BYTE_ACCOUNT)}
        known = {
            key.public_key.decode(): self._signed(
                self._key, key, name, {"limits": may[name], "type": "account"}
            )
            for name, key in accounts.items()
        }
        told = ", ".join(f"{key}: {jwt}" for key, jwt in known.items())
        system = accounts["SYS"].public_key.decode()
        return (
            f"operator: {own}\nsystem_account: {system}\nresolver: MEMORY\n"
            f"resolver_preload: {{ {told} }}\n"
        )

    def creds(self, name: str, publish: list[str], subscribe: list[str]) -> str:
        """A credentials file of a user that may do so."""
        user = _key(nkeys.PREFIX_BYTE_USER)
        may = {"pub": {"allow": publish}, "sub": {"allow": subscribe}}
        unlimited = {"subs": -1, "data": -1, "payload": -1}
        jwt = self._signed(self._account, user, name, {**may, **unlimited, "type": "user"})
        seed = user.seed.decode()
        parts = (("NATS USER JWT", "NATS USER JWT", jwt), ("USER NKEY SEED",) * 2 + (seed,))
        blocks = [f"-----BEGIN {begins}-----\n{text}\n------END {ends}------\n"
                  for begins, ends, text in parts]  # fmt: skip
        return "\n".join(blocks)

    def _signed(self, by: Any, of: Any, name: str, claims: dict[str, Any]) -> str:
        body = {"jti": os.urandom(8).hex(), "iat": int(time.time()), "name": name,
                "iss": by.public_key.decode(), "sub": of.public_key.decode(),
                "nats": {**claims, "version": 2}}  # fmt: skip
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        text = f"{_packed(json.dumps(head).encode())}.{_packed(json.dumps(body).encode())}"
        return f"{text}.{_packed(by.sign(text.encode()))}"


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
