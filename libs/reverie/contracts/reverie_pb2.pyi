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
    __slots__ = ("content", "kind", "scope", "key", "supersede_reason", "soft", "tags", "session", "edges", "confidence", "pinned", "valid_from", "valid_to", "git", "metadata", "summary", "steps", "idempotency_key", "tier")
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
    TIER_FIELD_NUMBER: _ClassVar[int]
    content: str
    kind: str
    scope: str
    key: str
    supersede_reason: str
    soft: bool
    tags: _containers.RepeatedScalarFieldContainer[str]
    session: str
    edges: _containers.RepeatedCompositeFieldContainer[RememberEdge]
    confidence: float
    pinned: bool
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    git: _struct_pb2.Struct
    metadata: _struct_pb2.Struct
    summary: str
    steps: _containers.RepeatedScalarFieldContainer[str]
    idempotency_key: str
    tier: str
    def __init__(self, content: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., supersede_reason: _Optional[str] = ..., soft: _Optional[bool] = ..., tags: _Optional[_Iterable[str]] = ..., session: _Optional[str] = ..., edges: _Optional[_Iterable[_Union[RememberEdge, _Mapping]]] = ..., confidence: _Optional[float] = ..., pinned: _Optional[bool] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., git: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., summary: _Optional[str] = ..., steps: _Optional[_Iterable[str]] = ..., idempotency_key: _Optional[str] = ..., tier: _Optional[str] = ...) -> None: ...

class RememberEdge(_message.Message):
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

class RememberResponse(_message.Message):
    __slots__ = ("id", "status", "version", "redactions", "hints", "conflicts")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: str
    version: int
    redactions: int
    hints: _containers.RepeatedScalarFieldContainer[str]
    conflicts: _containers.RepeatedCompositeFieldContainer[RememberConflict]
    def __init__(self, id: _Optional[str] = ..., status: _Optional[str] = ..., version: _Optional[int] = ..., redactions: _Optional[int] = ..., hints: _Optional[_Iterable[str]] = ..., conflicts: _Optional[_Iterable[_Union[RememberConflict, _Mapping]]] = ...) -> None: ...

