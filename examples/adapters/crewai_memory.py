"""A crew that remembers between its runs; its model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, nothing else changes.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.memory import Memory

from reverie.adapters.crewai import ReverieStorage, carry_text
from reverie.client import Reverie


class ScriptedModel(BaseLLM):
    """A model that answers by what it was told with its task."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        """Knows the currency if memory tells it."""
        known = "in cents" in str(messages)
        return "Final Answer: " + ("In cents." if known else "I do not know.")


def ask(memory: Memory, question: str) -> str:
    """What a crew of one answers, which has that memory."""
    model = ScriptedModel(model="scripted")
    clerk = Agent(role="Clerk", goal="Answer", backstory="Keeps the shop.", llm=model)
    task = Task(description=question, expected_output="One sentence.", agent=clerk)
    crew = Crew(agents=[clerk], tasks=[task], memory=memory)
    answer = str(crew.kickoff().raw)
    memory.close()
    return answer


def main() -> None:
    """What one memory keeps, a crew with another one knows."""
    with Reverie(os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]) as client:

        def open_memory() -> Memory:
            return Memory(
                storage=ReverieStorage(client, scope="project/shop"),
                embedder=carry_text,
                llm=ScriptedModel(model="scripted"),
            )

        print(ask(open_memory(), "How are prices kept?"))
        first = open_memory()
        kept = first.remember(
            "Prices are kept in cents.", scope="/shop", categories=["money"], importance=0.9
        )
        print(kept.content if kept else "nothing was kept")
        first.close()
        print(ask(open_memory(), "How are prices kept?"))


if __name__ == "__main__":
    main()
