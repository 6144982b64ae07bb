"""Structured logging: JSON or console lines with trace ids, redacted on the way out."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TextIO

import structlog
from aiohttp.http import HttpProcessingError
from cachetools import LRUCache
from opentelemetry import trace
from structlog.typing import EventDict, Processor, WrappedLogger

from reverie.domain.redaction.vault_secrets import SecretMatcher
from reverie.domain.text.control_characters import strip_control_characters
from reverie.runtime.settings.settings import Settings

Redact = Callable[[str], str]

current_service: ContextVar[str | None] = ContextVar("current_service", default=None)
"""The service that this code runs for, in a process of several. Tasks inherit it."""

_hidden_version = 0
"""The number of changes of the hidden secrets."""
_MAX_HIDDEN_TENANTS = 256
_hidden_secrets: LRUCache[int, SecretMatcher] = LRUCache(_MAX_HIDDEN_TENANTS)
_tenant_numbers: LRUCache[str, int] = LRUCache(_MAX_HIDDEN_TENANTS)
"""The numbers of tenants by the names that log lines have."""
_CACHED_TEXT_LENGTH, _CACHE_SIZE = 64, 1024
_SAFE_FIELD_PATTERN = re.compile(
    r"trace_id [0-9a-f]{32}|span_id [0-9a-f]{16}|timestamp [-0-9T:.]{19,26}Z"
)
_SAFE_FIELDS = frozenset({"trace_id", "span_id", "timestamp"})
"""Fields that this module adds to every line; their values vary and contain no secrets."""

_URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):([^\s/@]+)@")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s'\",;]+")
_ROOT_LOGGER_NAME = "reverie"


def configure_logs(
    settings: Settings,
    process: str,
    redact: Redact | None = None,
    stream: TextIO | None = None,
) -> None:
    """Sets up structlog and the root logger of this process; a second call replaces the first.

    Each line names the service that it is of, or else the `process`. `redact` is applied to every
    string on its way out, tracebacks included.
    """
    output = stream or sys.stderr
    shared_processors = _shared_processors(process)
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared_processors,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _RedactingProcessor(redact),
                _renderer(settings, output),
            ],
        )
    )
    _route_standard_library(handler, settings.log_level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared_processors,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def hide_secrets(tenant: int, secrets: SecretMatcher) -> None:
    """Hides these secrets in later log lines of this tenant, and in lines that name no tenant.

    So the secrets of a tenant cost the lines of another nothing. The setting applies to the whole
    process, for the tenants seen most recently.
    """
    global _hidden_version
    name = structlog.contextvars.get_contextvars().get("tenant")
    if name is not None:
        _tenant_numbers[name] = tenant
    if _hidden_secrets.get(tenant) is secrets:
        return
    _hidden_version += 1
    _hidden_secrets.pop(tenant, None)
    if secrets:
        _hidden_secrets[tenant] = secrets


def _mask_hidden_secrets(text: str, tenant: int | None) -> str:
    hidden = _hidden_secrets.items()
    for secrets in [matcher for number, matcher in hidden if tenant in {None, number}]:
        text, _ = secrets.redact(text)
    return text


def mask_credentials(text: str) -> str:
    """Hides what is a credential by its place alone: passwords in URLs and bearer keys."""
    return _BEARER.sub(r"\1***", _URL_PASSWORD.sub(r"\1:***@", text))


def _shared_processors(process: str) -> list[Processor]:
    def add_service(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.setdefault("service", current_service.get() or process)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        add_service,
        _add_trace,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _add_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event.setdefault("trace_id", trace.format_trace_id(context.trace_id))
        event.setdefault("span_id", trace.format_span_id(context.span_id))
    return event


class _RedactingProcessor:
    """The last processor before rendering: no string passes unseen."""

    def __init__(self, redact: Redact | None) -> None:
        self._redact = redact
        # Routes, levels and names come again and again; what is hidden seldom changes.
        self._mask_cached = lru_cache(_CACHE_SIZE)(lambda text, tenant, _: self._mask(text, tenant))

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        tenant = _tenant_numbers.get(str(event.get("tenant")))
        return {
            key: value
            if key in _SAFE_FIELDS and _SAFE_FIELD_PATTERN.fullmatch(f"{key} {value}")
            else self._redact_value(value, tenant)
            for key, value in event.items()
        }

    def _redact_value(self, value: Any, tenant: int | None) -> Any:
        if isinstance(value, bool | int | float | None):
            return value
        if isinstance(value, Mapping):
            return {
                self._redact_text(str(key), tenant): self._redact_value(item, tenant)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._redact_value(item, tenant) for item in value]
        return self._redact_text(value if isinstance(value, str) else str(value), tenant)

    def _redact_text(self, text: str, tenant: int | None) -> str:
        return (
            self._mask_cached(text, tenant, _hidden_version)
            if len(text) <= _CACHED_TEXT_LENGTH
            else self._mask(text, tenant)
        )

    def _mask(self, text: str, tenant: int | None) -> str:
        masked = mask_credentials(_mask_hidden_secrets(strip_control_characters(text), tenant))
        return self._redact(masked) if self._redact else masked


def _renderer(settings: Settings, out: TextIO) -> Processor:
    if (settings.log_format or ("console" if out.isatty() else "json")) == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


def _route_standard_library(handler: logging.Handler, level: str) -> None:
    root = logging.getLogger()
    for existing in [
        existing_handler
        for existing_handler in root.handlers
        if isinstance(existing_handler.formatter, _Formatter)
    ]:
        root.removeHandler(existing)
    root.addHandler(handler)
    logging.getLogger(_ROOT_LOGGER_NAME).setLevel(level)
    # Libraries log each of their steps, some with full payloads: memories and questions.
    root.setLevel(max(logging.getLogger(_ROOT_LOGGER_NAME).level, logging.WARNING))
    logging.getLogger("aiohttp.server").addFilter(_downgrade_protocol_errors)
    logging.captureWarnings(True)


def _downgrade_protocol_errors(record: logging.LogRecord) -> bool:
    """Logs malformed HTTP at a lower level without quoting it, because it may contain a key."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


_Formatter = structlog.stdlib.ProcessorFormatter
