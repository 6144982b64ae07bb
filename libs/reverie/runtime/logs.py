"""Log lines: constant event strings, data in keywords, as JSON or for a console.

Lines of the standard library's loggers take the same way. Each line carries the trace
and span in whose course it was written and what was bound to the context (the tenant).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TextIO

import structlog
from aiohttp.http import HttpProcessingError
from opentelemetry import trace
from structlog.typing import EventDict, Processor, WrappedLogger

from reverie.domain.known_secrets import Known
from reverie.runtime.settings import Settings

Redact = Callable[[str], str]

_hidden: dict[int, Known] = {}
_hidings = 0
"""How often that changed."""
_MOST_HIDDEN = 256
_SHORT, _KEPT = 64, 1024
_OWN = re.compile(r"trace_id [0-9a-f]{32}|span_id [0-9a-f]{16}|timestamp [-0-9T:.]{19,26}Z")
_MADE = frozenset({"trace_id", "span_id", "timestamp"})
"""What this module puts into every line itself: another each time, and nothing to hide."""

_URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):([^\s/@]+)@")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s'\",;]+")
_OURS = "reverie"


def configure_logs(
    settings: Settings,
    service: str,
    redact: Redact | None = None,
    stream: TextIO | None = None,
) -> None:
    """Sets up structlog and the root logger of this process; a second call replaces the first.

    `redact` is applied to every string on its way out, tracebacks included.
    """
    out = stream or sys.stderr
    shared = _shared_processors(service)
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _Redactor(redact),
                _renderer(settings, out),
            ],
        )
    )
    _route_standard_library(handler, settings.log_level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def hide(tenant: int, known: Known) -> None:
    """From now on no log line of this process holds these secrets, whoever writes it.

    Like the logs' configuration this holds for the process; of the tenants last seen.
    """
    global _hidings
    _hidings += 1
    _hidden.pop(tenant, None)
    if known:
        _hidden[tenant] = known
    while len(_hidden) > _MOST_HIDDEN:
        del _hidden[next(iter(_hidden))]


def _without_hidden(text: str) -> str:
    for known in list(_hidden.values()):
        text, _ = known.taken_out(text, lambda _: False)
    return text


def mask_credentials(text: str) -> str:
    """Hides what is a credential by its place alone: passwords in URLs and bearer keys."""
    return _BEARER.sub(r"\1***", _URL_PASSWORD.sub(r"\1:***@", text))


def _shared_processors(service: str) -> list[Processor]:
    def add_service(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
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


class _Redactor:
    """The last processor before rendering: no string passes unseen."""

    def __init__(self, redact: Redact | None) -> None:
        self._redact = redact
        # Routes, levels and names come again and again; what is hidden seldom changes.
        self._short = lru_cache(_KEPT)(lambda text, _: self._whole(text))

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {
            key: value if key in _MADE and _OWN.fullmatch(f"{key} {value}") else self._clean(value)
            for key, value in event.items()
        }

    def _clean(self, value: Any) -> Any:
        if isinstance(value, bool | int | float | None):
            return value
        if isinstance(value, Mapping):
            return {self._text(str(key)): self._clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._clean(item) for item in value]
        return self._text(value if isinstance(value, str) else str(value))

    def _text(self, text: str) -> str:
        return self._short(text, _hidings) if len(text) <= _SHORT else self._whole(text)

    def _whole(self, text: str) -> str:
        masked = mask_credentials(_without_hidden(text))
        return self._redact(masked) if self._redact else masked


def _renderer(settings: Settings, out: TextIO) -> Processor:
    if (settings.log_format or ("console" if out.isatty() else "json")) == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


def _route_standard_library(handler: logging.Handler, level: str) -> None:
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h.formatter, _Formatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    logging.getLogger(_OURS).setLevel(level)
    # Libraries tell each step of theirs, some with all that is sent: memories and questions.
    root.setLevel(max(logging.getLogger(_OURS).level, logging.WARNING))
    logging.getLogger("aiohttp.server").addFilter(_no_fault_of_ours)
    logging.captureWarnings(True)


def _no_fault_of_ours(record: logging.LogRecord) -> bool:
    """What is no HTTP at all gets a quiet line that quotes nothing of it: it may hold a key."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


_Formatter = structlog.stdlib.ProcessorFormatter
