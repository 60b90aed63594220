"""`load_policy`: the trained policy of a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rldsl.api.runs import Run
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

if TYPE_CHECKING:
    from rldsl.play.policy import TrainedPolicy


def load_policy(
    session: Run | str | Path, checkpoint: str = "best", *, runs: str | Path = "runs", seed: int | None = None
) -> TrainedPolicy:
    """The policy of a session as a function: `action = policy(observation, deterministic=True)`.

    `session` is a run, a session directory, the id of a session in `runs` (or its beginning), or the address of an
    agent on the Hugging Face Hub, `"hf://owner/name"` or `"hf://owner/name@revision"`, which is downloaded once.
    `checkpoint` is `"best"`, the policy after the log point with the highest `episode_return`, or `"last"`. `seed` is
    the seed of sampled actions, by default the session's own.
    """
    from rldsl.hub.agent import download_agent, is_address
    from rldsl.play.policy import load_trained_policy

    if isinstance(session, Run):
        directory = SessionDir(session.directory)
    elif isinstance(session, Path):
        directory = SessionDir(session)
    elif is_address(session):
        directory = download_agent(session)
    else:
        directory = Runs(Path(runs)).find(session)
    return load_trained_policy(directory, checkpoint, seed)
