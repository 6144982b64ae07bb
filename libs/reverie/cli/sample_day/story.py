"""What happens on the sample day: read from day.json, told in the words of the contracts."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib.resources import files

from pydantic import Field

from reverie.contracts.base import Request
from reverie.contracts.git import GitChange
from reverie.contracts.memories import Remember
from reverie.contracts.sessions import NewTurn

TAIL = timedelta(minutes=30)


class Note(Request):
    """Something the agent is told to remember.

    A secret stands in pieces, put together only when the day is played, so that the
    repository holds nothing that looks like one.
    """

    name: str
    body: Remember
    secret: list[str] = Field(default_factory=list)

    def spoken(self) -> Remember:
        """The body as it is sent, with the secret in its place."""
        content = self.body.content.replace("{secret}", self.key())
        return self.body.model_copy(update={"content": content})

    def key(self) -> str:
        """The made-up secret, or an empty string."""
        return "".join(self.secret)


class Conversation(Request):
    """A session between the developer and the agent, oldest turn first."""

    id: str
    title: str
    turns: list[NewTurn] = Field(min_length=1)


class Question(Request):
    """A question with a word that its answer must hold, and the turns that tell it."""

    ask: str
    expect: str
    told_in: str
    turns: list[str] = Field(default_factory=list)


class Doubt(Request):
    """A remembered note that a commit puts in doubt."""

    memory: str
    path: str
    commit: str
    grades: list[str]


class Story(Request):
    """The whole day."""

    project: str
    about: str
    developer: str
    agent: str
    branch: str
    remember: list[Note]
    conversations: list[Conversation]
    questions: list[Question]
    changes: list[GitChange]
    stale: list[Doubt]


def read_story() -> Story:
    """The day as it lies in the package."""
    text = files(__package__).joinpath("day.json").read_text(encoding="utf-8")
    return Story.model_validate_json(text)


def retold(conversations: list[Conversation], now: datetime) -> list[Conversation]:
    """The conversations moved in time, so that the last word fell half an hour before `now`."""
    last = max(turn.at for talk in conversations for turn in talk.turns if turn.at)
    shift = now - TAIL - last
    return [
        talk.model_copy(update={"turns": [_moved(turn, shift) for turn in talk.turns]})
        for talk in conversations
    ]


def committed(change: GitChange, project: str, now: datetime) -> GitChange:
    """The change as it reaches a project of another name, with its commits made `now`."""
    commits = [commit.model_copy(update={"committed_at": now}) for commit in change.commits]
    return change.model_copy(update={"project": project, "commits": commits})


def _moved(turn: NewTurn, shift: timedelta) -> NewTurn:
    return turn.model_copy(update={"at": turn.at + shift}) if turn.at else turn
