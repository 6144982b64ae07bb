"""Three sessions with an agent: a decision is made, it is needed, and it is beside the point."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.agents.programs import AgentProgram
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ChatServer, ToolUse, chat_server

ROOT = Path(__file__).parents[2]
SERVICES = ("RECALL", "INGEST", "DREAM", "STALENESS", "GRPC", "POSTGRES", "NATS")
LONGEST_SECONDS = 120
DIGEST_SECONDS = 60

DECIDE = (
    "The sums of our orders in src/prices.py are a cent off, because prices are floats. "
    "How shall we store prices from now on?"
)
DECISION = (
    "Decision: we store every price as a whole number of cents in src/prices.py, "
    "because sums of floats lost a cent an order. Decimal was refused, because it was too slow."
)
DECIDED = "whole number of cents"
NEED = "Write the function that adds the delivery fee to the prices of an order."
TRAP = "round_tax in src/tax.py must round half up: the tax office refused banker's rounding."
TRAP_WORDS = "refused banker's rounding"
TAX_LINE = "    return round(amount * 0.19)"
UNRELATED = "Which stars belong to the Big Dipper?"


@dataclass(frozen=True)
class StoryResult:
    """What was seen of one agent. An empty `stopped` means that the story was played to its end.

    `handed_over`: the turns that arrived. `digested`: whether the decision is a memory.
    `recalled`: how often it stood in the second session's first request. `warned`: what the model
    had been asked or told when it read the trap's warning. `silent`: whether the third session was
    given nothing.
    """

    agent: str
    version: str = ""
    stopped: str = ""
    handed_over: int = 0
    digested: bool = False
    recalled: int = 0
    warned: str = ""
    silent: bool = False


async def play_story(
    program: AgentProgram, programs: Path, home: Path, uses_plugin: bool = False
) -> StoryResult:
    """Plays the three sessions in a home of their own, on a Reverie of its own.

    `uses_plugin`: Reverie comes by the agent's own command for plugins, not by `reverie setup`.
    """
    shop, sky = home / "shop", home / "sky"
    for folder in (shop, sky):
        folder.mkdir(parents=True)
    result = StoryResult(program.name)
    async with chat_server(lambda _: ChatAnswer("Done.")) as model:
        environ = _build_environ(program, programs, home, model.url)
        result = replace(result, version=_run([program.words[0], "--version"], shop, environ))
        with _running_reverie(home, environ):
            program.write_config(home, model.url, [shop, sky])
            for folder in (shop, sky):
                _make_project(folder, environ)
                if not uses_plugin:
                    _run(["reverie", "setup", program.name, "--yes"], folder, environ)
            for command in program.plugin if uses_plugin else ():
                words = command.format(home=home, root=ROOT).split()
                _run(words, home, environ)
            player = _Player(program, model, environ)
            try:
                return await _play(player, result, shop, sky)
            except (subprocess.SubprocessError, StoryStopped) as error:
                return replace(result, stopped=str(error))


class StoryStopped(Exception):
    """The agent does not get further in the story, and says why."""


async def _play(player: _Player, result: StoryResult, shop: Path, sky: Path) -> StoryResult:
    await player.say(shop, DECIDE, [DECISION])
    result = replace(result, handed_over=len(await player.find_turns(shop)))
    result = replace(result, digested=await player.waits_for_memory(shop))
    player.reverie(
        ["remember", TRAP, "--kind", "bug", "--file", "src/tax.py", "--project", "shop"], shop
    )
    tax = shop / "src/tax.py"
    edit = player.program.edit(tax, TAX_LINE, TAX_LINE.replace("0.19", "0.2"))
    requests = await player.say(shop, NEED, [player.program.read(tax), edit, "Done."])
    first = requests[0].body_text
    result = replace(result, recalled=first.count(DECIDED), warned=_find_warning(requests))
    if TAX_LINE in tax.read_text():
        raise StoryStopped("the agent did not make the edit that its model asked for")
    requests = await player.say(sky, UNRELATED, ["Seven."])
    given = "".join(request.body_text for request in requests)
    return replace(result, silent=DECIDED not in given and TRAP_WORDS not in given)


def _find_warning(requests: list[ChatRequest]) -> str:
    """The first request that holds the trap's warning: the prompt, after reading, or the edit."""
    names = ("with the prompt", "after it read the file", "with the edit")
    found = (
        name for name, each in zip(names, requests, strict=False) if TRAP_WORDS in each.body_text
    )
    return next(found, "")


