"""No interface stores or returns a credential, whichever text field holds it."""

from __future__ import annotations

import base64
import importlib
import io
import json
import pkgutil
import tarfile
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import psycopg
import pytest
from pydantic import BaseModel

from reverie import contracts
from reverie.contracts.admin import CreateKeyRequest, UpdateKeyRequest
from reverie.contracts.base import RequestBody
from reverie.contracts.context import PreflowRequest
from reverie.contracts.documents import DocumentWrite, PutDocumentsRequest
from reverie.contracts.memories.edits import (
    EditMemoryRequest,
    EraseMemoryRequest,
    FeedbackRequest,
    RollbackRequest,
)
from reverie.contracts.memories.git import (
    FileChange,
    GitChange,
    HunkBody,
    MovedLines,
    SymbolChange,
)
from reverie.contracts.memories.graph import CreateLinkRequest
from reverie.contracts.memories.memories import RememberEdge, RememberRequest
from reverie.contracts.memories.pictures import AttachPictureRequest
from reverie.contracts.memories.typed_memories import AddFactRequest
from reverie.contracts.sessions import (
    AppendTurnsRequest,
    CorrectionMessage,
    CorrectSessionRequest,
    EndSessionRequest,
    NewTurnBody,
    StartSessionRequest,
)
from tests.support.stack import Stack
from tests.support.tables import TABLES, rows

KEY = "AKIA" + "QWERTYUIOPASDFGH"
PICTURE = base64.b64encode(f"<svg><text>is {KEY}</text></svg>".encode()).decode()
SHA = "c" * 40
NOTHING = object()

FIXED: dict[type[BaseModel], dict[str, Any]] = {
    RememberRequest: {"kind": "skill", "scope": "global"},
    RememberEdge: {"type": "relates_to"},
    EditMemoryRequest: {"kind": "lesson"},
    AddFactRequest: {
        "scope": "global",
        "domains": ["example.org"],
        "verified": "2026-01-01",
        "confidence": "high",
    },
    AttachPictureRequest: {"data": PICTURE},
    DocumentWrite: {"value": {"text": KEY}},
    PutDocumentsRequest: {
        "scope": "global",
        "collection": "log",
        "documents": [{"key": "a", "value": {"text": KEY}}],
    },
    EraseMemoryRequest: {},
    FeedbackRequest: {"verdict": "edit"},
    RollbackRequest: {"version": 1},
    CreateLinkRequest: {"type": "touches"},
    NewTurnBody: {"role": "tool"},
    CorrectionMessage: {"role": "user"},
    FileChange: {"status": "modified", "commit": SHA, "old_blob": SHA, "new_blob": SHA},
    HunkBody: {"old_start": 1, "old_lines": 1, "new_start": 1, "new_lines": 1},
    MovedLines: {"old_start": 1, "lines": 1, "new_start": 1},
    SymbolChange: {"change": "added"},
    GitChange: {
        "after": SHA,
        "before": SHA,
        "v": 1,
        "commits": [{"sha": SHA, "subject": f"x {KEY}", "committed_at": "2026-01-01T00:00:00Z"}],
    },
    PreflowRequest: {"budget_tokens": 500, "scopes": ["global"]},
    UpdateKeyRequest: {"limits": {}},
    CreateKeyRequest: {
        "limits": {},
        "reads": ["*"],
        "writes": ["*"],
        "agent": "a",
        "user": "u",
        "project": "p",
    },
}
"""What cannot hold any text, per body; the rest of the fields is filled with a credential."""

WITHOUT_TEXT = {
    "ClaimTaskRequest", "ContextBudgetsUpdate", "DeleteTenantRequest", "DreamLimitsUpdate",
    "DreamRequest", "ForgetScopeRequest", "KeyLimits", "LinkProjectsRequest", "LlmBudgetUpdate",
    "MoveTaskRequest", "PredictRequest", "RecallProjectsRequest", "RecallRequest",
    "ReleaseTaskRequest",     "RememberBatchRequest", "RotateKeyRequest",
    "SetWebhookRequest", "TenantLimitsUpdate", "UpdateProjectSettingsRequest",
    "UpdateTenantSettingsRequest", "VaultPutRequest", "DeleteDocumentsRequest",
    "ForgetBatchRequest",
}  # fmt: skip
"""Bodies that store no text of theirs: names that become slugs, questions, and the vault's own."""


