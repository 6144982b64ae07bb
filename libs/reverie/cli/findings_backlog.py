"""What `reverie doctor` looks at of work that waits or was given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reverie.cli.finding import Finding
from reverie.cli.metering import Scrape, scrape_all
from reverie.cli.parts import look
from reverie.embedded.home import Home
from reverie.inference.catalogue import MULTILINGUAL_MODEL
from reverie.runtime.settings import Settings

OLD_SECONDS = 120.0
MANY = 1000


def backlog(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """What the services that run tell of their queues, models and losses."""
    view = look(settings)
    told = scrape_all({p.name: p.address for p in view.parts if p.address.startswith("http")})
    if not any(one.values for one in told.values()):
        return
    found = list(wrong(told))
    yield from found or [Finding("ok", "nothing waits too long, and nothing was given up")]


def wrong(told: Mapping[str, Scrape]) -> Iterable[Finding]:
    def largest(name: str) -> float:
        return max((one.one(name) or 0.0 for one in told.values()), default=0.0)

    if (letters := largest("reverie_dead_letters")) > 0:
        mend = "See `reverie dead list`; once the cause is mended, `reverie dead replay`."
        yield Finding("note", f"{letters:.0f} dead letters", mend)
    if (age := largest("reverie_outbox_oldest_seconds")) > OLD_SECONDS:
        mend = "Is NATS reached? The log of ingest says why publishing fails."
        yield Finding("error", f"an event waits for {age:.0f} s to be published", mend)
    if (parked := largest("reverie_dreams_parked")) > 0:
        mend = "`reverie dream history` says why; `reverie dream run --scope SCOPE` asks again."
        yield Finding("note", f"{parked:.0f} dreams were given up", mend)
    if (behind := largest("reverie_memories_unenriched")) > MANY:
        mend = "Is the model there? Else let more of ingest run."
        yield Finding("note", f"{behind:,.0f} memories have no vectors or edges yet", mend)
    if (lost := largest("reverie_audit_lost_total")) > 0:
        mend = "The log line audit_lost says why."
        yield Finding("error", f"{lost:.0f} calls are missing in the audit log", mend)
    if largest("reverie_tenants_unread") > 0:
        what = "memories are mostly Chinese, Japanese or Korean, which their model does not read"
        name = MULTILINGUAL_MODEL
        mend = (
            f"`reverie models pull {name}`, where ingest cannot fetch it: then it moves them. Where"
            f" model_by_letters is off, `reverie reembed --tenant NAME --set model={name}`."
        )
        yield Finding("note", what, mend)
    yield from _models(told)


def _models(told: Mapping[str, Scrape]) -> Iterable[Finding]:
    for service, one in told.items():
        for labels, there in one.each("reverie_model_loaded"):
            if not there:
                what = f"{service} works without {labels['model']}"
                mend = f"Run `reverie models pull {labels['model']}`; it is tried each minute."
                yield Finding("note", what, mend)
