"""The commands: each parses its arguments, calls the library and shows the result."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS, Choice
from rldsl.cli.transfer import Repo
from rldsl.plan.existing import Existing
from rldsl.spec.errors import SpecError


def train(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    cancel_stale: given.CancelStale = False,
    redo: given.Redo = False,
    continue_: given.Continue = False,
    debug: given.Debug = False,
    notify: given.Notify = None,
    runs: given.Runs = RUNS,
) -> int:
    """Train all sessions that are neither done nor failed. Ctrl-C checkpoints; the same command resumes."""
    from rldsl.cli.run import decision, run

    selected = choice.selected(runs, sampled=False, on=on)
    other_code = decision(redo, continue_, named=not selected.experiments and choice.plan_file is None)
    return run(
        selected.plan,
        runs,
        selected.file,
        detach=detach,
        cancel_stale=cancel_stale,
        other_code=other_code,
        debug=debug,
        notify=notify,
    )


def plan(
    choice: Choice,
    more: given.Files = None,
    runs: given.Runs = RUNS,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Freeze the plan into a file.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every session.")] = False,
    on: given.On = None,
    json: given.Json = False,
) -> None:
    """Show what would run: trials, sessions and their states; fail if an environment cannot be made here.

    With several files, show a line for each experiment: sessions, frames and estimated hours.
    """
    from rldsl.cli.plan_overview import print_overview_json, show_overview
    from rldsl.cli.plan_view import finished_names, print_json, show_backend, show_plan
    from rldsl.cli.tables import echo, escape
    from rldsl.launch.search_state import current_plan, search_progress
    from rldsl.store.code_version import CodeVersions

    chosen = choice.selected(runs, on=on, more=more or ())
    selected, searches = chosen.plan, search_progress(chosen.experiments, runs)
    current = current_plan(chosen.experiments, runs, searches) if chosen.experiments else selected
    current = replace(current, needed=selected.needed)
    if more and out is None:
        (print_overview_json if json else show_overview)(current, Existing(runs), searches)
        return
    if out is not None:
        selected.save(out)
    if json:
        lacks = print_json(selected, Existing(runs, CodeVersions(chosen.file)))
    else:
        existing = Existing(runs, CodeVersions(chosen.file))
        lacks = show_plan(current, existing, searches, everything=all)
        show_backend(current, existing, finished_names(searches), chosen=on is not None)
    if out is not None and not json:
        echo(f"written to {escape(str(out))}; `train --plan {escape(shlex.quote(str(out)))}` runs exactly this")
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
    show_status(choice.selected(runs, overridden=True), runs, as_json=json)


def logs(
    choice: Choice,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=0, help="The last N lines of each log.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the sessions end.")] = False,
    runs: given.Runs = RUNS,
) -> None:
    """Print the end of the logs of sessions; --follow prints what is added to them.

    Of a session that has printed nothing, print the journal.
    """
    from rldsl.cli.logs import show_logs
    from rldsl.cli.tables import note_missing

    note_missing(runs)
    show_logs(choice.selected(runs, sampled=False, overridden=True), runs, lines, follow)


def stop(
    choice: Choice,
    runs: given.Runs = RUNS,
) -> None:
    """Stop the searches of the file, ask its sessions to checkpoint and stop, cancel their jobs in a queue."""
    from rldsl.cli.stop import stop

    of_file = choice.file.suffix == ".py"
    selected = (replace(choice, session=None) if of_file else choice).selected(runs, overridden=True)
    stop(selected, runs, (choice.session or ()) if of_file else ())


def resume(
    choice: Choice,
    on: given.On = None,
    detach: given.Detach = False,
    continue_: given.Continue = False,
    notify: given.Notify = None,
    runs: given.Runs = RUNS,
) -> int:
    """Resume sessions that were stopped, retry those that failed, start no new ones; continue searches."""
    from rldsl.cli.run import decision, run
    from rldsl.cli.search import resume_searches
    from rldsl.launch.select import RESUME

    selected = choice.selected(runs, on=on, overridden=True)
    chosen = selected.experiments
    plan = selected.without_searches()
    other_code = decision(redo=False, continue_=continue_)
    code = (
        run(plan, runs, selected.file, RESUME, detach=detach, other_code=other_code, notify=notify) if plan.parts else 0
    )
    searches = [one for one in chosen if one.experiment.sampled]
    return code or resume_searches(searches, runs, choice.file, moved=on is not None, detach=detach)


def enjoy(
    choice: Choice,
    runs: given.Runs = RUNS,
    checkpoint: Annotated[str, typer.Option("--checkpoint", metavar="WHICH", help="best or last.")] = "best",
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="How many to play.")] = 5,
    stochastic: Annotated[bool, typer.Option("--stochastic", help="Sample actions as in training.")] = False,
    video: Annotated[Path | None, typer.Option("--video", metavar="DIR", help="Record each episode as an mp4.")] = None,
    render: Annotated[bool, typer.Option("--render", help="Show a window.")] = False,
    json: given.Json = False,
) -> int:
    """Play episodes with the policy of a session; --video records them.

    FILE is an experiment file, the id of a session, or an agent on the Hugging Face Hub: hf://OWNER/NAME.
    """
    from rldsl.cli.enjoy import checked, choose, enjoy_downloaded, enjoy_session
    from rldsl.hub.agent import is_address

    options = ["--checkpoint", checked(checkpoint), "--episodes", str(episodes)]
    options += [] if video is None else ["--video", str(video)]
    options += [f"--{name}" for name, on in (("stochastic", stochastic), ("render", render), ("json", json)) if on]
    if is_address(str(choice.file)):
        return enjoy_downloaded(str(choice.file), options)
    unfiltered = replace(choice, seed=None)  # seeds choose among what was trained
    selected = [choice.selected(runs), *(unfiltered.selected(runs, overridden=wide) for wide in (False, True))]
    chosen = choose([one.plan for one in selected], Existing(runs), choice.seed or (), quiet=json)
    return enjoy_session(chosen, selected[0].file, options, quiet=json)


def export(
    session: Annotated[str, typer.Argument(help="A session: its id, the start of it, or its directory.")],
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write: .onnx, or .pt2 for torch.export.")],
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="WHICH", help="best, last, or one that a hook named.")
    ] = "best",
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The experiment file, if the session has classes that it defines."),
    ] = None,
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> int:
    """Write the policy of a session as ONNX or as a torch.export program, and verify it on random observations.

    Normalisation of observations and scaling of actions are part of the file. ONNX needs `pip install 'rldsl[export]'`.
    """
    from rldsl.cli.export import export_session

    return export_session(session, out, runs, checkpoint, file, json)


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
) -> int:
    """Write BENCHMARKS.md, learning curves, report.html, CSV and JSON of everything that passes the audit.

    FILE is an experiment file, a saved plan, a run directory or a results folder. Of a search, show what it has found.
    The exit code is 1 if every result was rejected.
    """
    from rldsl.cli.report_view import show_report
    from rldsl.cli.search_report import report_searches
    from rldsl.cli.sources import Sources
    from rldsl.cli.tables import note_missing

    if choice.file.is_file():
        note_missing(runs)
    if choice.file.suffix != ".json" and report_searches(choice, runs, out):
        return 0
    return show_report(Sources.of(choice, more or (), runs, experiments), out)


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


def list_(
    runs: given.Runs = RUNS,
    aside: Annotated[bool, typer.Option("--aside", help="List the sessions that --redo has set aside.")] = False,
    hub: Annotated[bool, typer.Option("--hub", help="Of a dataset repository of the Hugging Face Hub.")] = False,
    repo: Repo = None,
    json: given.Json = False,
) -> None:
    """List every session of a run directory, or with --hub of a repository."""
    if hub:
        from rldsl.cli.pull import show_index

        show_index(repo, as_json=json)
        return
    from rldsl.cli.status_view import show, show_set_aside
    from rldsl.cli.tables import note_missing
    from rldsl.report.status import run_states
    from rldsl.report.varied_settings import recorded_settings

    note_missing(runs)
    if aside:
        show_set_aside(runs, as_json=json)
        return
    show(run_states(runs), as_json=json, settings={} if json else recorded_settings(runs))


def diff(
    a: Annotated[str, typer.Argument(help="A session: its id, the start of it, or its directory.")],
    b: Annotated[str, typer.Argument(help="Another session, or an experiment file: the present code.")],
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> None:
    """Show what differs between two sessions: settings, packages, code; or between a session and the present code."""
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
