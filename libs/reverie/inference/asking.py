"""What asking a language model takes and gives: an endpoint, a prompt, a tally, a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, SecretStr

from reverie.domain.errors import Misconfigured

Provider = Literal["none", "openai", "anthropic"]
Form = Literal["tool", "schema", "text"]
Shape = TypeVar("Shape", bound=BaseModel)

ADDRESSES = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


@dataclass(frozen=True)
class LanguageEndpoint:
    """Where a language model answers, and how it is asked.

    `form`: the answer comes as a call of a tool, by a JSON schema, or as JSON in the text.
    `seconds` for one call; `attempts` of them where the first is refused as too many or fails,
    `pause` seconds before the second at most, more before the next.
    """

    provider: Provider
    model: str
    url: str
    key: str | None = field(default=None, repr=False)
    form: Form = "tool"
    seconds: float = 60.0
    attempts: int = 3
    answer_tokens: int = 4_000
    pause: float = 0.5


class LanguageSettings(Protocol):
    """What the settings say of a language model."""

    @property
    def llm_provider(self) -> Provider: ...
    @property
    def llm_url(self) -> str | None: ...
    @property
    def llm_key(self) -> SecretStr | None: ...
    @property
    def llm_model(self) -> str: ...
    @property
    def llm_form(self) -> Form: ...
    @property
    def llm_seconds(self) -> float: ...


def language_endpoint(settings: LanguageSettings) -> LanguageEndpoint | None:
    """The endpoint of the settings; None where they name no provider. Raises `Misconfigured`."""
    provider, model = settings.llm_provider, settings.llm_model.strip()
    if provider == "none":
        return None
    if not model:
        raise Misconfigured("llm_model", "say which model of llm_provider is to be asked")
    address = (settings.llm_url or ADDRESSES[provider]).rstrip("/")
    secret = settings.llm_key.get_secret_value() if settings.llm_key else None
    form, seconds = settings.llm_form, settings.llm_seconds
    return LanguageEndpoint(provider, model, address, secret, form, seconds)


class Unanswered(Exception):
    """The model gave no answer that can be used; the text is a reason without any content."""


class Again(Unanswered):
    """Not answered, and worth another try, `after` seconds if the endpoint said so."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Refused(Unanswered):
    """The budget is spent, or the model rests after failures: nothing was sent."""


class Ledger(Protocol):
    """Counts what each tenant asks in a day."""

    async def take(self, tenant: int) -> bool:
        """Whether one more call fits the day's budget; it is counted then, come what may."""
        ...

    async def book(self, tenant: int, calls: int, failed: int, sent: int, received: int) -> None:
        """Counts further calls, those that failed, and tokens sent and received."""
        ...


@dataclass
class Spent:
    """What one question cost: requests sent, tokens sent and received."""

    requests: int = 0
    sent: int = 0
    received: int = 0


@dataclass
class Tally:
    """What one piece of work has asked: calls, those in vain, tokens, and why it made do."""

    calls: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0
    degraded: str | None = None

    def add(self, calls: int, failed: int, spent: Spent) -> None:
        """Adds what one question cost."""
        self.calls += calls
        self.failed += failed
        self.sent += spent.sent
        self.received += spent.received

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return self.sent + self.received
