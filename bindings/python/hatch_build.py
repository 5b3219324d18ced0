"""Puts the program that KUBEWRIGHT_BINARY names into the wheel, which is for its platform then. Without it the wheel is for all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The machine in an ELF header (e_machine), and what wheels call it.
MACHINES = {62: "x86_64", 183: "aarch64"}


def platform_of(program: Path) -> str:
    """What wheels call the platform of a static Linux program."""
    with program.open("rb") as file:
        head = file.read(20)
    machine = MACHINES.get(int.from_bytes(head[18:20], "little")) if head[:4] == b"\x7fELF" else None
    if machine is None:
        raise ValueError(f"KUBEWRIGHT_BINARY: {program} is no Linux program for x86_64 or aarch64")
    return f"manylinux_2_17_{machine}.manylinux2014_{machine}"


class ProgramHook(BuildHookInterface):
    """Adds the program to `kubewright/bin`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = os.environ.get("KUBEWRIGHT_BINARY")
        if not named or version == "editable":
            return
        program = Path(named).resolve(strict=True)
        build_data["tag"] = f"py3-none-{platform_of(program)}"
        build_data["pure_python"] = False
        build_data["force_include"][str(program)] = "kubewright/bin/kubewright"
