"""Settings of limits: sizes, rates, quotas, time and concurrency."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from reverie.runtime.settings.field_types import Count, Quota, Seconds


class LimitSettings(BaseSettings):
    """The settings of `Settings` that are limits."""

    body_limit: Count = Field(1024 * 1024, description="largest request body, in bytes")
    large_body_limit: Count = Field(
        25 * 1024 * 1024,
        description="largest body of a git change, of documents, of a picture, or of a message to"
        " agents with its images, in bytes",
    )
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
    tenant_memories: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0,
        description="active memories that a tenant may have; beyond that a new one is refused; 0"
        " means no limit; a tenant can have a lower one",
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
    engine_concurrency: Count = Field(100, description="turns that one engine process runs at once")
    engine_daily_tokens: Quota = Field(
        5_000_000, description="tokens a day (UTC) that a tenant's agents may use; 0 is no limit"
    )
    engine_daily_usd: Annotated[float, Field(ge=0)] = Field(
        20.0, description="dollars a day (UTC) that a tenant's agents may spend; 0 is no limit"
    )
    engine_chain_tokens: Quota = Field(
        1_000_000, description="tokens that one message may cause in all its turns; 0 is no limit"
    )
    engine_chain_usd: Annotated[float, Field(ge=0)] = Field(
        5.0, description="dollars that one message may cause in all its turns; 0 is no limit"
    )
    request_timeout: Seconds = Field(30.0, description="seconds that a request may take")
    shutdown_timeout: Seconds = Field(
        6.0, description="seconds that running requests have to finish at shutdown"
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
