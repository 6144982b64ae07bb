"""Captures the log lines of the test process."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def taken_down() -> Iterator[io.StringIO]:
    """A stream that logs may be configured to write to; as they were, they are put back after."""
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
