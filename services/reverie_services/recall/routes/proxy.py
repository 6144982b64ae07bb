"""Routes that the gateway passes on to the other services, so that agents need one address."""

from __future__ import annotations

from reverie.runtime.http.reverse_proxy import ProxyRoute
from reverie_services.recall.settings import RecallSettings


def build_proxy_routes(settings: RecallSettings) -> list[ProxyRoute]:
    """The paths that are passed on, and to which service."""
    to_ingest = (
        "/v1/admin",
        "/v1/claims",
        "/v1/links",
        "/v1/memories/{id}",
        "/v1/projects",
        "/v1/remember",
        "/v1/reviews",
        "/v1/sessions",
        "/v1/tasks",
        "/v1/turns",
        "/v1/vault",
    )
    to_dream = ("/v1/dream", "/v1/dreams")
    to_staleness = ("/v1/stale",)
    return [
        *(ProxyRoute(prefix, "ingest", settings.ingest_url) for prefix in to_ingest),
        ProxyRoute("/v1/events", "ingest", settings.ingest_url, endless=True),
        ProxyRoute(
            "/v1/import",
            "ingest",
            settings.ingest_url,
            settings.import_limit,
            settings.transfer_timeout,
        ),
        ProxyRoute(
            "/v1/git",
            "staleness",
            settings.staleness_url,
            body_limit=settings.git_limit,
            body_limit_setting="git_limit",
        ),
        *(ProxyRoute(prefix, "dream", settings.dream_url) for prefix in to_dream),
        *(ProxyRoute(prefix, "staleness", settings.staleness_url) for prefix in to_staleness),
    ]
