"""Settings of limits and quotas, of OpenID Connect, TLS and concurrency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from reverie.runtime.settings.field_types import Count, Quota, Seconds, WebUrl

ClaimName = Literal["tenant", "role", "reads", "writes"]


class LimitSettings(BaseSettings):
    """The settings of `Settings` that are limits."""

    body_limit: Count = Field(1024 * 1024, description="largest request body, in bytes")
    git_limit: Count = Field(25 * 1024 * 1024, description="largest body of a git change, in bytes")
    rate_limit: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        0,
        description="requests a minute that one key may send to all replicas together; 0 means no"
        " limit here and in the next four settings; a key or a tenant can have a "
        "stricter limit",
    )
    tenant_rate_limit: Annotated[int, Field(ge=0, le=100_000_000)] = Field(
        0, description="requests a minute that all keys of a tenant may send together"
    )
    tenant_daily_requests: Quota = Field(
        0, description="requests a day (UTC) that all keys of a tenant may send together"
    )
    tenant_daily_memories: Quota = Field(
        0, description="memories a day (UTC) that all keys of a tenant may write together"
    )
    tenant_daily_bytes: Quota = Field(
        0, description="bytes a day (UTC) that all keys of a tenant may send in request bodies"
    )
    import_limit: Count = Field(1024 * 1024 * 1024, description="largest file to import, in bytes")
    transfer_timeout: Seconds = Field(
        3600.0, description="seconds that an import or export may take"
    )
    content_limit: Count = Field(65_536, description="largest content of a memory, in bytes")
    turn_limit: Count = Field(262_144, description="largest content of a turn, in bytes")
    max_event_watchers: Count = Field(
        100,
        description="clients that may watch the events of one ingest process at once: a quarter of "
        "them of one key, three quarters of one tenant",
    )
    request_timeout: Seconds = Field(30.0, description="seconds that a request may take")
    shutdown_timeout: Seconds = Field(
        6.0, description="seconds that running requests have to finish at shutdown"
    )
    oidc_issuer: str | None = Field(
        None,
        description="OpenID Connect issuer whose tokens (JWT) are accepted beside keys; unset: "
        "none",
    )
    oidc_audience: str | None = Field(None, description="audience that tokens must name")
    oidc_jwks_url: WebUrl | None = Field(None, description="URL of the issuer's public keys (JWKS)")
    oidc_claims: dict[ClaimName, str] = Field(
        {},
        description='claims of a token by what they hold, as {"tenant": "realm_access.tenant"}: '
        "tenant (its name), role (admin, writer, reader, ci), reads and writes (scopes); unset: "
        "claims of these names, and a token without a role is a reader",
    )
    oidc_default_scopes: str = Field(
        "",
        description="scopes of tokens that name none, separated by commas; * is all; unset: none",
    )
    tls_source: Literal["files", "self-signed"] = Field(
        "files",
        description="where certificates come from: files (tls_cert; without it there is no TLS), "
        "or self-signed (for trial: `reverie up` makes and renews them in the home "
        "folder)",
    )
    tls_cert: Path | None = Field(
        None,
        description="PEM file with the certificate for HTTP and its chain; it is read again when "
        "it changes; under `reverie up` it is the gateway's",
    )
    tls_key: Path | None = Field(None, description="PEM file with the private key of tls_cert")
    ca_file: Path | None = Field(
        None,
        description="PEM file with authorities that clients and services trust beside the "
        "system's; unset: that of the home folder, if it has one",
    )
    allowed_hosts: str = Field(
        "",
        description="host names that requests may name, separated by commas; * is any; unset: "
        "addresses, names without a dot and private ones (.svc, .local, .internal), or only "
        "localhost where the services listen on localhost",
    )
    max_concurrent_requests: Count = Field(
        32,
        description="requests that one process handles at once; the gateway counts its own and "
        "those of each service behind it separately",
    )
    request_queue: Annotated[int, Field(ge=0, le=100_000)] = Field(
        256, description="requests that may wait to be handled; more are refused with 503"
    )
    request_queue_timeout: Seconds = Field(
        2.0, description="seconds that a request may wait before it is refused with 503"
    )
