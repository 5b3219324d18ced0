"""Where the program is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kubewright._errors import ProgramNotFound


def find() -> str:
    """The path of the program: `$KUBEWRIGHT`, the one in this package, or the one on the `PATH`.

    Raises:
        ProgramNotFound: when there is none.
    """
    named = os.environ.get("KUBEWRIGHT")
    if named:
        if not os.access(named, os.X_OK):
            raise ProgramNotFound(f"the variable KUBEWRIGHT names {named}, which is no program")
        return named
    inside = Path(__file__).parent / "bin" / "kubewright"
    if os.access(inside, os.X_OK):
        return str(inside)
    found = shutil.which("kubewright")
    if found is None:
        raise ProgramNotFound(
            "there is no kubewright program: set the variable KUBEWRIGHT to its path, install the wheel of this "
            "package for your platform, or put kubewright on the PATH (cargo install --locked kubewright-cli)"
        )
    return found
