"""`load_runs`: the sessions of a run directory, with their specs, states and learning curves."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.errors import StoreError
from rldsl.store.integrity import metrics_damage
from rldsl.store.metrics import last_row, read_metrics
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State


class Run:
    """One session in a run directory. `state`, `score` and `metrics()` are read from the directory when asked for."""

    def __init__(self, directory: Path) -> None:
        """Raises `SpecError` or `StoreError` if the directory does not hold a session that this version can read."""
        self.directory = directory
        self._session_dir = SessionDir(directory)
        record = self._session_dir.read_session()
        self.spec: Session = Session.from_record(record, directory)
        """Trial (agent, environment, budget, ...), seed, target and overrides."""
        self.id: str = str(record.get("id", self.spec.id))
        """As the commands show it. A session of an earlier schema version keeps the id that it was created with."""

    def __repr__(self) -> str:
        return f"Run({self.experiment!r}, seed={self.seed}, state={self.state!r}, id={self.id!r})"

    @property
    def experiment(self) -> str:
        """The experiment's name, such as `cartpole/ppo`."""
        return self.spec.experiment

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def state(self) -> State:
        """`new`, `running`, `resume` (interrupted), `done` or `failed`."""
        return self._session_dir.state()

    @property
    def score(self) -> float:
        """The last `episode_return_ma`; NaN if no episode has ended yet."""
        value = (last_row(self._session_dir.metrics) or {}).get("episode_return_ma")
        return float("nan") if value is None else float(value)

    def metrics(self) -> Any:
        """metrics.csv, one row per log point: a pandas DataFrame, or a dict of numpy arrays without pandas.

        Empty cells are NaN.
        """
        if damage := metrics_damage(self._session_dir.metrics, self._session_dir.read_state()):
            warnings.warn(f"{self.directory}: {damage}", stacklevel=2)
        arrays = _as_arrays(read_metrics(self._session_dir.metrics))
        if find_spec("pandas") is None:
            return arrays
        import pandas as pd  # type: ignore[import-untyped, import-not-found, unused-ignore]  # optional, no stubs

        return pd.DataFrame(arrays)


def load_runs(
    runs: str | Path = "runs", *, experiment: str | None = None, sessions: Collection[str] | None = None
) -> list[Run]:
    """The sessions of a run directory, sorted by environment, trial and seed.

    `experiment` selects by name, as `--only` does: `"cartpole/ppo"`, `"ppo"` or `"cartpole"`. `sessions` selects by
    session id. A session that cannot be read is skipped with a warning that says why.
    """
    if not Path(runs).is_dir():
        raise StoreError(f"there is no run directory {runs}")
    loaded = []
    for directory in Runs(Path(runs)).sessions():
        if sessions is not None and directory.id not in sessions:
            continue
        try:
            run = Run(directory.path)
        except (SpecError, StoreError) as error:
            warnings.warn(f"skipped {directory.path}: {error}", stacklevel=2)
            continue
        if experiment is None or _matches(experiment, run.experiment):
            loaded.append(run)
    return loaded


def _matches(name: str, full: str) -> bool:
    return name == full or full.endswith(f"/{name}") or full.startswith(f"{name}/")


def _as_arrays(columns: dict[str, list[Any]]) -> dict[str, Any]:
    import numpy as np

    return {
        name: np.array([np.nan if value is None else value for value in values]) for name, values in columns.items()
    }