OF_THE_ENGINE = {
    *("AgentBody", "AgentBudget", "ApproveRequest", "CreateGroupRequest", "ImageAttachment"),
    *("PostMessageRequest", "StopRequest"),
}
"""`tests/engine/test_redaction.py` sends these, as the engine does not run here."""


def bodies() -> Iterator[type[RequestBody]]:
    """Every request model of the contracts."""
    for module in pkgutil.iter_modules(contracts.__path__):
        found = importlib.import_module(f"{contracts.__name__}.{module.name}")
        for value in vars(found).values():
            if (
                isinstance(value, type)
                and issubclass(value, RequestBody)
                and value is not RequestBody
            ):
                yield value


def dirty(model: type[BaseModel], **given: Any) -> dict[str, Any]:
    """A body whose text fields all hold a credential."""
    body = {**FIXED.get(model, {}), **given}
    for name, field in model.model_fields.items():
        if (field.alias or name) not in body:
            value = made(field.annotation)
            if value is not NOTHING:
                body[field.alias or name] = value
    return body


def made(annotation: Any) -> Any:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return made(inner[0])
    if origin in {Union, types.UnionType}:
        return next((v for v in map(made, inner) if v is not NOTHING), NOTHING)
    if origin is list:
        one = made(inner[0])
        return NOTHING if one is NOTHING else [one]
    if origin is dict:
        return {"note": f"is {KEY}", KEY: [KEY]} if inner[1] is Any else NOTHING
    if annotation is str:
        return f"x {KEY}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return dirty(annotation)
    return NOTHING


def stored(admin_url: str) -> str:
    """All rows of all tables, as text."""
    with psycopg.connect(admin_url, options="-csearch_path=reverie,public") as connection:
        names = [name for (name,) in rows(admin_url, TABLES, "reverie")]
        return "\n".join(
            str(row)
            for name in names
            for row in connection.execute(f'select t::text from "{name}" t'.encode()).fetchall()
        )


async def build_calls(stack: Stack) -> list[tuple[str, str, dict[str, Any]]]:
    """Each call that writes, with a body full of credentials."""
    one = (await stack.post("/v1/remember", {"content": "The gateway listens on one port"}))["id"]
    two = (await stack.post("/v1/remember", {"content": "The store keeps rows by tenant"}))["id"]
    session = (await stack.post("/v1/sessions/start", {"agent": "c"}))["session"]
    edges = [dirty(RememberEdge, to=one)]
    git = {"branch": f"b {KEY}", "files": [f"{KEY}.py"]}
    remember = dirty(RememberRequest, edges=edges, git=git)
    code = await stack.post("/v1/remember", {"content": "see a.py", "scope": "project/p"})
    symbol = {"name": f"x {KEY}", "lines": [1, 2]}
    place = {"branch": f"b {KEY}", "symbols": {f"{KEY}.py": [symbol], "a.py": [symbol]}}
    anchors = {"project": "p", "anchors": [{"memory": code["id"], "git": place}]}
    gone = (await stack.post("/v1/remember", {"content": "to be erased"}))["id"]
    key = f"/v1/admin/keys/{(await stack.post('/v1/admin/keys', {'label': 'guest'}))['id']}"
    correction = dirty(CorrectSessionRequest, diff=f"No longer x {KEY}, use {KEY}")
    posts: list[tuple[str, dict[str, Any]]] = [
        ("/v1/git/anchors", anchors),
        ("/v1/remember", remember),
        ("/v1/remember/batch", {"items": [{**remember, "key": f"other {KEY}"}]}),
        (f"/v1/memories/{one}/feedback", dirty(FeedbackRequest)),
        (f"/v1/memories/{one}/rollback", dirty(RollbackRequest)),
        (f"/v1/memories/{two}/pictures", dirty(AttachPictureRequest)),
        (f"/v1/memories/{gone}/erase", dirty(EraseMemoryRequest)),
        ("/v1/links", dirty(CreateLinkRequest, **{"from": one, "to": two})),
        ("/v1/documents", dirty(PutDocumentsRequest)),
        ("/v1/facts", dirty(AddFactRequest)),
        ("/v1/sessions/start", dirty(StartSessionRequest)),
        ("/v1/turns", dirty(AppendTurnsRequest, session=session)),
        (f"/v1/sessions/{session}/correct", correction),
        (f"/v1/sessions/{session}/end", dirty(EndSessionRequest)),
        ("/v1/git/changes", dirty(GitChange)),
        ("/v1/admin/keys", dirty(CreateKeyRequest)),
        ("/v1/preflow", dirty(PreflowRequest, session=session, scopes=None)),
    ]
    return [
        ("PATCH", key, dirty(UpdateKeyRequest)),
        ("PATCH", f"/v1/memories/{one}", dirty(EditMemoryRequest)),
        *(("POST", path, body) for path, body in posts),
    ]


