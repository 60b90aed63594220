"""Functions of your own at log points and at the end of a session."""

from rldsl import PPO, Classic, experiment, main
from rldsl.extend import LogPoint, SessionEnd


def stop_when_solved(point: LogPoint) -> None:
    """Keeps the policy that first reaches 100, and ends the session at 200."""
    episode_return = point.metrics["episode_return"] or 0.0
    if episode_return > 100 and not (point.directory / "checkpoints" / "first-100").exists():
        point.save_checkpoint("first-100")
    if episode_return > 200:
        point.stop(f"solved at frame {point.frame:,}")


def tell(end: SessionEnd) -> None:
    (end.directory / "ended.txt").write_text(f"{end.session} is {end.outcome} at frame {end.frame:,}\n")


cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=8)).frames(1e5).log_every(1000)
ppo = cartpole.agent(PPO(rollout=128, minibatch=256, lr=1e-3)).on_log(stop_when_solved).on_end(tell)

if __name__ == "__main__":
    main(ppo)
