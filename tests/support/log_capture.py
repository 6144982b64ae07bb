"""Captures the log lines of the test process."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict


@contextmanager
def restored_logging() -> Iterator[io.StringIO]:
    """A stream for log lines; the logging configuration is restored afterwards."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    try:
        yield io.StringIO()
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.getLogger("reverie").setLevel(logging.NOTSET)
        structlog.configure(**configured)
        structlog.contextvars.clear_contextvars()


@contextmanager
def capture_logs() -> Iterator[list[EventDict]]:
    """The log lines of every level, whatever level this process writes."""
    configured = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    try:
        with structlog.testing.capture_logs() as lines:
            yield lines
    finally:
        structlog.configure(wrapper_class=configured)
