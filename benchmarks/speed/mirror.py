"""Measures `reverie mirror` over many memories: the first pass, a quiet one, edits of both sides.

Run from the root of the project: `python -m benchmarks.speed.mirror [--size N] [--edits N]`. It
prints the seconds and the steps of each pass, and how many files differ from memory at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from benchmarks.speed.end_to_end import opened
from benchmarks.speed.recall_latency import fill_tenants
from benchmarks.support import bulk_memories, generated_texts
from benchmarks.support.common import Running, running, show
from reverie.agent.mirror.folder import MirrorFolder
from reverie.agent.mirror.record import parse_record, record_of_memory
from reverie.agent.mirror.sync import MirrorSync
from reverie.cli.app.gateway_client import GatewayClient
from reverie.cli.memory.mirror import GatewayMemories


def measure(gateway: str, key: str, edits: int) -> None:
    """Mirrors the tenant of a key, edits both sides, and prints what each pass took."""
    memories = GatewayMemories(GatewayClient(gateway, key, 60.0, None))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)

        def run(label: str) -> None:
            begun = perf_counter()
            steps = Counter(step.action for step in MirrorSync(memories, MirrorFolder(root)).run())
            listed = ", ".join(f"{count:,} {action}" for action, count in steps.items()) or "none"
            rows.append([label, f"{perf_counter() - begun:.1f}", listed])

        run("the first")
        run("nothing changed")
        files = sorted(root.rglob("*.md"))[: 2 * edits]
        for file in files[:edits]:
            file.write_text(f"{file.read_text().rstrip()} Edited here.\n")
        for file in files[edits:]:
            record = parse_record(file.read_text())
            if record and record.id:
                stored = memories.get(record.id) or {}
                text = f"{record.content} Edited there."
                memories.edit(record.id, {"content": text}, stored["version"])
        run(f"{edits} files and {edits} memories edited")
        run("nothing changed")
        differing = _count_differing(root, memories)
        count = len(list(root.rglob("*.md")))
    show(f"Mirror of {count:,} memories; {differing} differ", ["pass", "seconds", "steps"], rows)


def _count_differing(root: Path, memories: GatewayMemories) -> int:
    """The memories whose file is missing or says something else."""
    records = (parse_record(file.read_text()) for file in root.rglob("*.md"))
    mirrored = {record.id: record.fingerprint for record in records if record}
    return sum(
        mirrored.get(str(memory["id"])) != record_of_memory(memory).fingerprint
        for memory in memories.list_active()
    )


async def _fill(system: Running, size: int) -> str:
    async with opened(system) as bench:
        texts = [generated_texts.memory(n) for n in range(bulk_memories.CENTRES)]
        corpus, _ = await fill_tenants(system, 1, size, await bench.model.embed(texts))
    [key] = corpus.keys.values()
    return str(key)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000, help="memories")
    parser.add_argument("--edits", type=int, default=100, help="edits of each side")
    chosen = parser.parse_args()
    with running() as system:
        key = asyncio.run(_fill(system, chosen.size))
        measure(system.gateway, key, chosen.edits)


if __name__ == "__main__":
    main()