async def test_a_credential_in_any_text_field_of_any_call_reaches_no_row_log_or_reply(
    alone: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    for method, path, body in await build_calls(alone):
        assert KEY in json.dumps(body), path
        reply = await alone.call(method, path, body)
        assert reply.status < 300, (path, reply.body)
        assert KEY not in json.dumps(reply.body), path
        assert KEY not in stored(alone.admin_url), path
    line = {"type": "memory", "content": f"imported {KEY}", "kind": "decision", "scope": "global"}
    await alone.call("POST", "/v1/import", line)
    await alone.settled()
    assert KEY not in stored(alone.admin_url)
    written = capfd.readouterr()
    assert KEY not in written.out + written.err


def packed(name: str, text: str) -> bytes:
    """A tar with one file."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text.encode())
        archive.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


async def test_imported_files_and_vault_names_store_no_credential(
    alone: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    memory = f"# The gateway\n\nThe gateway uses {KEY} for staging.\n"
    for kind, data in (
        ("text/markdown", memory.encode()),
        ("application/x-tar", packed("global/memory.md", memory)),
        ("application/x-tar", packed(f"{KEY}/memory.md", memory)),
        ("application/x-tar", packed(f"global/{KEY}.md", memory)),
    ):
        path = "/v1/import?scope=global" if kind == "text/markdown" else "/v1/import"
        reply = await alone.call("POST", path, data=data, headers={"Content-Type": kind})
        assert KEY not in json.dumps(reply.body), kind
    reply = await alone.call("PUT", f"/v1/vault/{KEY}", {"value": 1})
    assert reply.status == 422
    assert KEY not in json.dumps(reply.body)
    await alone.settled()
    assert KEY not in stored(alone.admin_url)
    written = capfd.readouterr()
    assert KEY not in written.out + written.err


async def test_a_refusal_does_not_quote_the_credential_it_refused(stack: Stack) -> None:
    for body in (
        {"content": "x", "scope": f"team/{KEY}"},
        {"content": "x", "kind": KEY},
        {"content": "x", "session": KEY},
        {"content": "x", "edges": [{"to": KEY, "type": "touches"}]},
    ):
        reply = await stack.call("POST", "/v1/remember", body)
        assert reply.status == 422
        assert KEY not in json.dumps(reply.body), body


def test_every_request_model_with_text_is_covered() -> None:
    inner = {"CommitBody", "GitLocation", "MemoryAnchor", "SymbolLocation"}
    sent = {model.__name__ for model in FIXED} | {
        "AnchorMemoriesRequest",
        "AppendTurnsRequest",
        "CorrectSessionRequest",
        "EndSessionRequest",
        "StartSessionRequest",
    }
    unsent = {model.__name__ for model in bodies()} - sent - inner - WITHOUT_TEXT - OF_THE_ENGINE
    assert unsent == set(), "send them in `build_calls`, full of credentials"
