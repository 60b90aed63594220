"""A TensorBoard process for chosen sessions, grouped by experiment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rldsl.report.varied_settings import VariedSettings
from rldsl.store.errors import StoreError, writing
from rldsl.store.session_dir import SessionDir


class LogDirectory:
    """A temporary directory with a link `<experiment>/[<settings>/]seed-<n>` to the events of each session.

    TensorBoard names a run by the path of its directory, and a session's own says nothing about its experiment.
    """

    def __init__(self) -> None:
        self._temporary = TemporaryDirectory(prefix="rldsl-tensorboard-")
        self.path = Path(self._temporary.name)
        self._linked: set[Path] = set()

    def add(self, sessions: Sequence[SessionDir]) -> int:
        """Links sessions that have no link yet; returns how many sessions are linked in all."""
        if new := [one for one in sessions if one.path not in self._linked]:
            names = run_names(sessions)
            for one in new:
                self._link(one, names[one])
        return len(self._linked)

    def _link(self, session: SessionDir, name: str) -> None:
        link = self.path / name
        if link.is_symlink():  # a trial that was alone when the first link was made
            link = link.with_name(f"{session.trial}-{link.name}")
        with writing(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(session.tensorboard.resolve())
        self._linked.add(session.path)

    def close(self) -> None:
        """Removes the links."""
        self._temporary.cleanup()


def run_names(sessions: Sequence[SessionDir]) -> dict[SessionDir, str]:
    """`cartpole/ppo/seed-0`; with the settings of its trial if the experiment has several."""
    records = {one: _record(one) for one in sessions}
    varied: dict[str, VariedSettings] = {}
    for one, record in records.items():
        varied.setdefault(_experiment(record), VariedSettings()).add(str(one.trial), record.get("trial") or {})
    return {one: _name(one, _experiment(record), varied[_experiment(record)]) for one, record in records.items()}


def _name(session: SessionDir, experiment: str, varied: VariedSettings) -> str:
    if len(varied.trials) == 1:
        return f"{experiment}/seed-{session.seed}"
    label = varied.label(str(session.trial)).replace("/", "-") or "trial"
    same = [trial for trial in varied.trials if varied.label(trial) == varied.label(str(session.trial))]
    return f"{experiment}/{label if len(same) == 1 else f'{label} {session.trial}'}/seed-{session.seed}"


def _record(session: SessionDir) -> dict[str, Any]:
    try:
        return session.read_session()
    except StoreError:
        return {}


def _experiment(record: dict[str, Any]) -> str:
    return str(record.get("experiment", "unknown"))


def tensorboard_command(directory: Path, host: str = "127.0.0.1", port: int | None = None) -> list[str]:
    """The command that serves a directory; without a port, TensorBoard takes 6006 or the next free one."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(directory), "--host", host]
    return command if port is None else [*command, "--port", str(port)]


def end(process: subprocess.Popen[bytes], seconds: float = 10.0) -> None:
    """Ends a process, by force if it does not react."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
