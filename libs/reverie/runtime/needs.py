"""Settings that a service cannot start without."""

from __future__ import annotations

from pydantic import SecretStr

from reverie.domain.errors import Misconfigured


def secret_text(value: SecretStr | None) -> str | None:
    """The text of a secret setting, None where it is not set."""
    return None if value is None else value.get_secret_value()


def required(value: SecretStr | None, name: str) -> str:
    """The text of a secret setting. Raises `Misconfigured` where it is not set."""
    if value is None:
        raise Misconfigured(name, "is not set: `reverie up` sets it, or give an address of yours")
    return value.get_secret_value()
