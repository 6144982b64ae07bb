"""Logs that a context block fills its budget, for whoever sets the budgets."""

from __future__ import annotations

import structlog

from reverie.domain.context.context_block import ContextBlock

log = structlog.get_logger("reverie.context")


def log_nearly_full(block: ContextBlock, project: str | None) -> None:
    """Logs each limit of the block of which 80 % or more are used."""
    for warning in block.warnings:
        log.info("context_nearly_full", project=project, **vars(warning))
