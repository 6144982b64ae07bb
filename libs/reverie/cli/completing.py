"""`reverie completion`: what makes a shell complete the commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells that can be made to complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print what makes a shell complete the commands.

    Example: [bold]reverie completion bash >> ~/.bashrc[/]
    """
    from typer._completion_shared import get_completion_script

    typer.echo(
        get_completion_script(
            prog_name="reverie", complete_var="_REVERIE_COMPLETE", shell=shell.value
        )
    )
