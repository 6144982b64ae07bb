"""Field types and validators of the settings, and access to required secrets."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from reverie.domain.core.errors import Misconfigured

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1)]
Quota = Annotated[int, Field(ge=0, le=2**53)]
AuditMode = Literal["off", "writes", "all"]
ReviewMode = Literal["off", "propose", "apply"]


def _check_web_url(url: str) -> str:
    if re.match(r"https?://[^/\s]", url) is None:
        raise ValueError("must begin with http:// or https://")
    return url


WebUrl = Annotated[str, AfterValidator(_check_web_url)]


def check_scheme(url: SecretStr | None, *schemes: str) -> SecretStr | None:
    """Checks the URL and returns it; raises `ValueError` if it begins with none of the schemes."""
    if url is not None and not url.get_secret_value().startswith(schemes):
        raise ValueError(f"must begin with {' or '.join(schemes)}")
    return url


def is_header_safe(key: str) -> bool:
    """Whether a header can carry the key as it is: printable ASCII without spaces."""
    return bool(key) and all("!" <= char <= "~" for char in key)


def secret_text(value: SecretStr | None) -> str | None:
    """Returns the text of a secret setting; None if it is not set."""
    return None if value is None else value.get_secret_value()


def require_secret(value: SecretStr | None, name: str) -> str:
    """Returns the text of a secret setting. Raises `Misconfigured` if it is not set."""
    if value is None:
        raise Misconfigured(name, "is not set: `reverie up` sets it, or give an address of yours")
    return value.get_secret_value()
