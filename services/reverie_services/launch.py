"""Says which services each process of `reverie serve` runs, and with which settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module

from reverie.runtime.service import Service, ServiceLaunch
from reverie.runtime.settings.settings import Settings
from reverie_services.startup import build_model_manager

SERVICES = ("ingest", "dream", "staleness", "recall")
ALL = "all"
"""The four services, and the engine where it is enabled, in one process, for one machine."""
DERIVE = "derive"
"""The services that no request waits for: all model work on memories and sessions."""
IDLE_MODEL_SECONDS = 120.0
"""Seconds without work after which `derive` frees its models; to load them again takes one."""


def list_launches(process: str, settings_for: Callable[[str], Settings]) -> list[ServiceLaunch]:
    """The services of a process: of `all`, of `derive`, or the one of that name."""
    if process == ALL:
        return _launch_all(settings_for)
    if process == DERIVE:
        return _launch_derivation(settings_for)
    return [ServiceLaunch(process, _factory(process), settings_for(process))]


def _factory(name: str) -> Callable[..., AbstractAsyncContextManager[Service]]:
    # Services import much: a process imports those that it runs.
    factory: Callable[..., AbstractAsyncContextManager[Service]]
    factory = import_module(f"reverie_services.{name}.app").open_service
    return factory


def _launch_all(settings_for: Callable[[str], Settings]) -> list[ServiceLaunch]:
    """Launches all services; `derive` does the model work, unless `ingest_role` is `both`."""
    names = [*SERVICES, *(["engine"] if settings_for("recall").engine_enabled else [])]
    settings = {name: settings_for(name) for name in names}
    factories = {name: _factory(name) for name in names}
    if settings["ingest"].ingest_role != "both":
        changes = {"ingest_role": "api", "dream_worker_enabled": False}
        settings = {name: each.model_copy(update=changes) for name, each in settings.items()}
        models = build_model_manager(settings["recall"], settings["recall"].recall_sparse)
        for name in ("ingest", "recall"):
            factories[name] = partial(factories[name], model_manager=models)
    return [ServiceLaunch(name, factories[name], settings[name]) for name in names]


def _launch_derivation(settings_for: Callable[[str], Settings]) -> list[ServiceLaunch]:
    """Launches the enrichment of ingest and the dream worker, with one copy of the models."""
    ingest = settings_for("ingest").model_copy(update={"ingest_role": DERIVE})
    models = build_model_manager(ingest, ingest.recall_sparse)
    models.release_after = IDLE_MODEL_SECONDS
    open_ingest = partial(_factory("ingest"), model_manager=models)
    open_dream = partial(_factory("dream"), shared_models=models)
    return [
        ServiceLaunch("ingest", open_ingest, ingest),
        ServiceLaunch("dream", open_dream, settings_for("dream")),
    ]
