"""Metadata and keys of memories that only the services write: names, shapes, checks, parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

from pydantic import Field, TypeAdapter, ValidationError

from reverie.contracts.base import ResponseBody
from reverie.contracts.memories.typed_memories import FactDetails
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import Kind
from reverie.domain.staleness.commit_marks import COMMIT_SOURCE
from reverie.domain.text.index_terms import GENERATED_KEY_PREFIXES

_T = TypeVar("_T")

RESERVED_KEY_PREFIXES: Final = (*GENERATED_KEY_PREFIXES, "convention:", "learn:")
"""Beginnings of the keys that the services give to memories."""


class PromotionDetails(ResponseBody):
    """The merge that moved a memory from a branch to its project, and the dream (`run`)."""

    branch: str
    event: UUID
    commit: str
    run: UUID


RecordText = Annotated[str, Field(max_length=2_000)]
RecordTexts = Annotated[list[RecordText], Field(default_factory=list, max_length=100)]


class RefusedProposalBody(ResponseBody):
    """A proposal that was refused, and the reason in the user's words."""

    proposal: RecordText
    reason: RecordText = ""


class DecisionRecordBody(ResponseBody):
    """The parts of a decision record: the problem, what was decided, found and refused."""

    problem: RecordText = ""
    decided: RecordTexts
    found: RecordTexts
    refused: list[RefusedProposalBody] = Field(default_factory=list, max_length=100)


_FACT: Final = TypeAdapter(FactDetails)
_PROMOTION: Final = TypeAdapter(PromotionDetails)
RESERVED_METADATA: Final[Mapping[str, TypeAdapter[Any]]] = {
    "derived": TypeAdapter(Literal[True]),
    "fact": _FACT,
    "merged": TypeAdapter(list[dict[str, Any]]),
    "promoted": _PROMOTION,
    "record": TypeAdapter(DecisionRecordBody),
    "steps": TypeAdapter(list[str]),
    "tier_by": TypeAdapter(Literal["hand", "use"]),
}
"""Names in the metadata that the services read, and the shape of each value."""


def parse_promotion(value: object) -> PromotionDetails | None:
    """The promotion of a memory as stored; None if there is none or it is malformed."""
    return _parse_or_none(_PROMOTION, value)


def parse_fact(value: object) -> FactDetails | None:
    """The fact of a memory as stored; None if there is none or it is malformed."""
    return _parse_or_none(_FACT, value)


def check_own_fields(key: str | None, metadata: Mapping[str, Any]) -> None:
    """Checks the key and metadata that a caller gives. Raises `InvalidInput` naming the field."""
    if key is not None and key.lower().startswith(RESERVED_KEY_PREFIXES):
        raise InvalidInput(
            "key", f"keys beginning with {', '.join(RESERVED_KEY_PREFIXES)} are the system's own"
        )
    for name in RESERVED_METADATA:
        if name in metadata:
            raise InvalidInput(f"metadata.{name}", "is written by the system only: use other names")


def check_imported_fields(
    key: str | None, kind: Kind | None, source: str | None, metadata: Mapping[str, Any]
) -> None:
    """Checks the key and metadata of an exported memory.

    What the system wrote may come back, in the shape that the system gives it and under the kind
    of memory that has such a key. Raises `InvalidInput` naming the field.
    """
    for name, adapter in RESERVED_METADATA.items():
        if name in metadata and _parse_or_none(adapter, metadata[name]) is None:
            raise InvalidInput(f"metadata.{name}", "has not the shape that the system gives it")
    owners: Mapping[str, bool] = {
        "file:": kind is Kind.FILE,
        "entity:": kind is Kind.ENTITY,
        "topic:": kind is Kind.ENTITY,
        "session:": kind is Kind.SESSION,
        "learn:": "fact" in metadata,
        "commit:": source == COMMIT_SOURCE,
    }
    for prefix, is_owner in owners.items():
        if key is not None and key.lower().startswith(prefix) and not is_owner:
            raise InvalidInput("key", f"keys beginning with {prefix} are the system's own")


def replace_own_metadata(
    stored: Mapping[str, Any], replacement: Mapping[str, Any]
) -> dict[str, Any]:
    """The metadata after an edit: the caller's is replaced, the system's stays.

    What was read may be sent back. Raises `InvalidInput` for a changed value of the system's.
    """
    system = {name: stored[name] for name in RESERVED_METADATA if name in stored}
    own = {
        name: value
        for name, value in replacement.items()
        if name not in system or system[name] != value
    }
    check_own_fields(None, own)
    return {**own, **system}


def _parse_or_none(adapter: TypeAdapter[_T], value: object) -> _T | None:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None
