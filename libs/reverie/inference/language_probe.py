"""Whether a language model's endpoint answers, without asking the model anything."""

from __future__ import annotations

import ssl
import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError

import truststore

from reverie.inference.asking import LanguageEndpoint

SECONDS = 5.0


def trouble_of(endpoint: LanguageEndpoint) -> str | None:
    """What is wrong with the endpoint, None where it answers: it is asked for its models."""
    path = "/v1/models" if endpoint.provider == "anthropic" else "/models"
    request = urllib.request.Request(  # noqa: S310 (the setting admits http and https only)
        endpoint.url + path, headers=_headers(endpoint)
    )
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS, context=context):  # noqa: S310
            return None
    except HTTPError as error:
        error.close()
        if error.code in {401, 403}:
            return f"refuses the key ({error.code})"
        # Not every compatible endpoint lists its models.
        return None if error.code in {404, 405, 501} else f"answers {error.code}"
    except (OSError, HTTPException) as error:
        return f"does not answer ({getattr(error, 'reason', None) or type(error).__name__})"


def _headers(endpoint: LanguageEndpoint) -> dict[str, str]:
    if endpoint.provider == "anthropic":
        return {"x-api-key": endpoint.key or "", "anthropic-version": "2023-06-01"}
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
