"""The command `export`: finds the session and exports its policy in a separate process."""

from __future__ import annotations

from pathlib import Path

from rldsl.cli.enjoy import checked
from rldsl.cli.selected import recorded
from rldsl.launch.worker import run_worker
from rldsl.spec.errors import SpecError
from rldsl.store.runs import Runs

SUFFIXES = (".onnx", ".pt2")


def export_session(session: str, out: Path, runs: Path, checkpoint: str, file: Path | None, json: bool) -> int:
    """Exports the policy of the session that `session` names; returns the exit code.

    `file` is the experiment file, for classes that it defines. The user gives it: no path in a record is imported.
    """
    if out.suffix not in SUFFIXES:
        raise SpecError(f"{out} must end in {' or '.join(SUFFIXES)}")
    directory = Runs(runs).find(session)
    if file is None:
        recorded(directory, file, "--file FILE")
    options = [
        "--checkpoint",
        checked(checkpoint, directory.checkpoints),
        *(["--file", str(file)] if file else []),
        *(["--json"] * json),
    ]
    return run_worker("rldsl.play.export", [str(directory.path), str(out), *options])