class RememberConflict(_message.Message):
    __slots__ = ("id", "content", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("query", "scopes", "project", "limit", "budget_tokens", "depth", "kinds", "tiers", "tags", "files", "min_confidence", "since", "until", "include", "session", "as_of", "valid_at", "linked_projects")
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
    LINKED_PROJECTS_FIELD_NUMBER: _ClassVar[int]
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
    linked_projects: bool
    def __init__(self, query: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., limit: _Optional[int] = ..., budget_tokens: _Optional[int] = ..., depth: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ..., tiers: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., min_confidence: _Optional[float] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include: _Optional[_Iterable[str]] = ..., session: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., linked_projects: _Optional[bool] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("memories", "edges", "search_mode", "degraded", "tokens", "intent", "trace_id", "answered", "relevance")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    SEARCH_MODE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[RecallHit]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    search_mode: str
    degraded: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    intent: str
    trace_id: str
    answered: bool
    relevance: float
    def __init__(self, memories: _Optional[_Iterable[_Union[RecallHit, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., search_mode: _Optional[str] = ..., degraded: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ..., intent: _Optional[str] = ..., trace_id: _Optional[str] = ..., answered: _Optional[bool] = ..., relevance: _Optional[float] = ...) -> None: ...

class RecallHit(_message.Message):
    __slots__ = ("id", "type", "content", "snippet", "score", "kind", "scope", "key", "tags", "status", "staleness", "stale_reason", "created_at", "provenance", "arms", "relevance", "linked")
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
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
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
    relevance: float
    linked: bool
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., content: _Optional[str] = ..., snippet: _Optional[str] = ..., score: _Optional[float] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., status: _Optional[str] = ..., staleness: _Optional[float] = ..., stale_reason: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., arms: _Optional[_Mapping[str, int]] = ..., relevance: _Optional[float] = ..., linked: _Optional[bool] = ...) -> None: ...

class RecallProjectsRequest(_message.Message):
    __slots__ = ("query",)
    QUERY_FIELD_NUMBER: _ClassVar[int]
    query: str
    def __init__(self, query: _Optional[str] = ...) -> None: ...

class RecallProjectsResponse(_message.Message):
    __slots__ = ("items", "degraded")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[KnowingProject]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[KnowingProject, _Mapping]]] = ..., degraded: _Optional[_Iterable[str]] = ...) -> None: ...

class KnowingProject(_message.Message):
    __slots__ = ("project", "count", "readable", "linked_to", "relevance")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    LINKED_TO_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    project: str
    count: int
    readable: bool
    linked_to: _containers.RepeatedScalarFieldContainer[str]
    relevance: float
    def __init__(self, project: _Optional[str] = ..., count: _Optional[int] = ..., readable: _Optional[bool] = ..., linked_to: _Optional[_Iterable[str]] = ..., relevance: _Optional[float] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("source", "session", "agent", "turns", "git", "asked")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    source: str
    session: str
    agent: str
    turns: _containers.RepeatedScalarFieldContainer[str]
    git: _struct_pb2.Struct
    asked: str
    def __init__(self, source: _Optional[str] = ..., session: _Optional[str] = ..., agent: _Optional[str] = ..., turns: _Optional[_Iterable[str]] = ..., git: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., asked: _Optional[str] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("id", "to", "type", "weight", "metadata", "known_from", "known_to", "actor")
    ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FROM_FIELD_NUMBER: _ClassVar[int]
    KNOWN_TO_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    to: str
    type: str
    weight: float
    metadata: _struct_pb2.Struct
    known_from: _timestamp_pb2.Timestamp
    known_to: _timestamp_pb2.Timestamp
    actor: str
    def __init__(self, id: _Optional[str] = ..., to: _Optional[str] = ..., type: _Optional[str] = ..., weight: _Optional[float] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., known_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., known_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., **kwargs) -> None: ...

class ContextRequest(_message.Message):
    __slots__ = ("session", "project", "scopes", "files", "budget_tokens")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session: str
    project: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    def __init__(self, session: _Optional[str] = ..., project: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class ContextResponse(_message.Message):
    __slots__ = ("markdown", "tokens", "memories", "sections", "truncated", "summaries", "degraded", "budgets", "omitted", "warnings")
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
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    markdown: str
    tokens: int
    memories: _containers.RepeatedScalarFieldContainer[str]
    sections: _containers.RepeatedCompositeFieldContainer[ContextSection]
    truncated: bool
    summaries: _containers.ScalarMap[str, str]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    budgets: ContextBudgetsBody
    omitted: _containers.RepeatedCompositeFieldContainer[OmittedMemory]
    warnings: _containers.RepeatedCompositeFieldContainer[BudgetWarning]
    def __init__(self, markdown: _Optional[str] = ..., tokens: _Optional[int] = ..., memories: _Optional[_Iterable[str]] = ..., sections: _Optional[_Iterable[_Union[ContextSection, _Mapping]]] = ..., truncated: _Optional[bool] = ..., summaries: _Optional[_Mapping[str, str]] = ..., degraded: _Optional[_Iterable[str]] = ..., budgets: _Optional[_Union[ContextBudgetsBody, _Mapping]] = ..., omitted: _Optional[_Iterable[_Union[OmittedMemory, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[BudgetWarning, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("id", "kind", "scope", "key", "tokens", "pinned", "stale_grade", "stale_reason", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    STALE_GRADE_FIELD_NUMBER: _ClassVar[int]
    STALE_REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    scope: str
    key: str
    tokens: int
    pinned: bool
    stale_grade: str
    stale_reason: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., tokens: _Optional[int] = ..., pinned: _Optional[bool] = ..., stale_grade: _Optional[str] = ..., stale_reason: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("id", "short_id", "scope", "kind", "content", "key", "summary", "tags", "tier", "confidence", "base_confidence", "pinned", "status", "version", "staleness", "stale_grade", "provenance", "metadata", "created_at", "updated_at", "accessed_at", "access_count", "valid_from", "valid_to", "merged_from", "neighbours", "task", "fact")
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
    FACT_FIELD_NUMBER: _ClassVar[int]
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
    fact: FactDetails
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., scope: _Optional[str] = ..., kind: _Optional[str] = ..., content: _Optional[str] = ..., key: _Optional[str] = ..., summary: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., tier: _Optional[str] = ..., confidence: _Optional[float] = ..., base_confidence: _Optional[float] = ..., pinned: _Optional[bool] = ..., status: _Optional[str] = ..., version: _Optional[int] = ..., staleness: _Optional[float] = ..., stale_grade: _Optional[str] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., accessed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., access_count: _Optional[int] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., merged_from: _Optional[str] = ..., neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., task: _Optional[_Union[TaskState, _Mapping]] = ..., fact: _Optional[_Union[FactDetails, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("state", "claimed_by", "claimed_until", "depends_on", "claimable")
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_BY_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_ON_FIELD_NUMBER: _ClassVar[int]
    CLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    state: str
    claimed_by: str
    claimed_until: _timestamp_pb2.Timestamp
    depends_on: _containers.RepeatedScalarFieldContainer[str]
    claimable: bool
    def __init__(self, state: _Optional[str] = ..., claimed_by: _Optional[str] = ..., claimed_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., depends_on: _Optional[_Iterable[str]] = ..., claimable: _Optional[bool] = ...) -> None: ...

class MemoryChangeResponse(_message.Message):
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

class CreateLinkResponse(_message.Message):
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

class DeleteLinkResponse(_message.Message):
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
    __slots__ = ("root", "depth", "nodes", "edges", "truncated", "truncated_by", "as_of")
    ROOT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_BY_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    root: str
    depth: int
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    truncated: bool
    truncated_by: _containers.RepeatedScalarFieldContainer[str]
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, root: _Optional[str] = ..., depth: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., truncated: _Optional[bool] = ..., truncated_by: _Optional[_Iterable[str]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("path", "entity", "project", "limit", "cursor")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    path: str
    entity: str
    project: str
    limit: int
    cursor: str
    def __init__(self, path: _Optional[str] = ..., entity: _Optional[str] = ..., project: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ImpactResponse(_message.Message):
    __slots__ = ("path", "entity", "files", "entities", "items", "truncated", "next")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    path: str
    entity: str
    files: _containers.RepeatedScalarFieldContainer[str]
    entities: _containers.RepeatedScalarFieldContainer[str]
    items: _containers.RepeatedCompositeFieldContainer[ImpactItem]
    truncated: bool
    next: str
    def __init__(self, path: _Optional[str] = ..., entity: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ..., entities: _Optional[_Iterable[str]] = ..., items: _Optional[_Iterable[_Union[ImpactItem, _Mapping]]] = ..., truncated: _Optional[bool] = ..., next: _Optional[str] = ...) -> None: ...

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
    evidence: _containers.RepeatedCompositeFieldContainer[StaleEvidence]
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., scope: _Optional[str] = ..., score: _Optional[float] = ..., grade: _Optional[str] = ..., path: _Optional[_Iterable[str]] = ..., staleness: _Optional[float] = ..., stale_grade: _Optional[str] = ..., evidence: _Optional[_Iterable[_Union[StaleEvidence, _Mapping]]] = ...) -> None: ...

class StaleEvidence(_message.Message):
    __slots__ = ("commit", "subject", "committed_at", "path", "change", "grade", "score", "via", "lines")
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    commit: str
    subject: str
    committed_at: _timestamp_pb2.Timestamp
    path: str
    change: str
    grade: str
    score: float
    via: _containers.RepeatedScalarFieldContainer[str]
    lines: _containers.RepeatedCompositeFieldContainer[_struct_pb2.ListValue]
    def __init__(self, commit: _Optional[str] = ..., subject: _Optional[str] = ..., committed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., path: _Optional[str] = ..., change: _Optional[str] = ..., grade: _Optional[str] = ..., score: _Optional[float] = ..., via: _Optional[_Iterable[str]] = ..., lines: _Optional[_Iterable[_Union[_struct_pb2.ListValue, _Mapping]]] = ...) -> None: ...

class SessionStartRequest(_message.Message):
    __slots__ = ("agent", "project", "user", "branch", "external_id", "idempotency_key", "at", "include_context", "compacted", "context_shown", "group")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_SHOWN_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    agent: str
    project: str
    user: str
    branch: str
    external_id: str
    idempotency_key: str
    at: _timestamp_pb2.Timestamp
    include_context: bool
    compacted: bool
    context_shown: bool
    group: str
    def __init__(self, agent: _Optional[str] = ..., project: _Optional[str] = ..., user: _Optional[str] = ..., branch: _Optional[str] = ..., external_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include_context: _Optional[bool] = ..., compacted: _Optional[bool] = ..., context_shown: _Optional[bool] = ..., group: _Optional[str] = ...) -> None: ...

class SessionStartResponse(_message.Message):
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
    turns: _containers.RepeatedCompositeFieldContainer[NewTurnBody]
    idempotency_key: str
    def __init__(self, session: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[NewTurnBody, _Mapping]]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class NewTurnBody(_message.Message):
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

class AppendTurnsResponse(_message.Message):
    __slots__ = ("accepted", "duplicates", "redactions")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    duplicates: int
    redactions: int
    def __init__(self, accepted: _Optional[int] = ..., duplicates: _Optional[int] = ..., redactions: _Optional[int] = ...) -> None: ...

class SessionEndRequest(_message.Message):
    __slots__ = ("id", "summary", "idempotency_key", "at", "wait_seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    summary: str
    idempotency_key: str
    at: _timestamp_pb2.Timestamp
    wait_seconds: float
    def __init__(self, id: _Optional[str] = ..., summary: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wait_seconds: _Optional[float] = ...) -> None: ...

class SessionEndResponse(_message.Message):
    __slots__ = ("session", "dream", "summary")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    DREAM_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    session: str
    dream: DreamRequestStatus
    summary: str
    def __init__(self, session: _Optional[str] = ..., dream: _Optional[_Union[DreamRequestStatus, _Mapping]] = ..., summary: _Optional[str] = ...) -> None: ...

class SessionInput(_message.Message):
    __slots__ = ("start", "join", "append", "preflow", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    PREFLOW_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: SessionStartRequest
    join: str
    append: AppendedTurns
    preflow: SessionPreflow
    end: SessionEndRequest
    def __init__(self, start: _Optional[_Union[SessionStartRequest, _Mapping]] = ..., join: _Optional[str] = ..., append: _Optional[_Union[AppendedTurns, _Mapping]] = ..., preflow: _Optional[_Union[SessionPreflow, _Mapping]] = ..., end: _Optional[_Union[SessionEndRequest, _Mapping]] = ...) -> None: ...

class AppendedTurns(_message.Message):
    __slots__ = ("turns", "without_context")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[NewTurnBody]
    without_context: bool
    def __init__(self, turns: _Optional[_Iterable[_Union[NewTurnBody, _Mapping]]] = ..., without_context: _Optional[bool] = ...) -> None: ...

class SessionPreflow(_message.Message):
    __slots__ = ("query", "files", "budget_tokens", "before")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    query: str
    files: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    before: str
    def __init__(self, query: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ..., before: _Optional[str] = ...) -> None: ...

class SessionOutput(_message.Message):
    __slots__ = ("started", "appended", "context", "warning", "event", "ended")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    started: SessionStartResponse
    appended: AppendTurnsResponse
    context: PreflowResponse
    warning: StaleEvent
    event: MemoryEvent
    ended: SessionEndResponse
    def __init__(self, started: _Optional[_Union[SessionStartResponse, _Mapping]] = ..., appended: _Optional[_Union[AppendTurnsResponse, _Mapping]] = ..., context: _Optional[_Union[PreflowResponse, _Mapping]] = ..., warning: _Optional[_Union[StaleEvent, _Mapping]] = ..., event: _Optional[_Union[MemoryEvent, _Mapping]] = ..., ended: _Optional[_Union[SessionEndResponse, _Mapping]] = ...) -> None: ...

class DreamRequest(_message.Message):
    __slots__ = ("scope", "session", "idempotency_key")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    scope: str
    session: str
    idempotency_key: str
    def __init__(self, scope: _Optional[str] = ..., session: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class DreamRequestStatus(_message.Message):
    __slots__ = ("scope", "status")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    status: str
    def __init__(self, scope: _Optional[str] = ..., status: _Optional[str] = ...) -> None: ...

class ListDreamsRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListDreamsResponse(_message.Message):
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

class GitChangeResponse(_message.Message):
    __slots__ = ("event", "duplicate", "hints")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    event: str
    duplicate: bool
    hints: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, event: _Optional[str] = ..., duplicate: _Optional[bool] = ..., hints: _Optional[_Iterable[str]] = ...) -> None: ...

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
    __slots__ = ("items", "messages", "next", "changes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StaleMemory]
    messages: _containers.RepeatedScalarFieldContainer[str]
    next: str
    changes: ChangeBacklogBody
    def __init__(self, items: _Optional[_Iterable[_Union[StaleMemory, _Mapping]]] = ..., messages: _Optional[_Iterable[str]] = ..., next: _Optional[str] = ..., changes: _Optional[_Union[ChangeBacklogBody, _Mapping]] = ...) -> None: ...

class ChangeBacklogBody(_message.Message):
    __slots__ = ("waiting", "since")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    since: _timestamp_pb2.Timestamp
    def __init__(self, waiting: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StaleMemory(_message.Message):
    __slots__ = ("memory", "grade", "score", "evidence")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    memory: Memory
    grade: str
    score: float
    evidence: _containers.RepeatedCompositeFieldContainer[StaleEvidence]
    def __init__(self, memory: _Optional[_Union[Memory, _Mapping]] = ..., grade: _Optional[str] = ..., score: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[StaleEvidence, _Mapping]]] = ...) -> None: ...

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
        value: CheckResult
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[CheckResult, _Mapping]] = ...) -> None: ...
    READY_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    ready: bool
    checks: _containers.MessageMap[str, CheckResult]
    def __init__(self, ready: _Optional[bool] = ..., checks: _Optional[_Mapping[str, CheckResult]] = ...) -> None: ...

class CheckResult(_message.Message):
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

class RememberBatchRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[RememberRequest]
    def __init__(self, items: _Optional[_Iterable[_Union[RememberRequest, _Mapping]]] = ...) -> None: ...

class RememberBatchResponse(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[RememberBatchItem]
    def __init__(self, items: _Optional[_Iterable[_Union[RememberBatchItem, _Mapping]]] = ...) -> None: ...

class RememberBatchItem(_message.Message):
    __slots__ = ("remembered", "problem")
    REMEMBERED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    remembered: RememberResponse
    problem: Problem
    def __init__(self, remembered: _Optional[_Union[RememberResponse, _Mapping]] = ..., problem: _Optional[_Union[Problem, _Mapping]] = ...) -> None: ...

class PreflowRequest(_message.Message):
    __slots__ = ("session", "query", "files", "budget_tokens", "compacted", "include_seen", "before", "scopes", "edited", "tests")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SEEN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    EDITED_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    session: str
    query: str
    files: _containers.RepeatedScalarFieldContainer[str]
    budget_tokens: int
    compacted: bool
    include_seen: bool
    before: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    edited: _containers.RepeatedScalarFieldContainer[str]
    tests: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[str] = ..., query: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ..., budget_tokens: _Optional[int] = ..., compacted: _Optional[bool] = ..., include_seen: _Optional[bool] = ..., before: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., edited: _Optional[_Iterable[str]] = ..., tests: _Optional[_Iterable[str]] = ...) -> None: ...

class AttachPictureRequest(_message.Message):
    __slots__ = ("id", "data", "name", "text", "idempotency_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    data: str
    name: str
    text: str
    idempotency_key: str
    def __init__(self, id: _Optional[str] = ..., data: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class AttachPictureResponse(_message.Message):
    __slots__ = ("memory", "hash", "media_type", "size", "created_at", "created", "text", "redactions")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    memory: str
    hash: str
    media_type: str
    size: int
    created_at: _timestamp_pb2.Timestamp
    created: bool
    text: str
    redactions: int
    def __init__(self, memory: _Optional[str] = ..., hash: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created: _Optional[bool] = ..., text: _Optional[str] = ..., redactions: _Optional[int] = ...) -> None: ...

class ListPicturesRequest(_message.Message):
    __slots__ = ("id", "limit", "cursor")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    limit: int
    cursor: str
    def __init__(self, id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListPicturesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[PictureInfo]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[PictureInfo, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class PictureInfo(_message.Message):
    __slots__ = ("memory", "hash", "media_type", "size", "created_at")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    memory: str
    hash: str
    media_type: str
    size: int
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, memory: _Optional[str] = ..., hash: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PictureRequest(_message.Message):
    __slots__ = ("id", "hash", "idempotency_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    hash: str
    idempotency_key: str
    def __init__(self, id: _Optional[str] = ..., hash: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class PictureContent(_message.Message):
    __slots__ = ("memory", "hash", "media_type", "size", "created_at", "data")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    memory: str
    hash: str
    media_type: str
    size: int
    created_at: _timestamp_pb2.Timestamp
    data: str
    def __init__(self, memory: _Optional[str] = ..., hash: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., data: _Optional[str] = ...) -> None: ...

class RemovePictureResponse(_message.Message):
    __slots__ = ("memory", "hash")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    memory: str
    hash: str
    def __init__(self, memory: _Optional[str] = ..., hash: _Optional[str] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("project", "session", "branch", "edited", "files", "tests", "limit")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    EDITED_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    project: str
    session: str
    branch: str
    edited: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    tests: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    def __init__(self, project: _Optional[str] = ..., session: _Optional[str] = ..., branch: _Optional[str] = ..., edited: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., tests: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ...) -> None: ...

class PredictedFile(_message.Message):
    __slots__ = ("path", "score", "reason")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    path: str
    score: float
    reason: str
    def __init__(self, path: _Optional[str] = ..., score: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class PredictedMemory(_message.Message):
    __slots__ = ("id", "kind", "scope", "key", "content", "reason", "staleness", "stale_reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    STALE_REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    scope: str
    key: str
    content: str
    reason: str
    staleness: float
    stale_reason: str
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., content: _Optional[str] = ..., reason: _Optional[str] = ..., staleness: _Optional[float] = ..., stale_reason: _Optional[str] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("files", "memories", "degraded")
    FILES_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[PredictedFile]
    memories: _containers.RepeatedCompositeFieldContainer[PredictedMemory]
    degraded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, files: _Optional[_Iterable[_Union[PredictedFile, _Mapping]]] = ..., memories: _Optional[_Iterable[_Union[PredictedMemory, _Mapping]]] = ..., degraded: _Optional[_Iterable[str]] = ...) -> None: ...

class PreflowResponse(_message.Message):
    __slots__ = ("markdown", "tokens", "items", "active", "layers", "scopes", "keywords", "intent", "turn", "omitted", "degraded", "trace_id")
    class LayersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PreflowLayer
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PreflowLayer, _Mapping]] = ...) -> None: ...
    MARKDOWN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    markdown: str
    tokens: int
    items: _containers.RepeatedCompositeFieldContainer[PreflowItem]
    active: _containers.RepeatedScalarFieldContainer[str]
    layers: _containers.MessageMap[str, PreflowLayer]
    scopes: _containers.RepeatedScalarFieldContainer[str]
    keywords: _containers.RepeatedScalarFieldContainer[str]
    intent: str
    turn: int
    omitted: int
    degraded: _containers.RepeatedScalarFieldContainer[str]
    trace_id: str
    def __init__(self, markdown: _Optional[str] = ..., tokens: _Optional[int] = ..., items: _Optional[_Iterable[_Union[PreflowItem, _Mapping]]] = ..., active: _Optional[_Iterable[str]] = ..., layers: _Optional[_Mapping[str, PreflowLayer]] = ..., scopes: _Optional[_Iterable[str]] = ..., keywords: _Optional[_Iterable[str]] = ..., intent: _Optional[str] = ..., turn: _Optional[int] = ..., omitted: _Optional[int] = ..., degraded: _Optional[_Iterable[str]] = ..., trace_id: _Optional[str] = ...) -> None: ...

class PreflowItem(_message.Message):
    __slots__ = ("id", "layer", "reason", "text", "scope", "kind", "score", "staleness", "relevance")
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    reason: str
    text: str
    scope: str
    kind: str
    score: float
    staleness: float
    relevance: float
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., reason: _Optional[str] = ..., text: _Optional[str] = ..., scope: _Optional[str] = ..., kind: _Optional[str] = ..., score: _Optional[float] = ..., staleness: _Optional[float] = ..., relevance: _Optional[float] = ...) -> None: ...

class PreflowLayer(_message.Message):
    __slots__ = ("budget", "tokens", "items", "new")
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    budget: int
    tokens: int
    items: int
    new: int
    def __init__(self, budget: _Optional[int] = ..., tokens: _Optional[int] = ..., items: _Optional[int] = ..., new: _Optional[int] = ...) -> None: ...

class ListMemoriesRequest(_message.Message):
    __slots__ = ("scope", "valid_at", "kind", "status", "tag", "key", "session", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    VALID_AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    valid_at: _timestamp_pb2.Timestamp
    kind: _containers.RepeatedScalarFieldContainer[str]
    status: _containers.RepeatedScalarFieldContainer[str]
    tag: str
    key: str
    session: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Iterable[str]] = ..., status: _Optional[_Iterable[str]] = ..., tag: _Optional[str] = ..., key: _Optional[str] = ..., session: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListMemoriesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Memory]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class EditMemoryRequest(_message.Message):
    __slots__ = ("id", "content", "summary", "kind", "tags", "confidence", "pinned", "valid_from", "valid_to", "metadata", "reason", "version", "tier")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    summary: str
    kind: str
    tags: _struct_pb2.ListValue
    confidence: float
    pinned: bool
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    metadata: _struct_pb2.Struct
    reason: str
    version: int
    tier: str
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., summary: _Optional[str] = ..., kind: _Optional[str] = ..., tags: _Optional[_Union[_struct_pb2.ListValue, _Mapping]] = ..., confidence: _Optional[float] = ..., pinned: _Optional[bool] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., reason: _Optional[str] = ..., version: _Optional[int] = ..., tier: _Optional[str] = ...) -> None: ...

class ForgetMemoryResponse(_message.Message):
    __slots__ = ("id", "version", "changed", "redactions", "hints", "restorable_until")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    RESTORABLE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    changed: bool
    redactions: int
    hints: _containers.RepeatedScalarFieldContainer[str]
    restorable_until: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., changed: _Optional[bool] = ..., redactions: _Optional[int] = ..., hints: _Optional[_Iterable[str]] = ..., restorable_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ForgetBatchRequest(_message.Message):
    __slots__ = ("ids", "scope", "keys", "tag", "status")
    IDS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    scope: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    tag: str
    status: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., scope: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., tag: _Optional[str] = ..., status: _Optional[_Iterable[str]] = ...) -> None: ...

class ForgetBatchResponse(_message.Message):
    __slots__ = ("forgotten", "more", "restorable_until")
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    RESTORABLE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    forgotten: int
    more: bool
    restorable_until: _timestamp_pb2.Timestamp
    def __init__(self, forgotten: _Optional[int] = ..., more: _Optional[bool] = ..., restorable_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class EraseMemoryRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EraseMemoryResponse(_message.Message):
    __slots__ = ("id", "rows", "still_quoted_in", "in_backups_before")
    class RowsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STILL_QUOTED_IN_FIELD_NUMBER: _ClassVar[int]
    IN_BACKUPS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    rows: _containers.ScalarMap[str, int]
    still_quoted_in: _containers.RepeatedScalarFieldContainer[str]
    in_backups_before: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., rows: _Optional[_Mapping[str, int]] = ..., still_quoted_in: _Optional[_Iterable[str]] = ..., in_backups_before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RestoreMemoryResponse(_message.Message):
    __slots__ = ("id", "version", "status")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    status: str
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., status: _Optional[str] = ...) -> None: ...

class ConfirmMemoryResponse(_message.Message):
    __slots__ = ("id", "version", "cleared")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    cleared: int
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., cleared: _Optional[int] = ...) -> None: ...

class FeedbackRequest(_message.Message):
    __slots__ = ("id", "verdict", "content", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    verdict: str
    content: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., verdict: _Optional[str] = ..., content: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("id", "limit", "cursor")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    limit: int
    cursor: str
    def __init__(self, id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[MemoryVersionBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[MemoryVersionBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class MemoryVersionBody(_message.Message):
    __slots__ = ("version", "content", "status", "kind", "key", "tags", "actor", "reason", "known_from", "known_to", "tier")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FROM_FIELD_NUMBER: _ClassVar[int]
    KNOWN_TO_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    version: int
    content: str
    status: str
    kind: str
    key: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    actor: str
    reason: str
    known_from: _timestamp_pb2.Timestamp
    known_to: _timestamp_pb2.Timestamp
    tier: str
    def __init__(self, version: _Optional[int] = ..., content: _Optional[str] = ..., status: _Optional[str] = ..., kind: _Optional[str] = ..., key: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., actor: _Optional[str] = ..., reason: _Optional[str] = ..., known_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., known_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tier: _Optional[str] = ...) -> None: ...

class RollbackRequest(_message.Message):
    __slots__ = ("id", "version", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    reason: str
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class MemoryProvenanceResponse(_message.Message):
    __slots__ = ("id", "source", "agent", "session", "turns", "git", "replaced", "promoted", "asked")
    ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    id: str
    source: str
    agent: str
    session: SourceSessionBody
    turns: _containers.RepeatedCompositeFieldContainer[SourceTurnBody]
    git: _struct_pb2.Struct
    replaced: _containers.RepeatedCompositeFieldContainer[ReplacedMemoryBody]
    promoted: _struct_pb2.Struct
    asked: str
    def __init__(self, id: _Optional[str] = ..., source: _Optional[str] = ..., agent: _Optional[str] = ..., session: _Optional[_Union[SourceSessionBody, _Mapping]] = ..., turns: _Optional[_Iterable[_Union[SourceTurnBody, _Mapping]]] = ..., git: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., replaced: _Optional[_Iterable[_Union[ReplacedMemoryBody, _Mapping]]] = ..., promoted: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., asked: _Optional[str] = ...) -> None: ...

class SourceSessionBody(_message.Message):
    __slots__ = ("id", "agent", "external_id", "project", "branch", "started_at", "ended_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    external_id: str
    project: str
    branch: str
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., external_id: _Optional[str] = ..., project: _Optional[str] = ..., branch: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SourceTurnBody(_message.Message):
    __slots__ = ("id", "session", "ordinal", "role", "content", "at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session: str
    ordinal: int
    role: str
    content: str
    at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., session: _Optional[str] = ..., ordinal: _Optional[int] = ..., role: _Optional[str] = ..., content: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReplacedMemoryBody(_message.Message):
    __slots__ = ("id", "version", "content", "agent", "created_at", "step")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    content: str
    agent: str
    created_at: _timestamp_pb2.Timestamp
    step: int
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., content: _Optional[str] = ..., agent: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., step: _Optional[int] = ...) -> None: ...

class ReplayRequest(_message.Message):
    __slots__ = ("id", "values")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    id: str
    values: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SkillReplayResponse(_message.Message):
    __slots__ = ("id", "version", "title", "steps", "text", "missing")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    title: str
    steps: _containers.RepeatedScalarFieldContainer[str]
    text: str
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., title: _Optional[str] = ..., steps: _Optional[_Iterable[str]] = ..., text: _Optional[str] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("scope", "state", "claimable", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    state: _containers.RepeatedScalarFieldContainer[str]
    claimable: bool
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., state: _Optional[_Iterable[str]] = ..., claimable: _Optional[bool] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Memory]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class UpdateTaskRequest(_message.Message):
    __slots__ = ("id", "state", "agent")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    agent: str
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class TaskChangeResponse(_message.Message):
    __slots__ = ("id", "version", "task")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    task: TaskState
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., task: _Optional[_Union[TaskState, _Mapping]] = ...) -> None: ...

class ClaimTaskRequest(_message.Message):
    __slots__ = ("id", "agent", "seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    seconds: int
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., seconds: _Optional[int] = ...) -> None: ...

class ReleaseTaskRequest(_message.Message):
    __slots__ = ("id", "agent")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ...) -> None: ...

class AddFactRequest(_message.Message):
    __slots__ = ("topic", "statement", "confidence", "domains", "verified", "kind", "scope", "session")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    statement: str
    confidence: str
    domains: _containers.RepeatedScalarFieldContainer[str]
    verified: str
    kind: str
    scope: str
    session: str
    def __init__(self, topic: _Optional[str] = ..., statement: _Optional[str] = ..., confidence: _Optional[str] = ..., domains: _Optional[_Iterable[str]] = ..., verified: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class AddFactResponse(_message.Message):
    __slots__ = ("id", "status", "version", "redactions", "hints", "key", "fact", "conflicts")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: str
    version: int
    redactions: int
    hints: _containers.RepeatedScalarFieldContainer[str]
    key: str
    fact: FactDetails
    conflicts: _containers.RepeatedCompositeFieldContainer[RememberConflict]
    def __init__(self, id: _Optional[str] = ..., status: _Optional[str] = ..., version: _Optional[int] = ..., redactions: _Optional[int] = ..., hints: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., fact: _Optional[_Union[FactDetails, _Mapping]] = ..., conflicts: _Optional[_Iterable[_Union[RememberConflict, _Mapping]]] = ...) -> None: ...

class FactDetails(_message.Message):
    __slots__ = ("topic", "statement", "confidence", "corroborations", "domains", "verified")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CORROBORATIONS_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    topic: str
    statement: str
    confidence: str
    corroborations: int
    domains: _containers.RepeatedScalarFieldContainer[str]
    verified: str
    def __init__(self, topic: _Optional[str] = ..., statement: _Optional[str] = ..., confidence: _Optional[str] = ..., corroborations: _Optional[int] = ..., domains: _Optional[_Iterable[str]] = ..., verified: _Optional[str] = ...) -> None: ...

class ListFactsRequest(_message.Message):
    __slots__ = ("scope", "topic", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    topic: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., topic: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListFactsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Memory]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("agent", "project", "limit", "cursor", "session")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    agent: str
    project: str
    limit: int
    cursor: str
    session: str
    def __init__(self, agent: _Optional[str] = ..., project: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[SessionBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[SessionBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class SessionBody(_message.Message):
    __slots__ = ("id", "agent", "scope", "project", "branch", "user", "external_id", "turns", "started_at", "ended_at", "summary", "group")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    scope: str
    project: str
    branch: str
    user: str
    external_id: str
    turns: int
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    summary: str
    group: str
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., scope: _Optional[str] = ..., project: _Optional[str] = ..., branch: _Optional[str] = ..., user: _Optional[str] = ..., external_id: _Optional[str] = ..., turns: _Optional[int] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., summary: _Optional[str] = ..., group: _Optional[str] = ...) -> None: ...

class ListTurnsRequest(_message.Message):
    __slots__ = ("id", "limit", "cursor")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    limit: int
    cursor: str
    def __init__(self, id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[TurnBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[TurnBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ReplaySessionRequest(_message.Message):
    __slots__ = ("id", "limit", "cursor")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    limit: int
    cursor: str
    def __init__(self, id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ReplaySessionResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ReplayStep]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ReplayStep, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ReplayStep(_message.Message):
    __slots__ = ("turn", "recalls", "memories")
    TURN_FIELD_NUMBER: _ClassVar[int]
    RECALLS_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    turn: ReplayTurn
    recalls: _containers.RepeatedCompositeFieldContainer[ReplayRecall]
    memories: _containers.RepeatedCompositeFieldContainer[ReplayMemory]
    def __init__(self, turn: _Optional[_Union[ReplayTurn, _Mapping]] = ..., recalls: _Optional[_Iterable[_Union[ReplayRecall, _Mapping]]] = ..., memories: _Optional[_Iterable[_Union[ReplayMemory, _Mapping]]] = ...) -> None: ...

class ReplayTurn(_message.Message):
    __slots__ = ("id", "session", "ordinal", "role", "content", "at", "tool", "external_id", "digested", "output")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    DIGESTED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session: str
    ordinal: int
    role: str
    content: str
    at: _timestamp_pb2.Timestamp
    tool: str
    external_id: str
    digested: bool
    output: str
    def __init__(self, id: _Optional[str] = ..., session: _Optional[str] = ..., ordinal: _Optional[int] = ..., role: _Optional[str] = ..., content: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool: _Optional[str] = ..., external_id: _Optional[str] = ..., digested: _Optional[bool] = ..., output: _Optional[str] = ...) -> None: ...

class ReplayRecall(_message.Message):
    __slots__ = ("id", "at", "query", "returned", "given", "delivered_at", "memories")
    ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    at: _timestamp_pb2.Timestamp
    query: str
    returned: int
    given: int
    delivered_at: _timestamp_pb2.Timestamp
    memories: _containers.RepeatedCompositeFieldContainer[ReplayMemory]
    def __init__(self, id: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., query: _Optional[str] = ..., returned: _Optional[int] = ..., given: _Optional[int] = ..., delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., memories: _Optional[_Iterable[_Union[ReplayMemory, _Mapping]]] = ...) -> None: ...

class ReplayMemory(_message.Message):
    __slots__ = ("id", "label", "kind", "scope", "learned")
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    kind: str
    scope: str
    learned: bool
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., learned: _Optional[bool] = ...) -> None: ...

class TurnBody(_message.Message):
    __slots__ = ("id", "session", "ordinal", "role", "content", "at", "tool", "external_id", "digested")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    DIGESTED_FIELD_NUMBER: _ClassVar[int]
    id: str
    session: str
    ordinal: int
    role: str
    content: str
    at: _timestamp_pb2.Timestamp
    tool: str
    external_id: str
    digested: bool
    def __init__(self, id: _Optional[str] = ..., session: _Optional[str] = ..., ordinal: _Optional[int] = ..., role: _Optional[str] = ..., content: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool: _Optional[str] = ..., external_id: _Optional[str] = ..., digested: _Optional[bool] = ...) -> None: ...

class CorrectSessionRequest(_message.Message):
    __slots__ = ("id", "messages", "diff")
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    id: str
    messages: _containers.RepeatedCompositeFieldContainer[CorrectionMessage]
    diff: str
    def __init__(self, id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[CorrectionMessage, _Mapping]]] = ..., diff: _Optional[str] = ...) -> None: ...

class CorrectionMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class CorrectSessionResponse(_message.Message):
    __slots__ = ("session", "corrections", "skipped", "degraded")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CORRECTIONS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    session: str
    corrections: _containers.RepeatedCompositeFieldContainer[CorrectedMemory]
    skipped: str
    degraded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session: _Optional[str] = ..., corrections: _Optional[_Iterable[_Union[CorrectedMemory, _Mapping]]] = ..., skipped: _Optional[str] = ..., degraded: _Optional[_Iterable[str]] = ...) -> None: ...

class CorrectedMemory(_message.Message):
    __slots__ = ("old", "new", "quote")
    OLD_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    old: str
    new: str
    quote: str
    def __init__(self, old: _Optional[str] = ..., new: _Optional[str] = ..., quote: _Optional[str] = ...) -> None: ...

class ListUndigestedRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListUndigestedResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[UndigestedScope]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[UndigestedScope, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class UndigestedScope(_message.Message):
    __slots__ = ("scope", "state", "turns", "segments", "chars", "sessions", "new_turns", "since", "reason", "requested_at", "attempts", "error", "run", "digested", "waiting")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    CHARS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEW_TURNS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    DIGESTED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    scope: str
    state: str
    turns: int
    segments: int
    chars: int
    sessions: int
    new_turns: int
    since: _timestamp_pb2.Timestamp
    reason: str
    requested_at: _timestamp_pb2.Timestamp
    attempts: int
    error: str
    run: str
    digested: int
    waiting: int
    def __init__(self, scope: _Optional[str] = ..., state: _Optional[str] = ..., turns: _Optional[int] = ..., segments: _Optional[int] = ..., chars: _Optional[int] = ..., sessions: _Optional[int] = ..., new_turns: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., error: _Optional[str] = ..., run: _Optional[str] = ..., digested: _Optional[int] = ..., waiting: _Optional[int] = ...) -> None: ...

class GetDreamRequest(_message.Message):
    __slots__ = ("id", "limit", "cursor")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    limit: int
    cursor: str
    def __init__(self, id: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class DreamDetail(_message.Message):
    __slots__ = ("id", "scope", "status", "started_at", "ended_at", "reason", "attempt", "waiting", "turns", "created", "reinforced", "superseded", "kinds", "outcomes", "seconds", "llm_calls", "llm_tokens", "prompts", "degraded", "sessions", "error", "input", "decisions", "next")
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
    INPUT_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
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
    input: _containers.RepeatedCompositeFieldContainer[DreamInput]
    decisions: _containers.RepeatedCompositeFieldContainer[DreamDecision]
    next: str
    def __init__(self, id: _Optional[str] = ..., scope: _Optional[str] = ..., status: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., attempt: _Optional[int] = ..., waiting: _Optional[int] = ..., turns: _Optional[int] = ..., created: _Optional[int] = ..., reinforced: _Optional[int] = ..., superseded: _Optional[int] = ..., kinds: _Optional[_Mapping[str, int]] = ..., outcomes: _Optional[_Mapping[str, int]] = ..., seconds: _Optional[_Mapping[str, float]] = ..., llm_calls: _Optional[int] = ..., llm_tokens: _Optional[int] = ..., prompts: _Optional[_Iterable[str]] = ..., degraded: _Optional[_Iterable[str]] = ..., sessions: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ..., input: _Optional[_Iterable[_Union[DreamInput, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[DreamDecision, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DreamInput(_message.Message):
    __slots__ = ("session", "turns", "chars", "first_ordinal", "last_ordinal")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CHARS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    LAST_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    session: str
    turns: int
    chars: int
    first_ordinal: int
    last_ordinal: int
    def __init__(self, session: _Optional[str] = ..., turns: _Optional[int] = ..., chars: _Optional[int] = ..., first_ordinal: _Optional[int] = ..., last_ordinal: _Optional[int] = ...) -> None: ...

class DreamDecision(_message.Message):
    __slots__ = ("number", "outcome", "reason", "kind", "memory", "status", "content", "session", "turns")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    number: int
    outcome: str
    reason: str
    kind: str
    memory: str
    status: str
    content: str
    session: str
    turns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., kind: _Optional[str] = ..., memory: _Optional[str] = ..., status: _Optional[str] = ..., content: _Optional[str] = ..., session: _Optional[str] = ..., turns: _Optional[_Iterable[str]] = ...) -> None: ...

class ListSummariesRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListSummariesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ScopeSummary]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ScopeSummary, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class CitedSentence(_message.Message):
    __slots__ = ("text", "memories")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    text: str
    memories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., memories: _Optional[_Iterable[str]] = ...) -> None: ...

class ScopeSummary(_message.Message):
    __slots__ = ("scope", "version", "content", "tokens", "created_at", "run", "sources", "overview")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    OVERVIEW_FIELD_NUMBER: _ClassVar[int]
    scope: str
    version: int
    content: str
    tokens: int
    created_at: _timestamp_pb2.Timestamp
    run: str
    sources: _containers.RepeatedCompositeFieldContainer[SummarySource]
    overview: _containers.RepeatedCompositeFieldContainer[CitedSentence]
    def __init__(self, scope: _Optional[str] = ..., version: _Optional[int] = ..., content: _Optional[str] = ..., tokens: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[SummarySource, _Mapping]]] = ..., overview: _Optional[_Iterable[_Union[CitedSentence, _Mapping]]] = ...) -> None: ...

class SummarySource(_message.Message):
    __slots__ = ("memory", "version", "current")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    memory: str
    version: int
    current: bool
    def __init__(self, memory: _Optional[str] = ..., version: _Optional[int] = ..., current: _Optional[bool] = ...) -> None: ...

class RunMaintenanceRequest(_message.Message):
    __slots__ = ("steps", "dry_run")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    def __init__(self, steps: _Optional[_Iterable[str]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class MaintenanceResponse(_message.Message):
    __slots__ = ("examined", "archived", "promoted", "collected", "restored", "merged", "contradicted", "topics", "ranked", "proposed", "derived", "reviewed", "unfinished", "moved", "summarized")
    EXAMINED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    CONTRADICTED_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    RANKED_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FIELD_NUMBER: _ClassVar[int]
    REVIEWED_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZED_FIELD_NUMBER: _ClassVar[int]
    examined: int
    archived: int
    promoted: int
    collected: int
    restored: int
    merged: int
    contradicted: int
    topics: int
    ranked: int
    proposed: int
    derived: int
    reviewed: int
    unfinished: _containers.RepeatedScalarFieldContainer[str]
    moved: int
    summarized: int
    def __init__(self, examined: _Optional[int] = ..., archived: _Optional[int] = ..., promoted: _Optional[int] = ..., collected: _Optional[int] = ..., restored: _Optional[int] = ..., merged: _Optional[int] = ..., contradicted: _Optional[int] = ..., topics: _Optional[int] = ..., ranked: _Optional[int] = ..., proposed: _Optional[int] = ..., derived: _Optional[int] = ..., reviewed: _Optional[int] = ..., unfinished: _Optional[_Iterable[str]] = ..., moved: _Optional[int] = ..., summarized: _Optional[int] = ...) -> None: ...

class ListReviewsRequest(_message.Message):
    __slots__ = ("state", "limit", "cursor")
    STATE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    state: str
    limit: int
    cursor: str
    def __init__(self, state: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListReviewsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ReviewBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ReviewBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ReviewBody(_message.Message):
    __slots__ = ("id", "memory", "version", "scope", "current_content", "verdict", "content", "reason", "generated_by", "state", "created_at", "decided_at", "decided_by")
    ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GENERATED_BY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    id: str
    memory: str
    version: int
    scope: str
    current_content: str
    verdict: str
    content: str
    reason: str
    generated_by: str
    state: str
    created_at: _timestamp_pb2.Timestamp
    decided_at: _timestamp_pb2.Timestamp
    decided_by: str
    def __init__(self, id: _Optional[str] = ..., memory: _Optional[str] = ..., version: _Optional[int] = ..., scope: _Optional[str] = ..., current_content: _Optional[str] = ..., verdict: _Optional[str] = ..., content: _Optional[str] = ..., reason: _Optional[str] = ..., generated_by: _Optional[str] = ..., state: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., decided_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., decided_by: _Optional[str] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ReviewDecisionResponse(_message.Message):
    __slots__ = ("id", "memory", "state")
    ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    id: str
    memory: str
    state: str
    def __init__(self, id: _Optional[str] = ..., memory: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class ListUnanchoredRequest(_message.Message):
    __slots__ = ("project", "limit", "cursor")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    project: str
    limit: int
    cursor: str
    def __init__(self, project: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListUnanchoredResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[UnanchoredMemory]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[UnanchoredMemory, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class UnanchoredMemory(_message.Message):
    __slots__ = ("memory", "content", "created_at", "files")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    memory: str
    content: str
    created_at: _timestamp_pb2.Timestamp
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, memory: _Optional[str] = ..., content: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...

class SetAnchorsRequest(_message.Message):
    __slots__ = ("project", "anchors")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    ANCHORS_FIELD_NUMBER: _ClassVar[int]
    project: str
    anchors: _containers.RepeatedCompositeFieldContainer[MemoryAnchor]
    def __init__(self, project: _Optional[str] = ..., anchors: _Optional[_Iterable[_Union[MemoryAnchor, _Mapping]]] = ...) -> None: ...

class MemoryAnchor(_message.Message):
    __slots__ = ("memory", "git")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    memory: str
    git: GitLocation
    def __init__(self, memory: _Optional[str] = ..., git: _Optional[_Union[GitLocation, _Mapping]] = ...) -> None: ...

class GitLocation(_message.Message):
    __slots__ = ("branch", "commit", "files", "committed_at", "lines", "symbols", "blobs", "modified_at")
    class BlobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ModifiedAtEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _timestamp_pb2.Timestamp
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_AT_FIELD_NUMBER: _ClassVar[int]
    branch: str
    commit: str
    files: _containers.RepeatedScalarFieldContainer[str]
    committed_at: _timestamp_pb2.Timestamp
    lines: _struct_pb2.Struct
    symbols: _struct_pb2.Struct
    blobs: _containers.ScalarMap[str, str]
    modified_at: _containers.MessageMap[str, _timestamp_pb2.Timestamp]
    def __init__(self, branch: _Optional[str] = ..., commit: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ..., committed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lines: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., symbols: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., blobs: _Optional[_Mapping[str, str]] = ..., modified_at: _Optional[_Mapping[str, _timestamp_pb2.Timestamp]] = ...) -> None: ...

class SetAnchorsResponse(_message.Message):
    __slots__ = ("anchored",)
    ANCHORED_FIELD_NUMBER: _ClassVar[int]
    anchored: int
    def __init__(self, anchored: _Optional[int] = ...) -> None: ...

class ListWebhooksRequest(_message.Message):
    __slots__ = ("project", "limit", "cursor")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    project: str
    limit: int
    cursor: str
    def __init__(self, project: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListWebhooksResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[WebhookBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[WebhookBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class WebhookBody(_message.Message):
    __slots__ = ("project", "kind", "path", "readable", "updated_by", "created_at", "updated_at")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    project: str
    kind: str
    path: str
    readable: bool
    updated_by: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, project: _Optional[str] = ..., kind: _Optional[str] = ..., path: _Optional[str] = ..., readable: _Optional[bool] = ..., updated_by: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SetWebhookRequest(_message.Message):
    __slots__ = ("kind", "project", "secret")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    kind: str
    project: str
    secret: str
    def __init__(self, kind: _Optional[str] = ..., project: _Optional[str] = ..., secret: _Optional[str] = ...) -> None: ...

class CreatedWebhookBody(_message.Message):
    __slots__ = ("project", "kind", "path", "readable", "updated_by", "created_at", "updated_at", "secret")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    project: str
    kind: str
    path: str
    readable: bool
    updated_by: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    secret: str
    def __init__(self, project: _Optional[str] = ..., kind: _Optional[str] = ..., path: _Optional[str] = ..., readable: _Optional[bool] = ..., updated_by: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class DeleteWebhookRequest(_message.Message):
    __slots__ = ("kind", "project")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    project: str
    def __init__(self, kind: _Optional[str] = ..., project: _Optional[str] = ...) -> None: ...

class DeleteWebhookResponse(_message.Message):
    __slots__ = ("project", "kind")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    project: str
    kind: str
    def __init__(self, project: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class ListTracesRequest(_message.Message):
    __slots__ = ("session", "limit", "cursor")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session: str
    limit: int
    cursor: str
    def __init__(self, session: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListTracesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[TraceSummary]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[TraceSummary, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class TraceSummary(_message.Message):
    __slots__ = ("id", "trace_id", "at", "actor", "session", "query", "intent", "found", "returned", "milliseconds", "degraded", "given", "delivered_at", "before")
    ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    trace_id: str
    at: _timestamp_pb2.Timestamp
    actor: str
    session: str
    query: str
    intent: str
    found: int
    returned: int
    milliseconds: float
    degraded: _containers.RepeatedScalarFieldContainer[str]
    given: int
    delivered_at: _timestamp_pb2.Timestamp
    before: str
    def __init__(self, id: _Optional[str] = ..., trace_id: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., session: _Optional[str] = ..., query: _Optional[str] = ..., intent: _Optional[str] = ..., found: _Optional[int] = ..., returned: _Optional[int] = ..., milliseconds: _Optional[float] = ..., degraded: _Optional[_Iterable[str]] = ..., given: _Optional[int] = ..., delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[str] = ...) -> None: ...

class GetTraceRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class TraceDetail(_message.Message):
    __slots__ = ("id", "trace_id", "at", "actor", "session", "query", "intent", "found", "returned", "milliseconds", "degraded", "agent", "scopes", "language", "keywords", "identifiers", "paths", "phrases", "period", "preferred_kinds", "projects", "limit", "budget_tokens", "depth", "min_confidence", "turns", "as_of", "valid_at", "statuses", "kinds", "tiers", "tags", "files", "since", "until", "tokens", "fusion", "weights", "arms", "timings", "candidates", "omitted", "related_traces", "given", "delivered_at", "deliveries", "layers", "before")
    class WeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class ArmsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TimingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIERS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    PHRASES_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_KINDS_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    VALID_AT_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    FUSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ARMS_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    RELATED_TRACES_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    trace_id: str
    at: _timestamp_pb2.Timestamp
    actor: str
    session: str
    query: str
    intent: str
    found: int
    returned: int
    milliseconds: float
    degraded: _containers.RepeatedScalarFieldContainer[str]
    agent: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    language: str
    keywords: _containers.RepeatedScalarFieldContainer[str]
    identifiers: _containers.RepeatedScalarFieldContainer[str]
    paths: _containers.RepeatedScalarFieldContainer[str]
    phrases: _containers.RepeatedScalarFieldContainer[str]
    period: TracePeriod
    preferred_kinds: _containers.RepeatedScalarFieldContainer[str]
    projects: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    budget_tokens: int
    depth: int
    min_confidence: float
    turns: bool
    as_of: _timestamp_pb2.Timestamp
    valid_at: _timestamp_pb2.Timestamp
    statuses: _containers.RepeatedScalarFieldContainer[str]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    tiers: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedScalarFieldContainer[str]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    tokens: int
    fusion: str
    weights: _containers.ScalarMap[str, float]
    arms: _containers.ScalarMap[str, int]
    timings: _containers.ScalarMap[str, float]
    candidates: _containers.RepeatedCompositeFieldContainer[TraceCandidate]
    omitted: int
    related_traces: _containers.RepeatedScalarFieldContainer[str]
    given: int
    delivered_at: _timestamp_pb2.Timestamp
    deliveries: _containers.RepeatedCompositeFieldContainer[TraceDelivery]
    layers: _containers.RepeatedCompositeFieldContainer[TraceLayer]
    before: str
    def __init__(self, id: _Optional[str] = ..., trace_id: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., session: _Optional[str] = ..., query: _Optional[str] = ..., intent: _Optional[str] = ..., found: _Optional[int] = ..., returned: _Optional[int] = ..., milliseconds: _Optional[float] = ..., degraded: _Optional[_Iterable[str]] = ..., agent: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., language: _Optional[str] = ..., keywords: _Optional[_Iterable[str]] = ..., identifiers: _Optional[_Iterable[str]] = ..., paths: _Optional[_Iterable[str]] = ..., phrases: _Optional[_Iterable[str]] = ..., period: _Optional[_Union[TracePeriod, _Mapping]] = ..., preferred_kinds: _Optional[_Iterable[str]] = ..., projects: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., budget_tokens: _Optional[int] = ..., depth: _Optional[int] = ..., min_confidence: _Optional[float] = ..., turns: _Optional[bool] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., statuses: _Optional[_Iterable[str]] = ..., kinds: _Optional[_Iterable[str]] = ..., tiers: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tokens: _Optional[int] = ..., fusion: _Optional[str] = ..., weights: _Optional[_Mapping[str, float]] = ..., arms: _Optional[_Mapping[str, int]] = ..., timings: _Optional[_Mapping[str, float]] = ..., candidates: _Optional[_Iterable[_Union[TraceCandidate, _Mapping]]] = ..., omitted: _Optional[int] = ..., related_traces: _Optional[_Iterable[str]] = ..., given: _Optional[int] = ..., delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deliveries: _Optional[_Iterable[_Union[TraceDelivery, _Mapping]]] = ..., layers: _Optional[_Iterable[_Union[TraceLayer, _Mapping]]] = ..., before: _Optional[str] = ...) -> None: ...

class TraceLayer(_message.Message):
    __slots__ = ("name", "tokens", "budget_tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tokens: int
    budget_tokens: int
    def __init__(self, name: _Optional[str] = ..., tokens: _Optional[int] = ..., budget_tokens: _Optional[int] = ...) -> None: ...

class TraceDelivery(_message.Message):
    __slots__ = ("id", "label", "outcome", "relevance", "layer")
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    outcome: str
    relevance: float
    layer: str
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., outcome: _Optional[str] = ..., relevance: _Optional[float] = ..., layer: _Optional[str] = ...) -> None: ...

class ConfirmDeliveryRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class DeliveryReceipt(_message.Message):
    __slots__ = ("delivered_at",)
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    delivered_at: _timestamp_pb2.Timestamp
    def __init__(self, delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TracePeriod(_message.Message):
    __slots__ = ("since", "until")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TraceCandidate(_message.Message):
    __slots__ = ("id", "type", "kind", "scope", "status", "label", "rank", "position", "score", "base", "fused", "arms", "hops", "factors", "similarity", "rejection_reason", "rejected_for")
    class ArmsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TraceArm
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TraceArm, _Mapping]] = ...) -> None: ...
    class FactorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    ARMS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    REJECTION_REASON_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    kind: str
    scope: str
    status: str
    label: str
    rank: int
    position: int
    score: float
    base: float
    fused: float
    arms: _containers.MessageMap[str, TraceArm]
    hops: _containers.RepeatedCompositeFieldContainer[TraceHop]
    factors: _containers.ScalarMap[str, float]
    similarity: float
    rejection_reason: str
    rejected_for: str
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., status: _Optional[str] = ..., label: _Optional[str] = ..., rank: _Optional[int] = ..., position: _Optional[int] = ..., score: _Optional[float] = ..., base: _Optional[float] = ..., fused: _Optional[float] = ..., arms: _Optional[_Mapping[str, TraceArm]] = ..., hops: _Optional[_Iterable[_Union[TraceHop, _Mapping]]] = ..., factors: _Optional[_Mapping[str, float]] = ..., similarity: _Optional[float] = ..., rejection_reason: _Optional[str] = ..., rejected_for: _Optional[str] = ...) -> None: ...

class TraceArm(_message.Message):
    __slots__ = ("rank", "score")
    RANK_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    score: float
    def __init__(self, rank: _Optional[int] = ..., score: _Optional[float] = ...) -> None: ...

class TraceHop(_message.Message):
    __slots__ = ("source", "type", "contribution")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    source: str
    type: str
    contribution: float
    def __init__(self, source: _Optional[str] = ..., type: _Optional[str] = ..., contribution: _Optional[float] = ...) -> None: ...

class DocumentWrite(_message.Message):
    __slots__ = ("key", "value", "data", "expires_in")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _struct_pb2.Value
    data: str
    expires_in: float
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., data: _Optional[str] = ..., expires_in: _Optional[float] = ...) -> None: ...

class PutDocumentsRequest(_message.Message):
    __slots__ = ("collection", "documents", "scope", "if_absent")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    collection: str
    documents: _containers.RepeatedCompositeFieldContainer[DocumentWrite]
    scope: str
    if_absent: bool
    def __init__(self, collection: _Optional[str] = ..., documents: _Optional[_Iterable[_Union[DocumentWrite, _Mapping]]] = ..., scope: _Optional[str] = ..., if_absent: _Optional[bool] = ...) -> None: ...

class PutDocumentsResponse(_message.Message):
    __slots__ = ("scope", "written", "redactions")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    written: int
    redactions: int
    def __init__(self, scope: _Optional[str] = ..., written: _Optional[int] = ..., redactions: _Optional[int] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("collection", "scope", "key", "prefix", "order", "limit", "cursor", "after")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    collection: str
    scope: str
    key: str
    prefix: str
    order: str
    limit: int
    cursor: str
    after: int
    def __init__(self, collection: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., prefix: _Optional[str] = ..., order: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class DocumentBody(_message.Message):
    __slots__ = ("key", "position", "value", "data", "created_at", "updated_at", "expires_at")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    key: str
    position: int
    value: _struct_pb2.Value
    data: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, key: _Optional[str] = ..., position: _Optional[int] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., data: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[DocumentBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[DocumentBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ListCollectionsRequest(_message.Message):
    __slots__ = ("scope", "prefix", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    prefix: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., prefix: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class CollectionBody(_message.Message):
    __slots__ = ("collection", "documents", "created_at", "updated_at")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    collection: str
    documents: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, collection: _Optional[str] = ..., documents: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListCollectionsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[CollectionBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[CollectionBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DeleteDocumentsRequest(_message.Message):
    __slots__ = ("collection", "keys", "is_prefix", "scope")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    IS_PREFIX_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    collection: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    is_prefix: bool
    scope: str
    def __init__(self, collection: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., is_prefix: _Optional[bool] = ..., scope: _Optional[str] = ...) -> None: ...

class DeleteDocumentsResponse(_message.Message):
    __slots__ = ("scope", "deleted")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    scope: str
    deleted: int
    def __init__(self, scope: _Optional[str] = ..., deleted: _Optional[int] = ...) -> None: ...

class ListVaultRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListVaultResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[VaultItem]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[VaultItem, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class VaultItem(_message.Message):
    __slots__ = ("scope", "key", "secret", "readable", "version", "updated_by", "created_at", "updated_at")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    secret: bool
    readable: bool
    version: int
    updated_by: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., secret: _Optional[bool] = ..., readable: _Optional[bool] = ..., version: _Optional[int] = ..., updated_by: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class VaultGetRequest(_message.Message):
    __slots__ = ("key", "scope")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    key: str
    scope: str
    def __init__(self, key: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class VaultValue(_message.Message):
    __slots__ = ("scope", "key", "secret", "readable", "version", "updated_by", "created_at", "updated_at", "value")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    secret: bool
    readable: bool
    version: int
    updated_by: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    value: _struct_pb2.Value
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., secret: _Optional[bool] = ..., readable: _Optional[bool] = ..., version: _Optional[int] = ..., updated_by: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class VaultPutRequest(_message.Message):
    __slots__ = ("key", "scope", "value", "secret", "version")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    key: str
    scope: str
    value: _struct_pb2.Value
    secret: bool
    version: int
    def __init__(self, key: _Optional[str] = ..., scope: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., secret: _Optional[bool] = ..., version: _Optional[int] = ...) -> None: ...

class VaultWriteResponse(_message.Message):
    __slots__ = ("scope", "key", "secret", "version", "deleted", "hints")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    secret: bool
    version: int
    deleted: bool
    hints: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., secret: _Optional[bool] = ..., version: _Optional[int] = ..., deleted: _Optional[bool] = ..., hints: _Optional[_Iterable[str]] = ...) -> None: ...

class VaultDeleteRequest(_message.Message):
    __slots__ = ("key", "scope", "restore")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RESTORE_FIELD_NUMBER: _ClassVar[int]
    key: str
    scope: str
    restore: bool
    def __init__(self, key: _Optional[str] = ..., scope: _Optional[str] = ..., restore: _Optional[bool] = ...) -> None: ...

class ListVaultSuggestionsRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListVaultSuggestionsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[VaultSuggestion]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[VaultSuggestion, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class VaultSuggestion(_message.Message):
    __slots__ = ("scope", "key", "memory", "versions", "advice")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    memory: str
    versions: int
    advice: str
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., memory: _Optional[str] = ..., versions: _Optional[int] = ..., advice: _Optional[str] = ...) -> None: ...

class GetRedactionStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RedactionStatus(_message.Message):
    __slots__ = ("state", "requested_at", "finished_at", "passes", "examined", "redacted")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    EXAMINED_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    state: str
    requested_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    passes: int
    examined: int
    redacted: int
    def __init__(self, state: _Optional[str] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., passes: _Optional[int] = ..., examined: _Optional[int] = ..., redacted: _Optional[int] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[KeyBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[KeyBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class KeyBody(_message.Message):
    __slots__ = ("id", "label", "role", "reads", "writes", "project", "agent", "created_at", "expires_at", "revoked_at", "limits", "previous_expires_at", "user")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    role: str
    reads: _containers.RepeatedScalarFieldContainer[str]
    writes: _containers.RepeatedScalarFieldContainer[str]
    project: str
    agent: str
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    revoked_at: _timestamp_pb2.Timestamp
    limits: _containers.ScalarMap[str, int]
    previous_expires_at: _timestamp_pb2.Timestamp
    user: str
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., role: _Optional[str] = ..., reads: _Optional[_Iterable[str]] = ..., writes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., agent: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoked_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Mapping[str, int]] = ..., previous_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[DeadLetterBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[DeadLetterBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DeadLetterBody(_message.Message):
    __slots__ = ("seq", "at", "stream", "consumer", "subject", "reason", "deliveries", "dropped_bytes")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BYTES_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at: _timestamp_pb2.Timestamp
    stream: str
    consumer: str
    subject: str
    reason: str
    deliveries: int
    dropped_bytes: int
    def __init__(self, seq: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stream: _Optional[str] = ..., consumer: _Optional[str] = ..., subject: _Optional[str] = ..., reason: _Optional[str] = ..., deliveries: _Optional[int] = ..., dropped_bytes: _Optional[int] = ...) -> None: ...

class GetDeadLetterRequest(_message.Message):
    __slots__ = ("seq",)
    SEQ_FIELD_NUMBER: _ClassVar[int]
    seq: int
    def __init__(self, seq: _Optional[int] = ...) -> None: ...

class DeadLetterDetail(_message.Message):
    __slots__ = ("seq", "at", "stream", "consumer", "subject", "reason", "deliveries", "dropped_bytes", "data")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at: _timestamp_pb2.Timestamp
    stream: str
    consumer: str
    subject: str
    reason: str
    deliveries: int
    dropped_bytes: int
    data: str
    def __init__(self, seq: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stream: _Optional[str] = ..., consumer: _Optional[str] = ..., subject: _Optional[str] = ..., reason: _Optional[str] = ..., deliveries: _Optional[int] = ..., dropped_bytes: _Optional[int] = ..., data: _Optional[str] = ...) -> None: ...

class ReplayDeadLetterRequest(_message.Message):
    __slots__ = ("seq",)
    SEQ_FIELD_NUMBER: _ClassVar[int]
    seq: int
    def __init__(self, seq: _Optional[int] = ...) -> None: ...

class ReplayResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: int
    def __init__(self, replayed: _Optional[int] = ...) -> None: ...

class ListAuditEntriesRequest(_message.Message):
    __slots__ = ("limit", "cursor", "actor", "action", "subject", "changes", "since", "until")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    actor: str
    action: str
    subject: str
    changes: bool
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ..., actor: _Optional[str] = ..., action: _Optional[str] = ..., subject: _Optional[str] = ..., changes: _Optional[bool] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListAuditEntriesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[AuditEntryBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[AuditEntryBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class AuditEntryBody(_message.Message):
    __slots__ = ("id", "at", "key", "actor", "service", "action", "changes", "status", "problem", "subjects", "trace_id", "client")
    ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    at: _timestamp_pb2.Timestamp
    key: str
    actor: str
    service: str
    action: str
    changes: bool
    status: int
    problem: str
    subjects: _containers.RepeatedScalarFieldContainer[str]
    trace_id: str
    client: str
    def __init__(self, id: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[str] = ..., actor: _Optional[str] = ..., service: _Optional[str] = ..., action: _Optional[str] = ..., changes: _Optional[bool] = ..., status: _Optional[int] = ..., problem: _Optional[str] = ..., subjects: _Optional[_Iterable[str]] = ..., trace_id: _Optional[str] = ..., client: _Optional[str] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ("label", "role", "reads", "writes", "project", "agent", "expires_at", "limits", "user")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    label: str
    role: str
    reads: _containers.RepeatedScalarFieldContainer[str]
    writes: _containers.RepeatedScalarFieldContainer[str]
    project: str
    agent: str
    expires_at: _timestamp_pb2.Timestamp
    limits: _struct_pb2.Struct
    user: str
    def __init__(self, label: _Optional[str] = ..., role: _Optional[str] = ..., reads: _Optional[_Iterable[str]] = ..., writes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., agent: _Optional[str] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class CreatedKeyBody(_message.Message):
    __slots__ = ("id", "label", "role", "reads", "writes", "project", "agent", "created_at", "expires_at", "revoked_at", "key", "limits", "previous_expires_at", "user")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    role: str
    reads: _containers.RepeatedScalarFieldContainer[str]
    writes: _containers.RepeatedScalarFieldContainer[str]
    project: str
    agent: str
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    revoked_at: _timestamp_pb2.Timestamp
    key: str
    limits: _containers.ScalarMap[str, int]
    previous_expires_at: _timestamp_pb2.Timestamp
    user: str
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., role: _Optional[str] = ..., reads: _Optional[_Iterable[str]] = ..., writes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., agent: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoked_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[str] = ..., limits: _Optional[_Mapping[str, int]] = ..., previous_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RevokeKeyResponse(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListProjectsRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListProjectsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ProjectBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ProjectBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ProjectBody(_message.Message):
    __slots__ = ("project", "name", "scopes", "memories", "sessions", "changes")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    project: str
    name: str
    scopes: int
    memories: int
    sessions: int
    changes: int
    def __init__(self, project: _Optional[str] = ..., name: _Optional[str] = ..., scopes: _Optional[int] = ..., memories: _Optional[int] = ..., sessions: _Optional[int] = ..., changes: _Optional[int] = ...) -> None: ...

class DeleteProjectRequest(_message.Message):
    __slots__ = ("name", "cursor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    cursor: str
    def __init__(self, name: _Optional[str] = ..., cursor: _Optional[str] = ...) -> None: ...

class DeletionResponse(_message.Message):
    __slots__ = ("done", "next", "rows", "messages")
    class RowsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class MessagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    DONE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    done: bool
    next: str
    rows: _containers.ScalarMap[str, int]
    messages: _containers.ScalarMap[str, int]
    def __init__(self, done: _Optional[bool] = ..., next: _Optional[str] = ..., rows: _Optional[_Mapping[str, int]] = ..., messages: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListScopesRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListScopesResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ScopeBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ScopeBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ScopeBody(_message.Message):
    __slots__ = ("scope", "name", "kinds", "statuses", "sessions")
    class KindsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class StatusesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    name: str
    kinds: _containers.ScalarMap[str, int]
    statuses: _containers.ScalarMap[str, int]
    sessions: int
    def __init__(self, scope: _Optional[str] = ..., name: _Optional[str] = ..., kinds: _Optional[_Mapping[str, int]] = ..., statuses: _Optional[_Mapping[str, int]] = ..., sessions: _Optional[int] = ...) -> None: ...

class DeleteScopeRequest(_message.Message):
    __slots__ = ("scope", "include_descendants", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DESCENDANTS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    include_descendants: bool
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., include_descendants: _Optional[bool] = ..., cursor: _Optional[str] = ...) -> None: ...

class DeleteTenantRequest(_message.Message):
    __slots__ = ("confirm",)
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    confirm: str
    def __init__(self, confirm: _Optional[str] = ...) -> None: ...

class GetTenantSettingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TenantSettings(_message.Message):
    __slots__ = ("dream", "llm", "limits")
    DREAM_FIELD_NUMBER: _ClassVar[int]
    LLM_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    dream: DreamLimitsBody
    llm: LlmBudgetBody
    limits: TenantLimitsBody
    def __init__(self, dream: _Optional[_Union[DreamLimitsBody, _Mapping]] = ..., llm: _Optional[_Union[LlmBudgetBody, _Mapping]] = ..., limits: _Optional[_Union[TenantLimitsBody, _Mapping]] = ...) -> None: ...

class DreamLimitsBody(_message.Message):
    __slots__ = ("segments", "chars", "turns", "idle_minutes", "interval_minutes", "overrides")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    CHARS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    IDLE_MINUTES_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MINUTES_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    segments: int
    chars: int
    turns: int
    idle_minutes: float
    interval_minutes: float
    overrides: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, segments: _Optional[int] = ..., chars: _Optional[int] = ..., turns: _Optional[int] = ..., idle_minutes: _Optional[float] = ..., interval_minutes: _Optional[float] = ..., overrides: _Optional[_Iterable[str]] = ...) -> None: ...

class LlmBudgetBody(_message.Message):
    __slots__ = ("calls_per_day", "tokens_per_day", "overrides", "calls", "failed", "input_tokens", "output_tokens")
    CALLS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    calls_per_day: int
    tokens_per_day: int
    overrides: _containers.RepeatedScalarFieldContainer[str]
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    def __init__(self, calls_per_day: _Optional[int] = ..., tokens_per_day: _Optional[int] = ..., overrides: _Optional[_Iterable[str]] = ..., calls: _Optional[int] = ..., failed: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class UpdateTenantSettingsRequest(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _struct_pb2.Struct
    def __init__(self, changes: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class GetProjectSettingsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ProjectSettings(_message.Message):
    __slots__ = ("project", "context", "dream")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DREAM_FIELD_NUMBER: _ClassVar[int]
    project: str
    context: ContextBudgetsBody
    dream: DreamLimitsBody
    def __init__(self, project: _Optional[str] = ..., context: _Optional[_Union[ContextBudgetsBody, _Mapping]] = ..., dream: _Optional[_Union[DreamLimitsBody, _Mapping]] = ...) -> None: ...

class ContextBudgetsBody(_message.Message):
    __slots__ = ("hot", "warm", "stale", "session", "files", "entries", "total")
    HOT_FIELD_NUMBER: _ClassVar[int]
    WARM_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    hot: int
    warm: int
    stale: int
    session: int
    files: int
    entries: int
    total: int
    def __init__(self, hot: _Optional[int] = ..., warm: _Optional[int] = ..., stale: _Optional[int] = ..., session: _Optional[int] = ..., files: _Optional[int] = ..., entries: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class UpdateProjectSettingsRequest(_message.Message):
    __slots__ = ("name", "changes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    name: str
    changes: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., changes: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListProjectLinksRequest(_message.Message):
    __slots__ = ("name", "limit", "cursor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    limit: int
    cursor: str
    def __init__(self, name: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListProjectLinksResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ProjectLink]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[ProjectLink, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ProjectLink(_message.Message):
    __slots__ = ("project", "linked", "discoverable", "readable")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    DISCOVERABLE_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    project: str
    linked: str
    discoverable: bool
    readable: bool
    def __init__(self, project: _Optional[str] = ..., linked: _Optional[str] = ..., discoverable: _Optional[bool] = ..., readable: _Optional[bool] = ...) -> None: ...

class LinkProjectsRequest(_message.Message):
    __slots__ = ("name", "linked", "discoverable", "idempotency_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    DISCOVERABLE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    linked: str
    discoverable: bool
    idempotency_key: str
    def __init__(self, name: _Optional[str] = ..., linked: _Optional[str] = ..., discoverable: _Optional[bool] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class UnlinkProjectsRequest(_message.Message):
    __slots__ = ("name", "linked", "idempotency_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    linked: str
    idempotency_key: str
    def __init__(self, name: _Optional[str] = ..., linked: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class UnlinkProjectsResponse(_message.Message):
    __slots__ = ("project", "linked")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    project: str
    linked: str
    def __init__(self, project: _Optional[str] = ..., linked: _Optional[str] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("format", "scope")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    format: str
    scope: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, format: _Optional[str] = ..., scope: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportChunk(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ImportChunk(_message.Message):
    __slots__ = ("data", "kind", "strategy", "dry_run", "scope")
    DATA_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    kind: str
    strategy: str
    dry_run: bool
    scope: str
    def __init__(self, data: _Optional[bytes] = ..., kind: _Optional[str] = ..., strategy: _Optional[str] = ..., dry_run: _Optional[bool] = ..., scope: _Optional[str] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("created", "updated", "skipped", "forgotten", "rejected", "rejected_lines", "dry_run", "redactions")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_LINES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REDACTIONS_FIELD_NUMBER: _ClassVar[int]
    created: int
    updated: int
    skipped: int
    forgotten: int
    rejected: int
    rejected_lines: _containers.RepeatedCompositeFieldContainer[RejectedLine]
    dry_run: bool
    redactions: int
    def __init__(self, created: _Optional[int] = ..., updated: _Optional[int] = ..., skipped: _Optional[int] = ..., forgotten: _Optional[int] = ..., rejected: _Optional[int] = ..., rejected_lines: _Optional[_Iterable[_Union[RejectedLine, _Mapping]]] = ..., dry_run: _Optional[bool] = ..., redactions: _Optional[int] = ...) -> None: ...

class RejectedLine(_message.Message):
    __slots__ = ("line", "reason", "file")
    LINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    line: int
    reason: str
    file: str
    def __init__(self, line: _Optional[int] = ..., reason: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class OmittedMemory(_message.Message):
    __slots__ = ("id", "title", "kind", "section", "part", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    kind: str
    section: str
    part: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., kind: _Optional[str] = ..., section: _Optional[str] = ..., part: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class BudgetWarning(_message.Message):
    __slots__ = ("part", "used", "limit", "omitted", "message")
    PART_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    part: str
    used: int
    limit: int
    omitted: int
    message: str
    def __init__(self, part: _Optional[str] = ..., used: _Optional[int] = ..., limit: _Optional[int] = ..., omitted: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ListSkillsRequest(_message.Message):
    __slots__ = ("scope", "limit", "cursor")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    limit: int
    cursor: str
    def __init__(self, scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListSkillsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[SkillBody]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[SkillBody, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class SkillBody(_message.Message):
    __slots__ = ("id", "short_id", "scope", "key", "title", "steps", "placeholders", "tags", "version", "created_at", "updated_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SHORT_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PLACEHOLDERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    short_id: str
    scope: str
    key: str
    title: str
    steps: int
    placeholders: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    version: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., short_id: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., title: _Optional[str] = ..., steps: _Optional[int] = ..., placeholders: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., version: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "enrichment")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    ENRICHMENT_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelBody]
    enrichment: EnrichmentBacklogBody
    def __init__(self, models: _Optional[_Iterable[_Union[ModelBody, _Mapping]]] = ..., enrichment: _Optional[_Union[EnrichmentBacklogBody, _Mapping]] = ...) -> None: ...

class EnrichmentBacklogBody(_message.Message):
    __slots__ = ("waiting", "since")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    since: _timestamp_pb2.Timestamp
    def __init__(self, waiting: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ModelBody(_message.Message):
    __slots__ = ("role", "name", "location", "state", "active", "provider", "dims", "max_tokens", "licence", "embedded", "chunks", "used_for")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    USED_FOR_FIELD_NUMBER: _ClassVar[int]
    role: str
    name: str
    location: str
    state: str
    active: bool
    provider: str
    dims: int
    max_tokens: int
    licence: str
    embedded: int
    chunks: int
    used_for: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, role: _Optional[str] = ..., name: _Optional[str] = ..., location: _Optional[str] = ..., state: _Optional[str] = ..., active: _Optional[bool] = ..., provider: _Optional[str] = ..., dims: _Optional[int] = ..., max_tokens: _Optional[int] = ..., licence: _Optional[str] = ..., embedded: _Optional[int] = ..., chunks: _Optional[int] = ..., used_for: _Optional[_Iterable[str]] = ...) -> None: ...

class GetKeyRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class KeyUsageBody(_message.Message):
    __slots__ = ("id", "label", "role", "reads", "writes", "project", "agent", "created_at", "expires_at", "revoked_at", "limits", "previous_expires_at", "used", "user")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    label: str
    role: str
    reads: _containers.RepeatedScalarFieldContainer[str]
    writes: _containers.RepeatedScalarFieldContainer[str]
    project: str
    agent: str
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    revoked_at: _timestamp_pb2.Timestamp
    limits: _containers.ScalarMap[str, int]
    previous_expires_at: _timestamp_pb2.Timestamp
    used: _containers.ScalarMap[str, int]
    user: str
    def __init__(self, id: _Optional[str] = ..., label: _Optional[str] = ..., role: _Optional[str] = ..., reads: _Optional[_Iterable[str]] = ..., writes: _Optional[_Iterable[str]] = ..., project: _Optional[str] = ..., agent: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoked_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Mapping[str, int]] = ..., previous_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., used: _Optional[_Mapping[str, int]] = ..., user: _Optional[str] = ...) -> None: ...

class UpdateKeyRequest(_message.Message):
    __slots__ = ("id", "changes")
    ID_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    id: str
    changes: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., changes: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RotateKeyRequest(_message.Message):
    __slots__ = ("id", "overlap_seconds", "expires_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    overlap_seconds: int
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., overlap_seconds: _Optional[int] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TenantLimitsBody(_message.Message):
    __slots__ = ("limits", "overrides", "used")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.ScalarMap[str, int]
    overrides: _containers.RepeatedScalarFieldContainer[str]
    used: _containers.ScalarMap[str, int]
    def __init__(self, limits: _Optional[_Mapping[str, int]] = ..., overrides: _Optional[_Iterable[str]] = ..., used: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineAgent(_message.Message):
    __slots__ = ("name", "built_in", "spec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BUILT_IN_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    built_in: bool
    spec: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., built_in: _Optional[bool] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("items", "models", "tools", "servers")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[EngineAgent]
    models: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    servers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[EngineAgent, _Mapping]]] = ..., models: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., servers: _Optional[_Iterable[str]] = ...) -> None: ...

class GetAgentSpendRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AgentUse(_message.Message):
    __slots__ = ("tokens", "micro_usd")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    micro_usd: int
    def __init__(self, tokens: _Optional[int] = ..., micro_usd: _Optional[int] = ...) -> None: ...

class AgentSpend(_message.Message):
    __slots__ = ("agents", "limits")
    class AgentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AgentUse
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AgentUse, _Mapping]] = ...) -> None: ...
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.MessageMap[str, AgentUse]
    limits: _containers.ScalarMap[str, int]
    def __init__(self, agents: _Optional[_Mapping[str, AgentUse]] = ..., limits: _Optional[_Mapping[str, int]] = ...) -> None: ...

class PutAgentRequest(_message.Message):
    __slots__ = ("name", "spec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class DeleteAgentRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CreateGroupRequest(_message.Message):
    __slots__ = ("agents", "name", "project", "answers", "idempotency_key")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedScalarFieldContainer[str]
    name: str
    project: str
    answers: str
    idempotency_key: str
    def __init__(self, agents: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., project: _Optional[str] = ..., answers: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class AgentGroup(_message.Message):
    __slots__ = ("id", "name", "session", "scope", "project", "agents", "answers", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    session: str
    scope: str
    project: str
    agents: _containers.RepeatedScalarFieldContainer[str]
    answers: str
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., session: _Optional[str] = ..., scope: _Optional[str] = ..., project: _Optional[str] = ..., agents: _Optional[_Iterable[str]] = ..., answers: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[AgentGroup]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[AgentGroup, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ImageAttachment(_message.Message):
    __slots__ = ("media_type", "data")
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    data: bytes
    def __init__(self, media_type: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class PostMessageRequest(_message.Message):
    __slots__ = ("id", "text", "mentions", "files", "images", "mode", "idempotency_key")
    class FilesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    mentions: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.ScalarMap[str, str]
    images: _containers.RepeatedCompositeFieldContainer[ImageAttachment]
    mode: str
    idempotency_key: str
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., mentions: _Optional[_Iterable[str]] = ..., files: _Optional[_Mapping[str, str]] = ..., images: _Optional[_Iterable[_Union[ImageAttachment, _Mapping]]] = ..., mode: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class PostMessageResponse(_message.Message):
    __slots__ = ("id", "no", "turns", "after")
    class TurnsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NO_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    no: int
    turns: _containers.ScalarMap[str, str]
    after: int
    def __init__(self, id: _Optional[str] = ..., no: _Optional[int] = ..., turns: _Optional[_Mapping[str, str]] = ..., after: _Optional[int] = ...) -> None: ...

class ListMessagesRequest(_message.Message):
    __slots__ = ("id", "after", "limit", "before")
    ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    after: int
    limit: int
    before: int
    def __init__(self, id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ..., before: _Optional[int] = ...) -> None: ...

class GroupMessage(_message.Message):
    __slots__ = ("no", "id", "author", "content", "images", "turn", "at")
    NO_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    no: int
    id: str
    author: str
    content: str
    images: _containers.RepeatedScalarFieldContainer[str]
    turn: str
    at: _timestamp_pb2.Timestamp
    def __init__(self, no: _Optional[int] = ..., id: _Optional[str] = ..., author: _Optional[str] = ..., content: _Optional[str] = ..., images: _Optional[_Iterable[str]] = ..., turn: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetImageRequest(_message.Message):
    __slots__ = ("id", "image")
    ID_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    id: str
    image: str
    def __init__(self, id: _Optional[str] = ..., image: _Optional[str] = ...) -> None: ...

class GroupImage(_message.Message):
    __slots__ = ("id", "media_type", "size", "data")
    ID_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    media_type: str
    size: int
    data: bytes
    def __init__(self, id: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class GroupTurn(_message.Message):
    __slots__ = ("id", "chain", "parent", "depth", "agent", "mode", "status", "attempts", "requests", "tokens", "micro_usd", "outcome", "error", "created_at", "ended_at", "waits")
    ID_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICRO_USD_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    id: str
    chain: str
    parent: str
    depth: int
    agent: str
    mode: str
    status: str
    attempts: int
    requests: int
    tokens: int
    micro_usd: int
    outcome: str
    error: str
    created_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    waits: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., chain: _Optional[str] = ..., parent: _Optional[str] = ..., depth: _Optional[int] = ..., agent: _Optional[str] = ..., mode: _Optional[str] = ..., status: _Optional[str] = ..., attempts: _Optional[int] = ..., requests: _Optional[int] = ..., tokens: _Optional[int] = ..., micro_usd: _Optional[int] = ..., outcome: _Optional[str] = ..., error: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waits: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListMessagesResponse(_message.Message):
    __slots__ = ("items", "turns", "next", "previous")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupMessage]
    turns: _containers.RepeatedCompositeFieldContainer[GroupTurn]
    next: int
    previous: int
    def __init__(self, items: _Optional[_Iterable[_Union[GroupMessage, _Mapping]]] = ..., turns: _Optional[_Iterable[_Union[GroupTurn, _Mapping]]] = ..., next: _Optional[int] = ..., previous: _Optional[int] = ...) -> None: ...

class ApproveCallRequest(_message.Message):
    __slots__ = ("id", "turn", "call", "approved", "reason", "idempotency_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    id: str
    turn: str
    call: str
    approved: bool
    reason: str
    idempotency_key: str
    def __init__(self, id: _Optional[str] = ..., turn: _Optional[str] = ..., call: _Optional[str] = ..., approved: _Optional[bool] = ..., reason: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class StopTurnsRequest(_message.Message):
    __slots__ = ("id", "turn")
    ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    id: str
    turn: str
    def __init__(self, id: _Optional[str] = ..., turn: _Optional[str] = ...) -> None: ...

class TurnIds(_message.Message):
    __slots__ = ("turns",)
    TURNS_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, turns: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchGroupRequest(_message.Message):
    __slots__ = ("id", "after")
    ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    after: int
    def __init__(self, id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class GroupEvent(_message.Message):
    __slots__ = ("position", "type", "turn", "agent", "epoch", "step", "data", "alive")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    position: int
    type: str
    turn: str
    agent: str
    epoch: int
    step: int
    data: _struct_pb2.Struct
    alive: bool
    def __init__(self, position: _Optional[int] = ..., type: _Optional[str] = ..., turn: _Optional[str] = ..., agent: _Optional[str] = ..., epoch: _Optional[int] = ..., step: _Optional[int] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., alive: _Optional[bool] = ...) -> None: ...
