"""A tenant with one of everything that pages show, in texts that try to be markup."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from reverie_services.console.action import Action
from reverie_services.console.actions import ACTIONS
from tests.support.dead_letters import bury
from tests.support.stack import Stack

HOSTILE = (
    "<reverie-hostile onmouseover=alert(1)>'\"><script>alert(2)</script>"
    "<img src=x onerror=alert(3)></textarea></title></pre><svg onload=alert(4)> {{ 7 * 7 }} "
    "${7*7} &lt;b&gt; "
    "javascript:alert(5) \u202egnp.exe\u202c \u0627\u0644\u0633\u0644\u0627\u0645 \x1b[31m"
)
"""Markup, scripts, templates, escapes, and writing that turns its direction."""
SCOPE = "project/harbour"

NOWHERE = "01900000-0000-7000-8000-000000000000"
"""An id of nothing."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""

DISTINCT = (
    "The crane lifts four tonnes.",
    "Grain is stored in the north silo.",
    "Rope is renewed in the month of March.",
    "Pilots speak Danish on channel nine.",
    "The tide table hangs in the office.",
)
"""Texts that nobody takes for duplicates of each other."""


@dataclass
class Sample:
    """The ids of what was made."""

    memory: str
    other: str
    task: str
    session: str
    trace: str
    edge: str
    picture: str
    """The address of the memory's picture."""
    pages: list[str] = field(default_factory=list)

    def subject_of(self, action: Action) -> str:
        """An id of what an action is about."""
        subjects = {
            "memory": self.task if action.name == "move-task" else self.memory,
            "link": self.edge,
            "webhook": "github/harbour",
            "project": "harbour",
        }
        return subjects.get(action.subject, SCOPE if action.subject == "scope" else NOWHERE)


async def fill(stack: Stack, text: str = HOSTILE) -> Sample:
    """One of everything, all with that text; `pages` are the addresses that show it."""
    session = (
        await stack.post(
            "/v1/sessions/start", {"agent": "pilot", "project": "harbour", "branch": "main"}
        )
    )["session"]

    memory = await remember(
        stack,
        f"The sluice opens at nine. {text}",
        tags=[f"tag{number}{text[:40]}" for number in range(40)],
        summary=f"Sluice {text}",
        session=session,
        metadata={text[:60]: text},
    )
    other = await remember(stack, f"The crane lifts four tonnes. {text}", kind="decision")
    task = await remember(stack, f"Paint the bollards. {text}", kind="task")
    await remember(
        stack, f"Moor a barge {text}", kind="skill", steps=[f"Throw the line {text}", "Pull"]
    )
    edge = await stack.post("/v1/links", {"from": memory, "to": other, "type": "relates_to"})
    letter = await bury(stack, f"broken {text}", f'{{"said": "{text}"}}'.encode())
    await stack.call(
        "PATCH", f"/v1/memories/{memory}", {"content": f"At ten. {text}", "reason": text}
    )
    picture = await attach(stack, memory, PNG, name=text[:60], text=text)
    fact = {"topic": "tides", "statement": f"High water is at six. {text}", "confidence": "high"}
    await stack.post("/v1/facts", {**fact, "verified": "2026-01-31", "scope": SCOPE})
    turns = [{"role": role, "content": f"{role} says {text}"} for role in ("user", "assistant")]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    answer = await stack.post("/v1/recall", {"query": f"sluice {text}", "session": session})
    trace = answer["trace_id"]
    paths = [
        *("", "/memories", "/recalls", "/sessions", "/dreams", "/stale", "/reviews", "/graph"),
        *("/chat", "/tasks", "/skills", "/facts", "/summaries", "/keys", "/projects", "/scopes"),
        *("/webhooks", "/audit", "/models", "/settings", "/counts", "/ask", "/dead-letters"),
        *("/settings?project=harbour", f"/dead-letters/{letter}"),
        f"/summaries/history?scope={quote(SCOPE, safe='')}",
        f"/memories?scope={quote(SCOPE, safe='')}&tag={quote(text[:60])}",
        f"/memories/{memory}",
        f"/sessions/{session}",
        f"/sessions/{session}?step=1",
        f"/recalls/{trace}?text={quote(text)}",
        f"/graph?from={memory}",
        f"/graph?from={quote(text)}",
        f"/ask?q={quote(text)}&kinds=lesson&limit=5",
        f"/ask?q=sluice&before={trace}",
        f"/do/edit?id={memory}&next={quote(text)}",
        f"/do/forget?id={memory}&id={other}",
        f"/do/link?id={memory}&to={quote(text)}",
        f"/do/dream?id={quote(text)}",
    ]
    address = f"/memories/{memory}/pictures/{picture}"
    sample = Sample(memory, other, task, session, trace, str(edge["id"]), address, paths)
    paths += [
        f"/do/{name}?id={quote(sample.subject_of(action), safe='')}"
        for name, action in ACTIONS.items()
    ]
    return sample


async def remember(stack: Stack, content: str, **more: Any) -> str:
    """The id of a new memory."""
    body = {"content": content, "scope": SCOPE, **more}
    return str((await stack.post("/v1/remember", body))["id"])


async def attach(stack: Stack, memory: str, data: bytes, **more: Any) -> str:
    """The hash of a picture that the memory carries from now on."""
    body = {"data": base64.b64encode(data).decode(), **more}
    return str((await stack.post(f"/v1/memories/{memory}/pictures", body))["hash"])


async def dream(stack: Stack, sample: Sample) -> str:
    """The id of a dream over the session of the sample."""
    await stack.post(f"/v1/sessions/{sample.session}/end", {})
    await stack.settled()
    return str((await stack.get("/v1/dreams"))["items"][0]["id"])
