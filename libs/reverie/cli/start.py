"""Where the `reverie` command begins: an agent waits for its hooks, so they are told apart."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs a hook with next to nothing imported, and any other command as ever."""
    if sys.argv[1:2] == ["hook"]:
        from reverie.agent.hook import main as hook

        sys.exit(hook())
    from reverie.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
