"""`search --write FILE`: the winner of a search as an experiment file."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rldsl.builders.source import WIDTH, experiment_source
from rldsl.cli.tables import echo, escape
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment, Trial
from rldsl.store.files import replace_text


def refuse_overwriting(path: Path, force: bool) -> None:
    """Raises `SpecError` if the file exists, before hours are spent on the search."""
    if path.suffix != ".py":
        raise SpecError(f"--write takes a Python file such as tuned.py, got {path}")
    if path.exists() and not force:
        raise SpecError(f"{path} exists already: choose another file, or overwrite it with --force")


def write_experiment(path: Path, experiment: Experiment, trial: Trial, found: str) -> None:
    """Writes the experiment with the settings of this trial and without its search; `found` says where it is from."""
    written = winner_experiment(experiment, trial)
    wrapped = "\n".join(textwrap.wrap(found, WIDTH))
    source = experiment_source(written, f"{written.name}, found by the search {experiment.name}.\n\n{wrapped}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, source)
    echo(f"wrote {escape(str(path))}: {escape(found)}")


def winner_experiment(experiment: Experiment, trial: Trial) -> Experiment:
    """The experiment whose single trial is this one, named after its agent."""
    base = experiment.name.rpartition("/")[0] or experiment.name
    settings = {name: getattr(trial, name) for name in Trial.model_fields}
    return experiment.with_(**settings, name=f"{base}/{trial.agent.kind}", search=None)
