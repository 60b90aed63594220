"""`python -m rldsl.play.enjoy SESSION_DIRECTORY`: plays episodes with a trained policy, and prints their returns."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rldsl.agents.base import Policy
from rldsl.envs.contract import EnvError, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.play.policy import load_agent, read_checkpoint
from rldsl.play.video import VideoRecorder
from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.spec.user_file import load_user_file
from rldsl.store.checkpoint import Checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

INTERRUPTED = 130


@dataclass(frozen=True)
class Episode:
    """Return and length of an episode."""

    episode_return: float
    length: int


def main(arguments: list[str]) -> int:
    """Plays the episodes; returns the exit code, 2 for an error that the user can mend."""
    options = _parse(arguments)
    try:
        if options.file:
            load_user_file(options.file)
        _play_session(SessionDir(options.directory), options)
    except (SpecError, StoreError, EnvError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _play_session(directory: SessionDir, options: argparse.Namespace) -> None:
    session = Session.from_record(directory.read_session(), directory.path)
    saved = read_checkpoint(directory, options.checkpoint)
    video = VideoRecorder(options.video, session.id) if options.video else None
    episodes = []
    with closing(make_env(session, video, options.render)) as env:
        agent = load_agent(session, env.spaces, saved)
        policy = agent.policy(1, not options.stochastic, [session.seed])
        for episode in play_episodes(env, policy, session.seed, options.episodes):
            episodes.append(episode)
            if not options.json:
                print(_line(len(episodes), episode, video), flush=True)  # noqa: T201
    _print_summary(session, saved, episodes, video, options.json)


def play_episodes(env: VectorEnv, policy: Policy, seed: int, episodes: int) -> Iterator[Episode]:
    """Plays episodes one after the other. Their seeds are none that were trained with, and the same every time."""
    observation, start = env.reset(row_seeds(seed, 1, "enjoy")), True
    episode_return, length, played = 0.0, 0, 0
    while played < episodes:
        step = env.step(policy(observation[None], np.array([[start]]))[0])
        observation, start = step.observation, bool(step.ended.size)
        episode_return, length = episode_return + float(step.reward[0]), length + 1
        if start:
            yield Episode(episode_return, length)
            episode_return, length, played = 0.0, 0, played + 1


def make_env(session: Session, video: VideoRecorder | None, render: bool) -> VectorEnv:
    """One environment of a session: plain, filmed, or shown in a window."""
    env = session.trial.env
    if video is None and not render:
        made: VectorEnv = implementation(env)(env, 1, 1)
        return made
    _choose_renderer(video is not None)
    from rldsl.play.rendering import make_rendered_env

    return make_rendered_env(env, video)


def _choose_renderer(recording: bool) -> None:
    """Without a display, MuJoCo and SDL have to render offscreen; MuJoCo reads its variable when it is imported."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    if not recording:
        raise EnvError("There is no screen here to show a window on; --video DIR films instead.")
    os.environ.setdefault("MUJOCO_GL", "egl")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _line(number: int, episode: Episode, video: VideoRecorder | None) -> str:
    file = f", {video.files[-1]}" if video else ""
    return f"episode {number}: return {episode.episode_return:.2f}, length {episode.length:,}{file}"


def _print_summary(
    session: Session, saved: Checkpoint, episodes: list[Episode], video: VideoRecorder | None, as_json: bool
) -> None:
    mean = fmean(episode.episode_return for episode in episodes)
    if not as_json:
        print(f"mean return {mean:.2f} over {len(episodes)} episode{'s' if len(episodes) > 1 else ''}")  # noqa: T201
        return
    rows: list[dict[str, Any]] = [{"return": one.episode_return, "steps": one.length} for one in episodes]
    for row, path in zip(rows, video.files if video else (), strict=False):
        row["video"] = str(path)
    document = {"session": session.id, "frame": saved.frame, "mean_return": mean, "episodes": rows}
    print(json.dumps(document, indent=2))  # noqa: T201


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.play.enjoy", description=__doc__)
    parser.add_argument("directory", type=Path, help="the directory of a session")
    parser.add_argument("--checkpoint", default="best", help="best, last, or one that a hook has named")
    parser.add_argument("--episodes", type=int, default=5, help="how many episodes to play")
    parser.add_argument("--stochastic", action="store_true", help="sample actions as in training")
    parser.add_argument("--video", type=Path, help="a folder for a video of each episode")
    parser.add_argument("--render", action="store_true", help="show a window")
    parser.add_argument("--json", action="store_true", help="print JSON at the end")
    parser.add_argument("--file", type=Path, help="a file that defines classes of the session")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
