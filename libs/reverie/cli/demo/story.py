"""The story of the sample day, read from day.json."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib.resources import files

from pydantic import Field

from reverie.contracts.base import RequestBody
from reverie.contracts.memories.git import GitChange
from reverie.contracts.memories.memories import RememberRequest
from reverie.contracts.sessions import NewTurnBody

END_OFFSET = timedelta(minutes=30)


class SampleNote(RequestBody):
    """A fact that the agent stores with `remember`.

    A secret is stored in pieces that are joined when the day is played, so that the repository
    contains nothing that looks like a secret.
    """

    name: str
    body: RememberRequest
    secret: list[str] = Field(default_factory=list)

    def to_request(self) -> RememberRequest:
        """The body as it is sent, with the secret in its place."""
        content = self.body.content.replace("{secret}", self.secret_text())
        return self.body.model_copy(update={"content": content})

    def secret_text(self) -> str:
        """The invented secret, or an empty string."""
        return "".join(self.secret)


class SampleConversation(RequestBody):
    """A session between the developer and the agent, oldest turn first."""

    id: str
    title: str
    turns: list[NewTurnBody] = Field(min_length=1)


class SampleQuestion(RequestBody):
    """A question, a word that its answer must contain, and the turns that contain it.

    `told_in`: the conversation that answers it, or `remember`, or `commit`.
    """

    ask: str
    expect: str
    told_in: str
    turns: list[str] = Field(default_factory=list)


class ExpectedStale(RequestBody):
    """A remembered note that a commit makes stale."""

    memory: str
    path: str
    commit: str
    grades: list[str]


class SampleStory(RequestBody):
    """The whole story. `amendment` changes what a conversation decided; nothing in it answers
    `unanswered`."""

    project: str
    about: str
    developer: str
    agent: str
    branch: str
    remember: list[SampleNote]
    conversations: list[SampleConversation]
    amendment: SampleConversation
    unanswered: str
    questions: list[SampleQuestion]
    changes: list[GitChange]
    stale: list[ExpectedStale]


def read_story() -> SampleStory:
    """The story in the package."""
    text = files(__package__).joinpath("day.json").read_text(encoding="utf-8")
    return SampleStory.model_validate_json(text)


def shift_conversations(
    conversations: list[SampleConversation], now: datetime
) -> list[SampleConversation]:
    """The conversations moved in time, so that the last turn was half an hour before `now`."""
    last = max(turn.at for conversation in conversations for turn in conversation.turns if turn.at)
    shift = now - END_OFFSET - last
    return [
        conversation.model_copy(
            update={
                "turns": [
                    turn.model_copy(update={"at": turn.at + shift}) if turn.at else turn
                    for turn in conversation.turns
                ]
            }
        )
        for conversation in conversations
    ]


def rebase_change(change: GitChange, project: str, now: datetime) -> GitChange:
    """The change for a project of another name, with its commits made `now`."""
    commits = [commit.model_copy(update={"committed_at": now}) for commit in change.commits]
    return change.model_copy(update={"project": project, "commits": commits})
