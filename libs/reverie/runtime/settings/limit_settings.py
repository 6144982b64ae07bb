"""Settings of limits and quotas, of OpenID Connect, TLS and concurrency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from reverie.runtime.settings.field_types import Count, Quota, Seconds, WebUrl


class LimitSettings(BaseSettings):
    """Those of `Settings` that say how much is too much."""

    body_limit: Count = Field(1024 * 1024, description="bytes that a request's body may hold")
    git_limit: Count = Field(25 * 1024 * 1024, description="bytes that a git change may hold")
    rate_limit: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        0,
        description="requests a minute that a key may send, whatever replica answers; 0 is no "
        "limit, as for the next four; a key and a tenant may be given less",
    )
    tenant_rate_limit: Annotated[int, Field(ge=0, le=100_000_000)] = Field(
        0, description="requests a minute that all keys of a tenant may send together"
    )
    tenant_daily_requests: Quota = Field(
        0, description="requests that all keys of a tenant may send a day (UTC)"
    )
    tenant_daily_memories: Quota = Field(
        0, description="memories that all keys of a tenant may write a day (UTC)"
    )
    tenant_daily_bytes: Quota = Field(
        0, description="bytes that all keys of a tenant may send in bodies a day (UTC)"
    )
    import_limit: Count = Field(
        1024 * 1024 * 1024, description="bytes that a file to be imported may hold"
    )
    transfer_timeout: Seconds = Field(3600.0, description="seconds that an import may take")
    max_concurrent_exports: Count = Field(
        4,
        description="exports that one gateway sends at once, and half of pool_max at most, for "
        "each keeps a connection; more are refused (503)",
    )
    content_limit: Count = Field(65_536, description="bytes that the content of a memory may hold")
    turn_limit: Count = Field(262_144, description="bytes that the content of a turn may hold")
    tool_output_chars: Count = Field(
        600, description="characters kept of a tool's output; the rest is cut on arrival"
    )
    max_event_watchers: Count = Field(100, description="clients that may watch one ingest at once")
    request_timeout: Seconds = Field(30.0, description="seconds that a request may take")
    shutdown_timeout: Seconds = Field(
        6.0, description="seconds that requests in flight have to finish at shutdown"
    )
    oidc_issuer: str | None = Field(
        None,
        description="whose tokens (OpenID Connect, JWT) are taken beside keys; unset: nobody's",
    )
    oidc_audience: str | None = Field(None, description="the audience that tokens must name")
    oidc_jwks_url: WebUrl | None = Field(
        None, description="where the issuer publishes the keys that it signs with (JWKS)"
    )
    oidc_tenant_claim: str = Field("tenant", description="claim with the name of the tenant")
    oidc_role_claim: str = Field(
        "role", description="claim with the role: admin, writer, reader, ci; without it: reader"
    )
    oidc_reads_claim: str = Field("reads", description="claim with the scopes that may be read")
    oidc_writes_claim: str = Field(
        "writes", description="claim with the scopes that may be written"
    )
    oidc_default_scopes: str = Field(
        "",
        description="scopes of tokens that name none, separated by commas, as * for all; unset: "
        "none",
    )
    tls_source: Literal["files", "self-signed"] = Field(
        "files",
        description="where certificates of the services come from: files (tls_cert; without it no "
        "TLS), or self-signed: for trial, made and renewed by `reverie up` in the home folder",
    )
    tls_cert: Path | None = Field(
        None,
        description="a PEM file with the certificate (and its chain) for HTTP, read again when it "
        "is renewed; under `reverie up` that of the gateway",
    )
    tls_key: Path | None = Field(None, description="a PEM file with the key of tls_cert")
    ca_file: Path | None = Field(
        None,
        description="a PEM file with authorities that commands, hooks, MCP and services which call "
        "each other trust beside the system's; unset: that of the home folder, if it has one",
    )
    allowed_hosts: str = Field(
        "",
        description="names under which services are reached, separated by commas; others are "
        "refused; unset: any, but only localhost where they listen on this machine alone",
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
