"""`python -m rldsl.train.enjoy SESSION_DIRECTORY`: plays episodes with what a session has learned, without learning."""

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

from rldsl.agents.contract import AgentContext, Learner, Policy
from rldsl.envs.contract import EnvError, Spaces, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.store.checkpoint import Checkpoint, load_checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir
from rldsl.train.user_code import load_user_code
from rldsl.train.video import Film

INTERRUPTED = 130


@dataclass(frozen=True)
class Episode:
    """What one episode came to."""

    total: float
    steps: int


def main(arguments: list[str]) -> int:
    """Plays, and prints each episode as it ends; 0 unless something is in the way."""
    options = _parse(arguments)
    try:
        if options.file:
            load_user_code(options.file)
        _play_session(SessionDir(options.directory), options)
    except (SpecError, StoreError, EnvError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _play_session(directory: SessionDir, options: argparse.Namespace) -> None:
    session = Session.from_record(directory.read_session())
    saved = _checkpoint(directory, options.checkpoint)
    film = Film(options.video, session.id) if options.video else None
    episodes = []
    with closing(_environment(session, film, options.render)) as env:
        policy = _policy(session, env.spaces, saved, deterministic=not options.stochastic)
        for episode in play(env, policy, session.seed, options.episodes):
            episodes.append(episode)
            if not options.json:
                print(_line(len(episodes), episode, film), flush=True)  # noqa: T201
    _say_all(session, saved, episodes, film, options.json)


def play(env: VectorEnv, policy: Policy, seed: int, episodes: int) -> Iterator[Episode]:
    """The first episodes of a stream of their own: the same ones every time, and none that was trained in."""
    observation, start = env.reset(row_seeds(seed, 1, "enjoy")), True
    total, steps, played = 0.0, 0, 0
    while played < episodes:
        step = env.step(policy(observation[None], np.array([[start]]))[0])
        observation, start = step.observation, bool(step.ended.size)
        total, steps = total + float(step.reward[0]), steps + 1
        if start:
            yield Episode(total, steps)
            total, steps, played = 0.0, 0, played + 1


def _checkpoint(directory: SessionDir, which: str) -> Checkpoint:
    saved = load_checkpoint(directory.checkpoints, tag="best" if which == "best" else None, any_schema=True)
    if saved is None:
        raise StoreError(f"the session in {directory.path} has no checkpoint yet")
    return saved


def _environment(session: Session, film: Film | None, render: bool) -> VectorEnv:
    env = session.trial.env
    if film is None and not render:
        made: VectorEnv = implementation(env)(env, 1, 1)
        return made
    _choose_renderer(film is not None)
    from rldsl.train.watched import watched

    return watched(env, film)


def _choose_renderer(filming: bool) -> None:
    """Without a screen MuJoCo must be told to draw without one, before it is imported, and SDL not to look for one."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    if not filming:
        raise EnvError("There is no screen here to show a window on; --video DIR films instead.")
    os.environ.setdefault("MUJOCO_GL", "egl")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _policy(session: Session, spaces: Spaces, saved: Checkpoint, deterministic: bool) -> Policy:
    """What was learned, on the CPU: for one environment nothing is faster."""
    trial = session.trial
    learner: type[Learner] = implementation(trial.agent)
    agent = learner(
        AgentContext(
            specs=[trial.agent],
            seeds=[session.seed],
            spaces=spaces,
            num_envs=trial.env.num_envs,
            frames=trial.budget.frames,
            compute=trial.compute.with_(device="cpu", compile="off"),
        )
    )
    agent.restore_policy(0, saved.state["agent"])
    return agent.policy(1, deterministic, [session.seed])


def _line(number: int, episode: Episode, film: Film | None) -> str:
    where = f", {film.files[-1]}" if film else ""
    return f"episode {number}: return {episode.total:.2f}, length {episode.steps:,}{where}"


def _say_all(session: Session, saved: Checkpoint, episodes: list[Episode], film: Film | None, as_json: bool) -> None:
    mean = fmean(one.total for one in episodes)
    if not as_json:
        print(f"mean return {mean:.2f} over {len(episodes)} episode{'s' if len(episodes) > 1 else ''}")  # noqa: T201
        return
    told: list[dict[str, Any]] = [{"return": one.total, "steps": one.steps} for one in episodes]
    for one, path in zip(told, film.files if film else (), strict=False):
        one["video"] = str(path)
    about = {"session": session.id, "frame": saved.frame, "mean_return": mean, "episodes": told}
    print(json.dumps(about, indent=2))  # noqa: T201


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.train.enjoy", description=__doc__)
    parser.add_argument("directory", type=Path, help="the directory of a session")
    parser.add_argument("--checkpoint", choices=("best", "last"), default="best", help="which of its checkpoints")
    parser.add_argument("--episodes", type=int, default=5, help="how many episodes to play")
    parser.add_argument("--stochastic", action="store_true", help="draw actions as in training")
    parser.add_argument("--video", type=Path, help="a folder for a video of each episode")
    parser.add_argument("--render", action="store_true", help="show a window")
    parser.add_argument("--json", action="store_true", help="print JSON at the end")
    parser.add_argument("--file", type=Path, help="a file whose classes the session needs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
