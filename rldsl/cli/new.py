"""The command `new`: a small project that runs as written."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from rldsl.cli.tables import echo
from rldsl.spec.errors import SpecError
from rldsl.store.errors import writing

IGNORED = ".gitignore"
FILES = {
    "experiment.py.txt": "experiments/cartpole.py",
    "launcher.py.txt": "launchers/local.py",
    "README.md.txt": "README.md",
    "gitignore.txt": IGNORED,
}


def write_project(directory: Path) -> None:
    """Writes the files of the template; existing files are never overwritten, and a .gitignore is kept."""
    existing = [name for name in FILES.values() if (directory / name).exists()]
    if taken := [name for name in existing if name != IGNORED]:
        raise SpecError(f"{directory} has {', '.join(taken)} already; nothing was written")
    templates = files("rldsl.cli") / "templates"
    with writing(directory):
        for template, name in FILES.items():
            path = directory / name
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((templates / template).read_text())
    echo(f"wrote {', '.join(name for name in FILES.values() if name not in existing)} in {directory}")
    echo(f"next: cd {shlex.quote(str(directory))} && python experiments/cartpole.py plan")
