"""The commands. Each is a few lines: what it means is in the rooms below."""

from __future__ import annotations

import json
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
    """Train what is not done yet. Ctrl-C loses nothing: the same command goes on."""
    from rldsl.cli.run import run_plan

    made = choice.plan(sampled=False, frozen=plan, on=on)
    return run_plan(made, runs, choice.file, detach=detach, cancel_stale=cancel_stale)


def plan(
    choice: Choice,
    runs: given.Runs = RUNS,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Freeze the plan into a file.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every session.")] = False,
    on: given.On = None,
    json: given.Json = False,
) -> None:
    """Show what would run: trials, sessions, what differs, what is done already; fail if this machine cannot."""
    from rldsl.cli.plan_view import print_json, show_place, show_plan
    from rldsl.cli.tables import echo

    made = choice.plan(on=on)
    if out is not None:
        made.save(out)
    lacks = print_json(made, Existing(runs)) if json else show_plan(made, Existing(runs), everything=all)
    if not json:
        show_place(made, Existing(runs), asked=on is not None)
    if out is not None and not json:
        echo(f"written to {out}; `train --plan {out}` runs exactly this")
    if lacks and made.launcher.same_python:
        raise SpecError(lacks)


def search(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    cancel_stale: given.CancelStale = False,
    runs: given.Runs = RUNS,
) -> int:
    """Run the searches of the file, on seeds of their own. Ctrl-C loses nothing: the same command goes on."""
    from rldsl.cli.foreground import show_best
    from rldsl.cli.run import run_plan

    made = choice.plan(sampled=True, on=on)
    code = run_plan(made, runs, choice.file, detach=detach, cancel_stale=cancel_stale)
    if not detach:
        show_best(made, runs)
    return code


def status(
    choice: Choice,
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> None:
    """Show how the sessions of the file stand: state, frames, speed, return, and where they wait or run."""
    from rldsl.cli.status_view import show_with_queues

    show_with_queues(choice.plan(), runs, as_json=json)


def stop(
    choice: Choice,
    session: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="Only this session, or this trial. Repeatable.")
    ] = None,
    runs: given.Runs = RUNS,
) -> None:
    """Ask the running sessions of the file to checkpoint and stop, and cancel those that wait in a queue."""
    from rldsl.cli.stop import stop_sessions

    stop_sessions(choice.plan(), Existing(runs), session or ())


def resume(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    runs: given.Runs = RUNS,
) -> int:
    """Go on with the sessions that were stopped or failed, and start no new ones."""
    from rldsl.cli.run import run_plan

    return run_plan(choice.plan(on=on), runs, choice.file, states=("resume", "failed"), detach=detach)


def enjoy(
    choice: Choice,
    runs: given.Runs = RUNS,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Of this seed; else the best one.")] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", metavar="WHICH", help="best or last.")] = "best",
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="How many to play.")] = 5,
    stochastic: Annotated[bool, typer.Option("--stochastic", help="Draw actions as in training.")] = False,
    video: Annotated[Path | None, typer.Option("--video", metavar="DIR", help="Film each episode as an mp4.")] = None,
    render: Annotated[bool, typer.Option("--render", help="Show a window.")] = False,
    json: given.Json = False,
) -> int:
    """Play episodes with what a session has learned, and film them if asked."""
    from rldsl.cli.enjoy import checked, choose, enjoy_session

    options = ["--checkpoint", checked(checkpoint), "--episodes", str(episodes)]
    options += [] if video is None else ["--video", str(video)]
    options += [f"--{name}" for name, on in (("stochastic", stochastic), ("render", render), ("json", json)) if on]
    return enjoy_session(choose(choice.plan(), Existing(runs), seed), choice.file, options, quiet=json)


def report(
    choice: Choice,
    runs: given.Runs = RUNS,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Also write a compact file for each trial.")
    ] = None,
) -> None:
    """Show the scores of finished sessions, with n and an interval."""
    from rldsl.cli.report_view import show_outcomes
    from rldsl.report.outcome import outcomes

    made = choice.plan(sampled=False)
    show_outcomes(outcomes(made, Existing(runs)), out)


def list_(runs: given.Runs = RUNS, json: given.Json = False) -> None:
    """List every session of a run directory."""
    from rldsl.cli.status_view import of_runs, show

    show(of_runs(runs), as_json=json)


def diff(
    a: Annotated[str, typer.Argument(help="A session: its id, the start of it, or its directory.")],
    b: Annotated[str, typer.Argument(help="Another session.")],
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> None:
    """Show what differs between two sessions: settings, code, packages."""
    from rldsl.cli.diff import show_diff

    show_diff(a, b, runs, as_json=json)


def new(directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made if it is not there.")]) -> None:
    """Write a small project of your own: an experiment, a launcher, a README."""
    from rldsl.cli.new import write_project

    write_project(directory)


def envs(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Families, or parts of ids.")] = None,
    bench: Annotated[bool, typer.Option("--bench", help="Measure steps a second, under random actions.")] = False,
    num_envs: Annotated[int, typer.Option("--num-envs", metavar="N", min=1, help="Stepped together.")] = 16,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="That step them.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.01, help="For each of them.")] = 1.0,
    json: given.Json = False,
) -> None:
    """List the environments: spaces, backends, whether resuming is exact, how fast they are."""
    from rldsl.cli.envs import Bench, show_envs

    show_envs(names or (), Bench(num_envs, threads, seconds) if bench else None, as_json=json)


def launchers(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="As for --on; else all.")] = None,
    json: given.Json = False,
) -> int:
    """List the places to run, and check whether jobs could go there from here."""
    from rldsl.cli.launchers import show_launchers

    return show_launchers(names or (), as_json=json)


def schema() -> None:
    """Print the JSON schema of an experiment."""
    from rldsl.spec.experiment import Experiment

    print(json.dumps(Experiment.model_json_schema(), indent=2))  # noqa: T201
