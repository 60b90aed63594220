"""The command `push`: sessions and results to a dataset repository, or an agent to a model repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo, escape
from rldsl.cli.transfer import BestOnly, Public, Repo, repository_of, show_refused, transfer_progress
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

if TYPE_CHECKING:
    from rldsl.hub.push import Pushed
    from rldsl.hub.repository import Content, Repository

PUBLISHED = (".json", ".csv", ".md", ".png", ".svg", ".html")


def push(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="Experiment files, run directories, ids or results folders; default: runs.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="SESSION", help="Push the best policy of this session as a model."),
    ] = None,
    repo: Repo = None,
    only: given.Only = None,
    public: Public = False,
    best_only: BestOnly = False,
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", min=2, help="Played for the model card of --agent.")
    ] = 20,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The experiment file, if --agent has classes that it defines."),
    ] = None,
    runs: given.Runs = RUNS,
) -> int:
    """Push sessions and results to a dataset repository of the Hugging Face Hub: only what changed.

    The token is read from HF_TOKEN. A new repository is private.
    With --agent, make a model repository of a policy: weights, settings, evaluation, video and model card.
    """
    if agent is not None:
        from rldsl.cli.push_agent import push_agent

        if sources:
            raise SpecError(f"--agent pushes one session: it does not go with {sources[0]}")
        return push_agent(agent, repo, runs, file, episodes, public)
    from rldsl.cli.sessions import find_sessions

    repository = repository_of(repo)
    named = sources or [str(runs)]
    folders = [Path(one) for one in named if is_results_folder(Path(one))]
    found = [session for one in named if Path(one) not in folders for session in find_sessions(one, only or (), runs)]
    root = _root(found, runs)
    sessions = list(dict.fromkeys(_relative(one, root) for one in found))
    if not sessions and not folders:
        raise StoreError(f"there are no sessions of {', '.join(named)}{'' if named == [str(runs)] else f' in {runs}'}")
    return show_pushed(repository, push_all(repository, root, sessions, folders, public, best_only))


def push_all(
    repository: Repository, runs: Path, sessions: list[str], folders: list[Path], public: bool, best_only: bool
) -> Pushed:
    """Pushes sessions of a run directory, and the results of folders with their benchmark table."""
    from rldsl.hub.push import Push
    from rldsl.report.dataset_card import DatasetCard
    from rldsl.report.dataset_tables import require_pyarrow

    require_pyarrow()
    files: dict[str, Content] = {}
    benchmark = ""
    for folder in folders:
        files |= result_content(folder)
        benchmark = benchmark_of(folder)
    with transfer_progress("pushed") as progress:
        job = Push(
            repository,
            runs,
            DatasetCard(repository.name),
            private=not public,
            best_only=best_only,
            progress=progress,
        )
        return job.run(sessions, files, benchmark)


def show_pushed(repository: Repository, pushed: Pushed) -> int:
    """Prints what a push did; returns 1 if files were refused."""
    show_refused(pushed.refused)
    same = f", {pushed.unchanged:,} unchanged" if pushed.unchanged else ""
    results = f", {count(pushed.others, 'file')} of results" if pushed.others else ""
    echo(f"{count(len(pushed.sessions), 'session')} pushed{same}{results}: {escape(repository.url)}")
    return int(bool(pushed.refused))


def is_results_folder(folder: Path) -> bool:
    """Whether a folder has results, rather than sessions."""
    from rldsl.report.result import FORMAT, result_files

    if not folder.is_dir() or SessionDir(folder).exists():
        return False
    first = next(result_files(folder), None)
    return first is not None and FORMAT.encode() in first.read_bytes()[:200]


def result_content(folder: Path) -> dict[str, Content]:
    """The files of a results folder and its page, by their paths in a repository."""
    from rldsl.cli.report_view import PAGE

    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in PUBLISHED and path.is_file()]
    hidden = [path for path in paths if any(part.startswith(".") for part in path.relative_to(folder).parts)]
    files: dict[str, Content] = {
        f"results/{path.relative_to(folder).as_posix()}": path for path in paths if path not in hidden
    }
    page = folder.resolve().parent / PAGE
    return {**files, PAGE: page} if page.is_file() else files


def benchmark_of(folder: Path) -> str:
    """The benchmark table of a results folder, as Markdown."""
    from rldsl.cli.sources import Sources
    from rldsl.report.benchmark_table import make_benchmark
    from rldsl.report.dataset_card import benchmark_markdown

    sources = Sources(folder)
    sources.add(folder)
    return benchmark_markdown(make_benchmark(sources.entries, sources.results))


def _root(sessions: list[SessionDir], runs: Path) -> Path:
    """The run directory of the sessions."""
    roots = {one.path.resolve().parents[2] for one in sessions}
    if len(roots) > 1:
        raise SpecError(f"the sessions are in different run directories: {', '.join(map(str, sorted(roots)))}")
    return roots.pop() if roots else runs


def _relative(session: SessionDir, root: Path) -> str:
    return session.path.resolve().relative_to(root).as_posix()
