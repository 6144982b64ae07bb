"""The language model of dreams, at the address of a stub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from reverie.inference.llm_client import LanguageModel, open_language_model
from reverie.inference.llm_endpoint import LanguageEndpoint, LanguageProvider
from reverie.store.platform.quotas import LlmUsageStore
from reverie_services.dream.dependencies import MaintenanceDependencies
from tests.dream.test_dream_worker import maintenance_parts
from tests.support.store_setup import Store


def build_endpoint(
    url: str, provider: LanguageProvider = "openai", timeout: float = 30.0
) -> LanguageEndpoint:
    address = f"{url}/v1" if provider == "openai" else url
    return LanguageEndpoint(provider, "stub", address, "key", timeout=timeout, retry_delay=0.0)


@asynccontextmanager
async def open_model(
    store: Store, url: str, provider: LanguageProvider = "openai", calls: int = 50
) -> AsyncIterator[LanguageModel]:
    """A model with a daily budget of so many calls."""
    usage = LlmUsageStore(store.db, calls, 100_000)
    async with open_language_model(
        build_endpoint(url, provider), usage, CollectorRegistry()
    ) as model:
        assert model is not None
        yield model


@asynccontextmanager
async def open_maintenance(
    store: Store, url: str, **settings: Any
) -> AsyncIterator[MaintenanceDependencies]:
    """The dependencies of maintenance with a model."""
    parts = maintenance_parts(store)
    async with open_model(store, url) as model:
        yield replace(parts, settings=replace(parts.settings, **settings), language_model=model)
