"""`python -m rldsl.play.showcase SESSION_DIRECTORY OUT`: evaluates a policy and films it, for its model card.

It writes OUT/results.json and, if the environment can be rendered here, OUT/replay.mp4.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from rldsl.envs.contract import EnvError
from rldsl.play.enjoy import Episode, make_env, play_episodes
from rldsl.play.policy import load_agent, read_checkpoint
from rldsl.play.video import VideoRecorder
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.spec.user_file import load_user_file
from rldsl.store.checkpoint import Checkpoint
from rldsl.store.errors import StoreError, writing
from rldsl.store.files import replace_json
from rldsl.store.session_dir import SessionDir

RESULTS, REPLAY = "results.json", "replay.mp4"
INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Plays the episodes; returns the exit code, 2 for an error that the user can mend."""
    options = _parse(arguments)
    try:
        if options.file:
            load_user_file(options.file)
        _show(SessionDir(options.directory), options.out, options.episodes)
    except (SpecError, StoreError, EnvError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _show(directory: SessionDir, out: Path, episodes: int) -> None:
    session = Session.from_record(directory.read_session(), directory.path)
    saved = read_checkpoint(directory, "best")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    played = []
    for episode in _play(session, saved, None, episodes):
        played.append(episode)
        print(f"episode {len(played)}: return {episode.episode_return:.2f}", flush=True)  # noqa: T201
    replace_json(out / RESULTS, _results(session, saved, played))
    try:
        video = VideoRecorder(out, "replay")
        _play(session, saved, video, 1)
        video.files[0].replace(out / REPLAY)
    except EnvError as error:
        print(f"no video: {error}", flush=True)  # noqa: T201


def _play(session: Session, saved: Checkpoint, video: VideoRecorder | None, episodes: int) -> list[Episode]:
    """Plays episodes with the most likely actions."""
    with closing(make_env(session, video, render=False)) as env:
        policy = load_agent(session, env.spaces, saved).policy(1, True, [session.seed])
        played = list(play_episodes(env, policy, session.seed, episodes))
    if video is not None:
        video.close()
    return played


def _results(session: Session, saved: Checkpoint, played: list[Episode]) -> dict[str, Any]:
    returns = [episode.episode_return for episode in played]
    return {
        "session": session.id,
        "env": session.trial.env.label,
        "env_id": session.trial.env.id,
        "agent": session.trial.agent.kind,
        "frame": saved.frame,
        "mean_reward": fmean(returns),
        "std_reward": pstdev(returns),
        "n_eval_episodes": len(returns),
        "is_deterministic": True,
        "returns": returns,
        "lengths": [episode.length for episode in played],
    }


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.play.showcase", description=__doc__)
    parser.add_argument("directory", type=Path, help="the directory of a session")
    parser.add_argument("out", type=Path, help="a folder for the results and the video")
    parser.add_argument("--episodes", type=int, default=20, help="how many episodes to evaluate")
    parser.add_argument("--file", type=Path, help="a file that defines classes of the session")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
