"""What a handler raises to steer its message: later again, or never."""

from __future__ import annotations


class Retry(Exception):
    """The message is to be delivered again after `after` seconds; it counts as a delivery."""

    def __init__(self, after: float = 1.0, reason: str = "the handler asked for another try"):
        super().__init__(reason)
        self.after = after


class Reject(Exception):
    """The message can never be handled: it goes to the dead letters with the reason."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def one_tenant(subject: str, body: str | None) -> bool:
    """Whether subject and body of a message speak of one tenant, by name; False where it is gone.

    Who may publish for one tenant must not have another's rows read. Raises `Reject` for a body of
    another tenant.
    """
    if body is not None and body != subject:
        raise Reject("its body speaks of another tenant than its subject")
    return body is not None