@dataclass
class _Player:
    program: AgentProgram
    model: ChatServer
    environ: Mapping[str, str]

    async def say(
        self, folder: Path, prompt: str, answers: list[str | ToolUse]
    ) -> list[ChatRequest]:
        """One session: the prompt, and what the model answers in turn; returns its requests."""
        seen: list[ChatRequest] = []

        def script(request: ChatRequest) -> ChatAnswer:
            # Agents also ask for a title, and without tools.
            if not request.tools:
                return ChatAnswer("A title")
            seen.append(request)
            answer = answers[min(len(seen), len(answers)) - 1]
            return ChatAnswer(answer) if isinstance(answer, str) else ChatAnswer(calls=(answer,))

        self.model.script = script
        words = [*self.program.words, prompt]
        await asyncio.to_thread(_run, words, folder, self.environ)
        if not seen:
            raise StoryStopped("the agent asked its model nothing")
        return seen

    def reverie(self, words: list[str], folder: Path) -> Any:
        """Runs a command of Reverie, and returns what it prints."""
        return json.loads(_run(["reverie", *words, "--json"], folder, self.environ))

    async def find_turns(self, folder: Path) -> list[Any]:
        """The turns of the agent's session, once the last answer has arrived."""
        turns: list[Any] = []
        for _ in range(DIGEST_SECONDS):
            listed = self.reverie(["sessions", "--agent", self.program.name], folder)
            if listed:
                turns = self.reverie(["sessions", listed[0]["id"]], folder)
                if any(DECIDED in turn["content"] for turn in turns):
                    return turns
            await asyncio.sleep(1)
        raise StoryStopped(f"the decision was not handed over ({len(turns)} turns were)")

    async def waits_for_memory(self, folder: Path) -> bool:
        """Whether the decision becomes a memory."""
        for _ in range(DIGEST_SECONDS):
            listed = self.reverie(["memories"], folder)
            if any(DECIDED in memory["content"] for memory in listed):
                return True
            await asyncio.sleep(1)
        return False


def _build_environ(program: AgentProgram, programs: Path, home: Path, url: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    own = Path(sys.executable).parent
    kept["PATH"] = os.pathsep.join([str(programs / "node_modules/.bin"), str(own), kept["PATH"]])
    kept.pop("VIRTUAL_ENV", None)
    ports = {f"REVERIE_{name}_PORT": "0" for name in SERVICES}
    given = {name: value.format(url=url) for name, value in program.environ.items()}
    return {**kept, **ports, **given, "HOME": str(home)}


@contextmanager
def _running_reverie(home: Path, environ: Mapping[str, str]) -> Iterator[None]:
    _run(["reverie", "up", "--background"], home, environ)
    try:
        yield
    finally:
        _run(["reverie", "down"], home, environ)


def _make_project(folder: Path, environ: Mapping[str, str]) -> None:
    (folder / "src").mkdir()
    (folder / "src/prices.py").write_text("def add(first, second):\n    return first + second\n")
    (folder / "src/tax.py").write_text(f"def round_tax(amount):\n{TAX_LINE}\n")
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "Begin"]):
        _run(["git", *words], folder, environ)


def _run(words: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Runs a command; raises `StoryStopped` with its last words if it fails."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            # OpenCode takes its folder from PWD.
            env={**environ, "PWD": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StoryStopped(f"`{words[0]}` took over {LONGEST_SECONDS} seconds") from None
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise StoryStopped(f"`{words[0]}` ended with {done.returncode}: {' '.join(last)[:200]}")
    return done.stdout.strip()
