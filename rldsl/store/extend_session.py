"""Makes the directory of a session that continues a shorter one: its checkpoint, and its log points up to there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rldsl.store.append_only_ring import link
from rldsl.store.checkpoint import checkpoint_path, copy_checkpoint, load_checkpoint
from rldsl.store.errors import writing
from rldsl.store.files import replace_text
from rldsl.store.log_points import LogPoints
from rldsl.store.metrics import last_row
from rldsl.store.session_dir import SessionDir

BEST = "best"


def extend_session(
    runs: Path,
    relative: str,
    record: Mapping[str, Any],
    config: str,
    source: SessionDir,
    frame: int,
    log_points: LogPoints | None = None,
) -> SessionDir:
    """Creates the session `relative`, which continues `source` from its checkpoint at `frame`.

    Of its log points, only `log_points` are kept if they are given. Checkpoint files are shared by hard links.
    An earlier attempt that was killed before it was complete is replaced.
    """
    made = SessionDir(runs / relative)
    if made.exists():
        return made
    state, metrics = source.read_state(), _metrics_until(source.metrics, frame)
    if log_points is not None:
        metrics = log_points.thinned(metrics)
    with writing(made.path):
        for folder in (made.checkpoints, made.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (made.metrics, made.journal.path):
            file.unlink(missing_ok=True)
        made.checkpoints.mkdir(parents=True)
        saved = checkpoint_path(source.checkpoints, frame)
        if log_points is None:
            _link_checkpoint(saved, made.checkpoints)
        else:
            copy_checkpoint(saved, _goal(saved, made.checkpoints), partial(log_points.edit, metrics, frame))
        best = load_checkpoint(source.checkpoints, tag=BEST)
        if best is not None and best.frame <= frame:  # a later one is found again
            _link_checkpoint(best.path, made.checkpoints)
        if source.tensorboard.is_dir():
            shutil.copytree(source.tensorboard, made.tensorboard)
    replace_text(made.metrics, metrics)
    seconds = (last_row(made.metrics) or {}).get("seconds") or 0.0
    code = {} if state.code is None else {"code": state.code}
    made.journal.append("extended", frame=frame, seconds=seconds, source=source.id, frames=state.frame, **code)
    return SessionDir.create(runs, relative, record, config)


def _goal(source: Path, folder: Path) -> Path:
    return folder / source.name.removesuffix(".old")


def _link_checkpoint(source: Path, folder: Path) -> None:
    goal = _goal(source, folder)
    goal.mkdir()
    for file in source.iterdir():
        link(file, goal / file.name)


def _metrics_until(path: Path, frame: int) -> str:
    """The file as it was when the checkpoint at this frame was written."""
    header, *lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.partition(",")[0].isdigit() and int(line.partition(",")[0]) <= frame]
    return "".join([header, *kept])
