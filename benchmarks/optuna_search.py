"""Optuna drives Stable-Baselines3: the peer of the workload `search`. Prints one line of JSON.

Two processes share a study in a journal file, as Optuna's documentation recommends for processes of one machine; each
trains half of the trials. Runs inside the peers' environment (`peers-requirements.txt`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.peers import WORKS, build, hold_threads, last_return, train

TRIALS = 16
PROCESSES = 2
SEED = 0


def search(frames: int) -> dict[str, Any]:
    """Runs the whole search; the return is the mean over all trials."""
    with tempfile.TemporaryDirectory() as folder:
        journal = str(Path(folder, "study.log"))
        study(journal)
        command = [sys.executable, "-m", "benchmarks.optuna_search", "--frames", str(frames), "--journal", journal]
        workers = [subprocess.Popen([*command, "--worker", str(index)]) for index in range(PROCESSES)]
        codes = [worker.wait() for worker in workers]
        if any(codes):
            sys.exit("a worker failed")
        trials = study(journal).trials
    returns = [trial.value for trial in trials]
    return {"frames": sum(trial.user_attrs["frames"] for trial in trials), "return": sum(returns) / len(returns)}


def work(journal: str, frames: int, index: int) -> None:
    """A worker's share of the trials."""

    def objective(trial: Any) -> float:
        settings = {
            "gamma": trial.suggest_float("gamma", 0.95, 0.999),
            "gae_lambda": trial.suggest_float("gae_lambda", 0.9, 0.98),
            "learning_rate": trial.suggest_float("learning_rate", 1e-4, 2e-3, log=True),
        }
        base = WORKS["ppo-cartpole"]
        model = build("sb3", replace(base, settings={**base.settings, **settings}), SEED, threads=1)
        trial.set_user_attr("frames", train(model, frames))
        return last_return(model) or 0.0

    study(journal, index).optimize(objective, n_trials=TRIALS // PROCESSES)


def study(journal: str, seed: int = SEED) -> Any:
    """The study of a journal file, with Optuna's default sampler."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        study_name="bench",
        storage=JournalStorage(JournalFileBackend(journal)),
        sampler=optuna.samplers.TPESampler(seed=seed),
        direction="maximize",
        load_if_exists=True,
    )


def main() -> None:
    """Runs the search, or one of its workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, required=True)
    parser.add_argument("--journal")
    parser.add_argument("--worker", type=int)
    options = parser.parse_args()
    hold_threads(1)
    if options.worker is not None:
        work(options.journal, options.frames, options.worker)
    else:
        print(json.dumps({"peer": "optuna", "work": "search", **search(options.frames)}))


if __name__ == "__main__":
    main()
