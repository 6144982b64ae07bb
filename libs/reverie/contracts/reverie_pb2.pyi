import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Problem(_message.Message):
    __slots__ = ("type", "title", "status", "detail", "code", "field", "instance", "trace_id", "errors", "current")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str
    instance: str
    trace_id: str
    errors: _containers.RepeatedCompositeFieldContainer[FieldProblem]
    current: _struct_pb2.Struct
    def __init__(self, type: _Optional[str] = ..., title: _Optional[str] = ..., status: _Optional[int] = ..., detail: _Optional[str] = ..., code: _Optional[str] = ..., field: _Optional[str] = ..., instance: _Optional[str] = ..., trace_id: _Optional[str] = ..., errors: _Optional[_Iterable[_Union[FieldProblem, _Mapping]]] = ..., current: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class FieldProblem(_message.Message):
    __slots__ = ("field", "reason")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    field: str
    reason: str
    def __init__(self, field: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RememberRequest(_message.Message):
    __slots__ = ("content", "kind", "scope", "key", "supersede_reason", "soft", "tags", "session", "edges", "confidence", "pinned", "valid_from", "valid_to", "git", "metadata", "summary", "steps", "idempotency_key")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDE_REASON_FIELD_NUMBER: _ClassVar[int]
    SOFT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    content: str
    kind: str
    scope: str
    key: str
    supersede_reason: str
    soft: bool
    tags: _containers.RepeatedScalarFieldContainer[str]
    session: str
    edges: _containers.RepeatedCompositeFieldContainer[EdgeTo]
    confidence: float
    pinned: bool
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    git: _struct_pb2.Struct
    metadata: _struct_pb2.Struct
    summary: str
    steps: _containers.RepeatedScalarFieldContainer[str]
    idempotency_key: str
    def __init__(self, content: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., supersede_reason: _Optional[str] = ..., soft: _Optional[bool] = ..., tags: _Optional[_Iterable[str]] = ..., session: _Optional[str] = ..., edges: _Optional[_Iterable[_Union[EdgeTo, _Mapping]]] = ..., confidence: _Optional[float] = ..., pinned: _Optional[bool] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., git: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., summary: _Optional[str] = ..., steps: _Optional[_Iterable[str]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class EdgeTo(_message.Message):
    __slots__ = ("to", "type", "weight", "metadata")
    TO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    to: str
    type: str
    weight: float
    metadata: _struct_pb2.Struct
    def __init__(self, to: _Optional[str] = ..., type: _Optional[str] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Remembered(_message.Message):
    __slots__ = ("id", "status", "version", "redactions", "hints")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: str
    version: int
    redactions: int
    hints: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., status: _Optional[str] = ..., version: _Optional[int] = ..., redactions: _Optional[int] = ..., hints: _Optional[_Iterable[str]] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("query", "scopes", "project", "limit", "budget_tokens", "depth", "kinds", "tiers", "tags", "files", "min_confidence", "since", "until", "include", "session", "as_of", "valid_at")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    VALID_AT_FIELD_NUMBER: _ClassVar[int]
    query: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    project: str
    limit: int
    budget_tokens: int
    depth: int
    kinds: _containers.RepeatedScalarFieldContainer[str]
    tiers: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    min_confidence: float
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    include: _containers.RepeatedScalarFieldContainer[str]
    session: str
    as_of: _timestamp_pb2.Timestamp
    valid_at: _timestamp_pb2.Timestamp
    def __init__(self, query: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., limit: _Optional[int] = ..., budget_tokens: _Optional[int] = ..., depth: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ..., tiers: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., min_confidence: _Optional[float] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include: _Optional[_Iterable[str]] = ..., session: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("memories", "edges", "search_mode", "degraded", "tokens", "intent", "trace_id")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MODE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[Recalled]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    search_mode: str
    degraded: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    intent: str
    trace_id: str
    def __init__(self, memories: _Optional[_Iterable[_Union[Recalled, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., search_mode: _Optional[str] = ..., degraded: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ..., intent: _Optional[str] = ..., trace_id: _Optional[str] = ...) -> None: ...

class Recalled(_message.Message):
    __slots__ = ("id", "type", "content", "snippet", "score", "kind", "scope", "key", "tags", "status", "staleness", "stale_reason", "created_at", "provenance", "arms")
    class ArmsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SNIPPET_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    STALE_REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    ARMS_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    content: str
    snippet: str
    score: float
    kind: str
    scope: str
    key: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    status: str
    staleness: float
    stale_reason: str
    created_at: _timestamp_pb2.Timestamp
    provenance: Provenance
    arms: _containers.ScalarMap[str, int]
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., content: _Optional[str] = ..., snippet: _Optional[str] = ..., score: _Optional[float] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., status: _Optional[str] = ..., staleness: _Optional[float] = ..., stale_reason: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., arms: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("source", "session", "agent", "turns", "git")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    source: str
    session: str
    agent: str
    turns: _containers.RepeatedScalarFieldContainer[str]
    git: _struct_pb2.Struct
    def __init__(self, source: _Optional[str] = ..., session: _Optional[str] = ..., agent: _Optional[str] = ..., turns: _Optional[_Iterable[str]] = ..., git: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("id", "to", "type", "weight", "metadata", "known_from", "known_to", "who")
    ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FROM_FIELD_NUMBER: _ClassVar[int]
    KNOWN_TO_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    id: str
    to: str
    type: str
    weight: float
    metadata: _struct_pb2.Struct
    known_from: _timestamp_pb2.Timestamp
    known_to: _timestamp_pb2.Timestamp
    who: str
    def __init__(self, id: _Optional[str] = ..., to: _Optional[str] = ..., type: _Optional[str] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., known_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., known_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., who: _Optional[str] = ..., **kwargs) -> None: ...

class ContextRequest(_message.Message):
    __slots__ = ("session", "project", "scope", "files", "budget_tokens")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session: str
    project: str
    scope: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    def __init__(self, session: _Optional[str] = ..., project: _Optional[str] = ..., scope: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class ContextResponse(_message.Message):
    __slots__ = ("markdown", "tokens", "memories", "sections", "more", "summaries", "degraded")
    class SummariesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MARKDOWN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    markdown: str
    tokens: int
    memories: _containers.RepeatedScalarFieldContainer[str]
    sections: _containers.RepeatedCompositeFieldContainer[ContextSection]
    more: bool
    summaries: _containers.ScalarMap[str, str]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, markdown: _Optional[str] = ..., tokens: _Optional[int] = ..., memories: _Optional[_Iterable[str]] = ..., sections: _Optional[_Iterable[_Union[ContextSection, _Mapping]]] = ..., more: _Optional[bool] = ..., summaries: _Optional[_Mapping[str, str]] = ..., degraded: _Optional[_Iterable[str]] = ...) -> None: ...

class ContextSection(_message.Message):
    __slots__ = ("name", "part", "tokens", "entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    part: str
    tokens: int
    entries: _containers.RepeatedCompositeFieldContainer[ContextEntry]
    def __init__(self, name: _Optional[str] = ..., part: _Optional[str] = ..., tokens: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[ContextEntry, _Mapping]]] = ...) -> None: ...

class ContextEntry(_message.Message):
    __slots__ = ("id", "kind", "scope", "key", "text", "tokens", "pinned", "stale_grade", "stale_reason", "why")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    STALE_GRADE_FIELD_NUMBER: _ClassVar[int]
    STALE_REASON_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    scope: str
    key: str
    text: str
    tokens: int
    pinned: bool
    stale_grade: str
    stale_reason: str
    why: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., text: _Optional[str] = ..., tokens: _Optional[int] = ..., pinned: _Optional[bool] = ..., stale_grade: _Optional[str] = ..., stale_reason: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class MemoryRequest(_message.Message):
    __slots__ = ("id", "as_of", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    as_of: _timestamp_pb2.Timestamp
    version: int
    def __init__(self, id: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("id", "short_id", "scope", "kind", "content", "key", "summary", "tags", "tier", "confidence", "base_confidence", "pinned", "status", "version", "staleness", "stale_grade", "provenance", "metadata", "created_at", "updated_at", "accessed_at", "access_count", "valid_from", "valid_to", "merged_from", "neighbours", "task")
    ID_FIELD_NUMBER: _ClassVar[int]
    SHORT_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    BASE_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    STALE_GRADE_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ACCESSED_AT_FIELD_NUMBER: _ClassVar[int]
    ACCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    MERGED_FROM_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    id: str
    short_id: str
    scope: str
    kind: str
    content: str
    key: str
    summary: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    tier: str
    confidence: float
    base_confidence: float
    pinned: bool
    status: str
    version: int
    staleness: float
    stale_grade: str
    provenance: Provenance
    metadata: _struct_pb2.Struct
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    accessed_at: _timestamp_pb2.Timestamp
    access_count: int
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    merged_from: str
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    task: TaskState
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., scope: _Optional[str] = ..., kind: _Optional[str] = ..., content: _Optional[str] = ..., key: _Optional[str] = ..., summary: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., tier: _Optional[str] = ..., confidence: _Optional[float] = ..., base_confidence: _Optional[float] = ..., pinned: _Optional[bool] = ..., status: _Optional[str] = ..., version: _Optional[int] = ..., staleness: _Optional[float] = ..., stale_grade: _Optional[str] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., accessed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., access_count: _Optional[int] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., merged_from: _Optional[str] = ..., neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., task: _Optional[_Union[TaskState, _Mapping]] = ...) -> None: ...

class Neighbour(_message.Message):
    __slots__ = ("id", "kind", "label", "type", "direction", "weight")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    label: str
    type: str
    direction: str
    weight: float
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., type: _Optional[str] = ..., direction: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class TaskState(_message.Message):
    __slots__ = ("state", "claimed_by", "claimed_until", "waits_for", "claimable")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_BY_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    CLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    state: str
    claimed_by: str
    claimed_until: _timestamp_pb2.Timestamp
    waits_for: _containers.RepeatedScalarFieldContainer[str]
    claimable: bool
    def __init__(self, state: _Optional[str] = ..., claimed_by: _Optional[str] = ..., claimed_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waits_for: _Optional[_Iterable[str]] = ..., claimable: _Optional[bool] = ...) -> None: ...

class Edited(_message.Message):
    __slots__ = ("id", "version", "changed", "redactions", "hints")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    changed: bool
    redactions: int
    hints: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., changed: _Optional[bool] = ..., redactions: _Optional[int] = ..., hints: _Optional[_Iterable[str]] = ...) -> None: ...

class LinkRequest(_message.Message):
    __slots__ = ("to", "type", "weight", "metadata", "idempotency_key")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    to: str
    type: str
    weight: float
    metadata: _struct_pb2.Struct
    idempotency_key: str
    def __init__(self, to: _Optional[str] = ..., type: _Optional[str] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., **kwargs) -> None: ...

class Linked(_message.Message):
    __slots__ = ("id", "created", "redactions")
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    created: bool
    redactions: int
    def __init__(self, id: _Optional[str] = ..., created: _Optional[bool] = ..., redactions: _Optional[int] = ...) -> None: ...

class UnlinkRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Unlinked(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class SubgraphRequest(_message.Message):
    __slots__ = ("id", "depth", "fan_out", "limit", "as_of", "include")
    ID_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    FAN_OUT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    id: str
    depth: int
    fan_out: int
    limit: int
    as_of: _timestamp_pb2.Timestamp
    include: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., depth: _Optional[int] = ..., fan_out: _Optional[int] = ..., limit: _Optional[int] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include: _Optional[_Iterable[str]] = ...) -> None: ...

class SubgraphResponse(_message.Message):
    __slots__ = ("root", "depth", "nodes", "edges", "truncated", "cut_by", "as_of")
    ROOT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    CUT_BY_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    root: str
    depth: int
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    truncated: bool
    cut_by: _containers.RepeatedScalarFieldContainer[str]
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, root: _Optional[str] = ..., depth: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., truncated: _Optional[bool] = ..., cut_by: _Optional[_Iterable[str]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "short_id", "kind", "label", "scope", "status", "key", "created_at", "depth")
    ID_FIELD_NUMBER: _ClassVar[int]
    SHORT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    id: str
    short_id: str
    kind: str
    label: str
    scope: str
    status: str
    key: str
    created_at: _timestamp_pb2.Timestamp
    depth: int
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., scope: _Optional[str] = ..., status: _Optional[str] = ..., key: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., depth: _Optional[int] = ...) -> None: ...

class ImpactRequest(_message.Message):
    __slots__ = ("path", "entity", "project", "limit")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    path: str
    entity: str
    project: str
    limit: int
    def __init__(self, path: _Optional[str] = ..., entity: _Optional[str] = ..., project: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ImpactResponse(_message.Message):
    __slots__ = ("path", "entity", "files", "entities", "items", "truncated")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    path: str
    entity: str
    files: _containers.RepeatedScalarFieldContainer[str]
    entities: _containers.RepeatedScalarFieldContainer[str]
    items: _containers.RepeatedCompositeFieldContainer[ImpactItem]
    truncated: bool
    def __init__(self, path: _Optional[str] = ..., entity: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ..., entities: _Optional[_Iterable[str]] = ..., items: _Optional[_Iterable[_Union[ImpactItem, _Mapping]]] = ..., truncated: _Optional[bool] = ...) -> None: ...

class ImpactItem(_message.Message):
    __slots__ = ("id", "short_id", "kind", "label", "scope", "score", "grade", "path", "staleness", "stale_grade", "evidence")
    ID_FIELD_NUMBER: _ClassVar[int]
    SHORT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    STALE_GRADE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    short_id: str
    kind: str
    label: str
    scope: str
    score: float
    grade: str
    path: _containers.RepeatedScalarFieldContainer[str]
    staleness: float
    stale_grade: str
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., scope: _Optional[str] = ..., score: _Optional[float] = ..., grade: _Optional[str] = ..., path: _Optional[_Iterable[str]] = ..., staleness: _Optional[float] = ..., stale_grade: _Optional[str] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("commit", "subject", "committed_at", "path", "change", "grade", "score", "way")
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    WAY_FIELD_NUMBER: _ClassVar[int]
    commit: str
    subject: str
    committed_at: _timestamp_pb2.Timestamp
    path: str
    change: str
    grade: str
    score: float
    way: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, commit: _Optional[str] = ..., subject: _Optional[str] = ..., committed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., path: _Optional[str] = ..., change: _Optional[str] = ..., grade: _Optional[str] = ..., score: _Optional[float] = ..., way: _Optional[_Iterable[str]] = ...) -> None: ...

class SessionStartRequest(_message.Message):
    __slots__ = ("agent", "project", "user", "branch", "external_id", "idempotency_key")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    agent: str
    project: str
    user: str
    branch: str
    external_id: str
    idempotency_key: str
    def __init__(self, agent: _Optional[str] = ..., project: _Optional[str] = ..., user: _Optional[str] = ..., branch: _Optional[str] = ..., external_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class SessionStarted(_message.Message):
    __slots__ = ("session", "scope", "context")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    session: str
    scope: str
    context: str
    def __init__(self, session: _Optional[str] = ..., scope: _Optional[str] = ..., context: _Optional[str] = ...) -> None: ...

class AppendTurnsRequest(_message.Message):
    __slots__ = ("session", "turns", "idempotency_key")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    session: str
    turns: _containers.RepeatedCompositeFieldContainer[NewTurn]
    idempotency_key: str
    def __init__(self, session: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[NewTurn, _Mapping]]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class NewTurn(_message.Message):
    __slots__ = ("role", "content", "at", "tool", "external_id")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    at: _timestamp_pb2.Timestamp
    tool: str
    external_id: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool: _Optional[str] = ..., external_id: _Optional[str] = ...) -> None: ...

class AppendedTurns(_message.Message):
    __slots__ = ("accepted", "duplicates", "redactions")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    duplicates: int
    redactions: int
    def __init__(self, accepted: _Optional[int] = ..., duplicates: _Optional[int] = ..., redactions: _Optional[int] = ...) -> None: ...

class SessionEndRequest(_message.Message):
    __slots__ = ("id", "summary", "idempotency_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    summary: str
    idempotency_key: str
    def __init__(self, id: _Optional[str] = ..., summary: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class SessionEnded(_message.Message):
    __slots__ = ("session", "dream")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    DREAM_FIELD_NUMBER: _ClassVar[int]
    session: str
    dream: DreamRequested
    def __init__(self, session: _Optional[str] = ..., dream: _Optional[_Union[DreamRequested, _Mapping]] = ...) -> None: ...

class DreamRequest(_message.Message):
    __slots__ = ("scope", "session", "idempotency_key")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    scope: str
    session: str
    idempotency_key: str
    def __init__(self, scope: _Optional[str] = ..., session: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class DreamRequested(_message.Message):
    __slots__ = ("scope", "status")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    status: str
    def __init__(self, scope: _Optional[str] = ..., status: _Optional[str] = ...) -> None: ...

class DreamsRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class DreamsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[DreamRun]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[DreamRun, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DreamRun(_message.Message):
    __slots__ = ("id", "scope", "status", "started_at", "ended_at", "reason", "attempt", "waiting", "turns", "created", "reinforced", "superseded", "kinds", "outcomes", "seconds", "llm_calls", "llm_tokens", "prompts", "degraded", "sessions", "error")
    class KindsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class OutcomesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class SecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REINFORCED_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    LLM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    scope: str
    status: str
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    reason: str
    attempt: int
    waiting: int
    turns: int
    created: int
    reinforced: int
    superseded: int
    kinds: _containers.ScalarMap[str, int]
    outcomes: _containers.ScalarMap[str, int]
    seconds: _containers.ScalarMap[str, float]
    llm_calls: int
    llm_tokens: int
    prompts: _containers.RepeatedScalarFieldContainer[str]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    sessions: _containers.RepeatedScalarFieldContainer[str]
    error: str
    def __init__(self, id: _Optional[str] = ..., scope: _Optional[str] = ..., status: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., attempt: _Optional[int] = ..., waiting: _Optional[int] = ..., turns: _Optional[int] = ..., created: _Optional[int] = ..., reinforced: _Optional[int] = ..., superseded: _Optional[int] = ..., kinds: _Optional[_Mapping[str, int]] = ..., outcomes: _Optional[_Mapping[str, int]] = ..., seconds: _Optional[_Mapping[str, float]] = ..., llm_calls: _Optional[int] = ..., llm_tokens: _Optional[int] = ..., prompts: _Optional[_Iterable[str]] = ..., degraded: _Optional[_Iterable[str]] = ..., sessions: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ...) -> None: ...

class GitChangeRequest(_message.Message):
    __slots__ = ("change", "idempotency_key")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    change: _struct_pb2.Struct
    idempotency_key: str
    def __init__(self, change: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class GitAccepted(_message.Message):
    __slots__ = ("event", "duplicate")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    event: str
    duplicate: bool
    def __init__(self, event: _Optional[str] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class StaleRequest(_message.Message):
    __slots__ = ("project", "scope", "limit", "cursor")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    project: str
    scope: str
    limit: int
    cursor: str
    def __init__(self, project: _Optional[str] = ..., scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class StaleResponse(_message.Message):
    __slots__ = ("items", "said", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SAID_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StaleItem]
    said: _containers.RepeatedScalarFieldContainer[str]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[StaleItem, _Mapping]]] = ..., said: _Optional[_Iterable[str]] = ..., next: _Optional[str] = ...) -> None: ...

class StaleItem(_message.Message):
    __slots__ = ("memory", "grade", "score", "evidence")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    grade: str
    score: float
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., grade: _Optional[str] = ..., score: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("scope", "kind", "event", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: _containers.RepeatedScalarFieldContainer[str]
    kind: _containers.RepeatedScalarFieldContainer[str]
    event: _containers.RepeatedScalarFieldContainer[str]
    cursor: str
    def __init__(self, scope: _Optional[_Iterable[str]] = ..., kind: _Optional[_Iterable[str]] = ..., event: _Optional[_Iterable[str]] = ..., cursor: _Optional[str] = ...) -> None: ...

class MemoryEvent(_message.Message):
    __slots__ = ("cursor", "event", "id", "version", "scope", "kind", "to", "type", "merged", "by", "into", "dream", "gap", "alive")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    INTO_FIELD_NUMBER: _ClassVar[int]
    DREAM_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    event: str
    id: str
    version: int
    scope: str
    kind: str
    to: str
    type: str
    merged: str
    by: str
    into: str
    dream: _struct_pb2.Struct
    gap: bool
    alive: bool
    def __init__(self, cursor: _Optional[str] = ..., event: _Optional[str] = ..., id: _Optional[str] = ..., version: _Optional[int] = ..., scope: _Optional[str] = ..., kind: _Optional[str] = ..., to: _Optional[str] = ..., type: _Optional[str] = ..., merged: _Optional[str] = ..., by: _Optional[str] = ..., into: _Optional[str] = ..., dream: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., gap: _Optional[bool] = ..., alive: _Optional[bool] = ..., **kwargs) -> None: ...

class WatchStaleRequest(_message.Message):
    __slots__ = ("scope", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: _containers.RepeatedScalarFieldContainer[str]
    cursor: str
    def __init__(self, scope: _Optional[_Iterable[str]] = ..., cursor: _Optional[str] = ...) -> None: ...

class StaleEvent(_message.Message):
    __slots__ = ("cursor", "memory", "event", "gap", "alive")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    memory: Memory
    event: str
    gap: bool
    alive: bool
    def __init__(self, cursor: _Optional[str] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., event: _Optional[str] = ..., gap: _Optional[bool] = ..., alive: _Optional[bool] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("ready", "checks")
    class ChecksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Check
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Check, _Mapping]] = ...) -> None: ...
    READY_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    ready: bool
    checks: _containers.MessageMap[str, Check]
    def __init__(self, ready: _Optional[bool] = ..., checks: _Optional[_Mapping[str, Check]] = ...) -> None: ...

class Check(_message.Message):
    __slots__ = ("ok", "hint")
    OK_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    hint: str
    def __init__(self, ok: _Optional[bool] = ..., hint: _Optional[str] = ...) -> None: ...

class GraphStatsRequest(_message.Message):
    __slots__ = ("project", "scope")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    project: str
    scope: str
    def __init__(self, project: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class GraphStatsResponse(_message.Message):
    __slots__ = ("nodes", "memories", "nodes_by_kind", "nodes_by_status", "edges", "edges_by_type", "components", "largest_component", "orphans")
    class NodesByKindEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class NodesByStatusEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class EdgesByTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODES_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NODES_BY_KIND_FIELD_NUMBER: _ClassVar[int]
    NODES_BY_STATUS_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    EDGES_BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_COMPONENT_FIELD_NUMBER: _ClassVar[int]
    ORPHANS_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    memories: int
    nodes_by_kind: _containers.ScalarMap[str, int]
    nodes_by_status: _containers.ScalarMap[str, int]
    edges: int
    edges_by_type: _containers.ScalarMap[str, int]
    components: int
    largest_component: int
    orphans: int
    def __init__(self, nodes: _Optional[int] = ..., memories: _Optional[int] = ..., nodes_by_kind: _Optional[_Mapping[str, int]] = ..., nodes_by_status: _Optional[_Mapping[str, int]] = ..., edges: _Optional[int] = ..., edges_by_type: _Optional[_Mapping[str, int]] = ..., components: _Optional[int] = ..., largest_component: _Optional[int] = ..., orphans: _Optional[int] = ...) -> None: ...
