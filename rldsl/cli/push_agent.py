"""`push --agent`: evaluates and films the policy of a session, and pushes it to a model repository."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from rldsl.cli.tables import echo, escape
from rldsl.hub.agent import agent_files
from rldsl.hub.repository import Content, Repository
from rldsl.launch.worker import run_worker
from rldsl.report.agent_card import agent_card, mean_reward
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.errors import StoreError
from rldsl.store.runs import Runs
from rldsl.store.secrets import offenders
from rldsl.store.session_dir import SessionDir

RESULTS, REPLAY = "results.json", "replay.mp4"


def push_agent(name: str, repo: str | None, runs: Path, file: Path | None, episodes: int, public: bool) -> int:
    """Pushes the policy of the session that `name` means."""
    if file is not None:
        from rldsl.spec.user_file import load_user_file

        load_user_file(file)
    directory = Runs(runs).find(name)
    session = Session.from_record(directory.read_session(), directory.path)
    repository = Repository(repo or _default_name(session), kind="model")
    files = agent_files(directory)
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder)
        code = _showcase(directory, shown, file, episodes)
        if code:
            return code
        results = json.loads((shown / RESULTS).read_bytes())
        video: dict[str, Content] = {REPLAY: shown / REPLAY} if (shown / REPLAY).exists() else {}
        card = agent_card(repository.name, session, results, video=bool(video))
        described: dict[str, Content] = {RESULTS: shown / RESULTS, "README.md": card.encode(), **video}
        _refuse_secrets({**files, **described})
        echo(f"pushing {escape(repository.name)} ...")
        repository.create(private=not public)
        repository.commit({**files, **described}, [], f"{session.experiment}, session {session.id}")
    echo(f"mean reward {mean_reward(results)} over {results['n_eval_episodes']} episodes: {escape(repository.url)}")
    echo(f"`rldsl enjoy hf://{escape(repository.name)}` plays it")
    return 0


def _showcase(directory: SessionDir, out: Path, file: Path | None, episodes: int) -> int:
    echo(f"playing {episodes} episodes with the best policy of {directory.id} ...")
    arguments = [str(directory.path), str(out), "--episodes", str(episodes)]
    return run_worker("rldsl.play.showcase", [*arguments, *(["--file", str(file)] if file else [])])


def _default_name(session: Session) -> str:
    """`OWNER/ppo-CartPole-v1`, with the owner of HF_REPO."""
    owner = os.environ.get("HF_REPO", "").partition("/")[0]
    if not owner:
        raise SpecError("which repository? --repo OWNER/NAME")
    return f"{owner}/{session.trial.agent.kind}-{session.trial.env.label}".replace(" ", "-")


def _refuse_secrets(files: dict[str, Content]) -> None:
    for path, reason in offenders(content for content in files.values() if isinstance(content, Path)).items():
        raise StoreError(f"not pushed: {path} {reason}")
