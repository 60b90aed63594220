"""The commands: each parses its arguments, calls the library and shows the result."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS, Choice
from rldsl.plan.existing import Existing
from rldsl.spec.errors import SpecError


def train(
    choice: Choice,
    plan: given.FrozenPlan = None,
    on: given.On = None,
    detach: given.Detach = False,
    cancel_stale: given.CancelStale = False,
    runs: given.Runs = RUNS,
) -> int:
    """Train all sessions that are neither done nor failed. Ctrl-C checkpoints; the same command resumes."""
    from rldsl.cli.run import run

    selected = choice.plan(sampled=False, frozen=plan, on=on)
    return run(selected, runs, choice.file, detach=detach, cancel_stale=cancel_stale)


def plan(
    choice: Choice,
    more: given.Files = None,
    runs: given.Runs = RUNS,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Freeze the plan into a file.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every session.")] = False,
    on: given.On = None,
    json: given.Json = False,
) -> None:
    """Show what would run: trials, sessions and their states; fail if this machine cannot run them.

    With several files, show a line for each experiment: sessions, frames and estimated hours.
    """
    from rldsl.cli.plan_overview import print_overview_json, show_overview
    from rldsl.cli.plan_view import finished_names, print_json, show_backend, show_plan
    from rldsl.cli.tables import echo
    from rldsl.launch.search_state import current_plan, search_progress
    from rldsl.plan.plan import make_plan

    experiments = choice.experiments(on=on, more=more or ())
    selected, searches = make_plan(experiments), search_progress(experiments, runs)
    current = current_plan(experiments, runs, searches)
    if more and out is None:
        (print_overview_json if json else show_overview)(current, Existing(runs), searches)
        return
    if out is not None:
        selected.save(out)
    if json:
        lacks = print_json(selected, Existing(runs))
    else:
        lacks = show_plan(current, Existing(runs), searches, everything=all)
        show_backend(current, Existing(runs), finished_names(searches), chosen=on is not None)
    if out is not None and not json:
        echo(f"written to {out}; `train --plan {shlex.quote(str(out))}` runs exactly this")
    if lacks and selected.launcher.same_python:
        raise SpecError(lacks)


def search(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first trial that fails.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train failed trials again.")] = False,
    validate: Annotated[
        int | None,
        typer.Option(
            "--validate",
            metavar="K",
            min=1,
            help="Then train the best K trials and the current settings on the experiment's own seeds.",
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the winner as an experiment file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --write overwrite a file.")] = False,
    runs: given.Runs = RUNS,
) -> int:
    """Run the searches of the file, on seeds of their own. Ctrl-C checkpoints; the same command continues."""
    from rldsl.cli.search import SearchOptions, search

    options = SearchOptions(fail_fast, retry_failed, validate, write, force)
    return search(choice, runs, options, on=on, detach=detach)


def status(
    choice: Choice,
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> None:
    """Show the sessions of the file: state, frames, speed, return, the jobs that run them; and its searches."""
    from rldsl.cli.status_view import show_status
    from rldsl.cli.tables import note_missing

    note_missing(runs)
    show_status(choice.experiments(), runs, as_json=json)


def stop(
    choice: Choice,
    session: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="Only this session, or this trial. Repeatable.")
    ] = None,
    runs: given.Runs = RUNS,
) -> None:
    """Stop the searches of the file, ask its sessions to checkpoint and stop, cancel their jobs in a queue."""
    from rldsl.cli.stop import stop

    stop(choice.experiments(), runs, session or ())


def resume(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    runs: given.Runs = RUNS,
) -> int:
    """Resume sessions that were stopped, retry those that failed, start no new ones; continue searches."""
    from rldsl.cli.run import run
    from rldsl.cli.search import resume_searches
    from rldsl.launch.select import RESUME
    from rldsl.plan.plan import make_plan

    chosen = choice.experiments(on=on)
    sessions = [one for one in chosen if not one.experiment.sampled]
    code = run(make_plan(sessions), runs, choice.file, RESUME, detach=detach) if sessions else 0
    searches = [one for one in chosen if one.experiment.sampled]
    return code or resume_searches(searches, runs, choice.file, moved=on is not None, detach=detach)


def enjoy(
    choice: Choice,
    runs: given.Runs = RUNS,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Of this seed; else the best one.")] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", metavar="WHICH", help="best or last.")] = "best",
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="How many to play.")] = 5,
    stochastic: Annotated[bool, typer.Option("--stochastic", help="Sample actions as in training.")] = False,
    video: Annotated[Path | None, typer.Option("--video", metavar="DIR", help="Record each episode as an mp4.")] = None,
    render: Annotated[bool, typer.Option("--render", help="Show a window.")] = False,
    json: given.Json = False,
) -> int:
    """Play episodes with the policy of a session; --video records them."""
    from rldsl.cli.enjoy import checked, choose, enjoy_session

    options = ["--checkpoint", checked(checkpoint), "--episodes", str(episodes)]
    options += [] if video is None else ["--video", str(video)]
    options += [f"--{name}" for name, on in (("stochastic", stochastic), ("render", render), ("json", json)) if on]
    return enjoy_session(choose(choice.plan(), Existing(runs), seed), choice.file, options, quiet=json)


def report(
    choice: Choice,
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SOURCE]...", help="More files, saved plans, run directories, or results folders."),
    ] = None,
    runs: given.Runs = RUNS,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write; default: report, or the results folder itself."),
    ] = None,
    experiments: given.Experiments = None,
) -> None:
    """Write BENCHMARKS.md, learning curves, report.html, CSV and JSON of everything that passes the audit.

    FILE is an experiment file, a saved plan, a run directory or a results folder. Of a search, show what it has found.
    """
    from rldsl.cli.report_view import show_report
    from rldsl.cli.search_report import report_searches
    from rldsl.cli.sources import Sources
    from rldsl.cli.tables import note_missing

    if choice.file.is_file():
        note_missing(runs)
    if choice.file.suffix != ".json" and report_searches(choice, runs, out):
        return
    show_report(Sources.of(choice, more or (), runs, experiments), out)


def audit(
    choice: Choice,
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SOURCE]...", help="More files, saved plans, run directories, or results folders."),
    ] = None,
    runs: given.Runs = RUNS,
    experiments: given.Experiments = None,
    json: given.Json = False,
) -> int:
    """Check sessions or committed results against their experiments; a sentence for each reason to reject one.

    FILE is an experiment file, a saved plan, a run directory or a results folder.
    """
    from rldsl.cli.audit import show_audit
    from rldsl.cli.sources import Sources
    from rldsl.cli.tables import note_missing

    if choice.file.is_file():
        note_missing(runs)
    return show_audit(Sources.of(choice, more or (), runs, experiments), as_json=json)


def list_(runs: given.Runs = RUNS, json: given.Json = False) -> None:
    """List every session of a run directory."""
    from rldsl.cli.status_view import show
    from rldsl.cli.tables import note_missing
    from rldsl.report.status import run_states

    note_missing(runs)
    show(run_states(runs), as_json=json)


def diff(
    a: Annotated[str, typer.Argument(help="A session: its id, the start of it, or its directory.")],
    b: Annotated[str, typer.Argument(help="Another session.")],
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> None:
    """Show what differs between two sessions: settings, code, packages."""
    from rldsl.cli.diff import show_diff

    show_diff(a, b, runs, as_json=json)


def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory; created if it does not exist.")],
) -> None:
    """Create a small project: an experiment, a launcher profile, a README."""
    from rldsl.cli.new import write_project

    write_project(directory)


def envs(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Families, or parts of ids.")] = None,
    bench: Annotated[bool, typer.Option("--bench", help="Measure steps per second, with random actions.")] = False,
    num_envs: Annotated[
        int, typer.Option("--num-envs", metavar="N", min=1, help="Environments that are stepped as one batch.")
    ] = 16,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads that step them.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.01, help="Seconds per environment.")] = 1.0,
    json: given.Json = False,
) -> None:
    """List the environments: spaces, backends, whether resuming is exact, how fast they are."""
    from rldsl.cli.envs import Bench, show_envs

    show_envs(names or (), Bench(num_envs, threads, seconds) if bench else None, as_json=json)


def launchers(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="As for --on; else all.")] = None,
    json: given.Json = False,
) -> int:
    """List the launchers of the project, and check whether jobs can be submitted with them."""
    from rldsl.cli.launchers import show_launchers

    return show_launchers(names or (), as_json=json)


def schema() -> None:
    """Print the JSON schema of an experiment."""
    from rldsl.spec.experiment import Experiment

    print(json.dumps(Experiment.model_json_schema(), indent=2))  # noqa: T201


def results(
    action: Annotated[str, typer.Argument(metavar="add|check", help="Add finished sessions, or check the tables.")],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SOURCE]...", help="For add: experiment files, saved plans or ids of sessions."),
    ] = None,
    only: given.Only = None,
    plan: Annotated[Path | None, typer.Option("--plan", metavar="FILE", help="A saved plan.")] = None,
    runs: given.Runs = RUNS,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="The results folder.")] = Path("results"),
    experiments: given.Experiments = None,
) -> int:
    """Convert finished sessions that pass the audit into compact results, or check that tables and plots match them."""
    from rldsl.cli.results import add_results, check_results
    from rldsl.cli.sources import Sources

    if action == "check":
        return check_results([*map(str, sources or ())], results, experiments)
    if action != "add":
        raise SpecError(f"`rldsl results` has add and check, not {action}")
    given_sources = [*(sources or ()), *([plan] if plan else ())]
    if not given_sources:
        raise SpecError("`rldsl results add` needs an experiment file, a saved plan or the id of a session")
    found = Sources(runs, experiments or results.parent / "experiments", only or ())
    for source in given_sources:
        found.add(source)
    return add_results(found, results)


def references(
    env: Annotated[str | None, typer.Argument(metavar="[ENV]", help="An environment, or a part of its id.")] = None,
    json: given.Json = False,
) -> None:
    """List published scores and targets of environments, with source, frames, seeds and protocol."""
    from rldsl.cli.references import show_references

    show_references(env, as_json=json)
