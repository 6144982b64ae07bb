"""Groups: what waits is done together, in the order in which it came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice, takewhile
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 8
"""How many make a group: as many texts as a model takes at once."""

Work = Callable[[list[T]], Awaitable[Sequence[R]]]
"""What is done with a group; it answers one thing for each, in their order."""


class _Waiting:
    """One that waits. `told` is done when its answer is there, or when it is to lead a group."""

    def __init__(self, one: Any) -> None:
        self.one = one
        self.told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.alone = self.answered = False
        self.answer: Any = None

    def tell(self) -> None:
        if not self.told.done():
            self.told.set_result(None)


class Groups:
    """A queue for each tenant: they share nothing, so that none waits for another's.

    Who is first in a queue does the work for those behind it too. Where a group fails, each is
    done by itself, so that none fails for another.
    """

    def __init__(self, most: int = AT_ONCE) -> None:
        self._most = most
        self._queues: dict[int, deque[_Waiting]] = {}

    async def do(self, tenant: int, work: Work[T, R], one: T) -> R:
        """What `work` answers of one, done together with what waits beside it.

        It begins when all that came before have ended, however they did.
        """
        mine, queue = _Waiting(one), self._queues.setdefault(tenant, deque())
        queue.append(mine)
        try:
            if queue[0] is not mine:
                await mine.told
            if not mine.answered:
                # Those that come in the same moment come along.
                await asyncio.sleep(0)
                await self._led(queue, mine, work)
            answer: R = mine.answer
            return answer
        finally:
            self._leave(tenant, queue, mine)

    async def _led(self, queue: deque[_Waiting], mine: _Waiting, work: Work[Any, Any]) -> None:
        """Does what is first in the queue; `mine` is among it."""
        group = [mine] if mine.alone else self._first(queue)
        try:
            answers = await work([waiting.one for waiting in group])
        except Exception:
            if len(group) == 1:
                raise
            for waiting in group:
                waiting.alone = True
            await self._led(queue, mine, work)
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.answered, waiting.answer = True, answer

    def _first(self, queue: deque[_Waiting]) -> list[_Waiting]:
        return list(takewhile(lambda waiting: not waiting.alone, islice(queue, self._most)))

    def _leave(self, tenant: int, queue: deque[_Waiting], mine: _Waiting) -> None:
        """Who led lets those on that got their answers, and then whoever is first."""
        leads = bool(queue) and queue[0] is mine
        if mine in queue:
            queue.remove(mine)
        if not leads:
            return
        while queue and queue[0].answered:
            queue.popleft().tell()
        if queue:
            queue[0].tell()
        else:
            del self._queues[tenant]


class Order:
    """The groups that a memory goes through: to be read, to the models, and to be written."""

    def __init__(self) -> None:
        self.read, self.models, self.written = Groups(), Groups(), Groups()
