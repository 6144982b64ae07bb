"""Types of settings, and what their values must look like."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[int, Field(ge=0, le=2**53)]
Share = Annotated[float, Field(ge=0, le=1)]
ReviewMode = Literal["off", "propose", "apply"]


def _web(url: str) -> str:
    if re.match(r"https?://[^/\s]", url) is None:
        raise ValueError("must begin with http:// or https://")
    return url


WebUrl = Annotated[str, AfterValidator(_web)]


def with_scheme(url: SecretStr | None, *schemes: str) -> SecretStr | None:
    """The URL; raises `ValueError` where it begins with none of the schemes."""
    if url is not None and not url.get_secret_value().startswith(schemes):
        raise ValueError(f"must begin with {' or '.join(schemes)}")
    return url


def is_header_safe(key: str) -> bool:
    """Whether a header can carry the key as it is: printable ASCII without spaces."""
    return bool(key) and all("!" <= char <= "~" for char in key)
