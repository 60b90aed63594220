"""The key under which an agent's compiled steps are cached."""

from __future__ import annotations

from rldsl import MLP, PPO
from rldsl.agents.base import AgentContext
from rldsl.agents.ppo import PPOAgent
from rldsl.envs.classic import make
from rldsl.envs.contract import Spaces


def test_it_differs_between_settings_and_is_none_for_users_code() -> None:
    spaces: Spaces = make("CartPole-v1", 1).spaces

    def key(agent: PPO, num_envs: int = 4, implementation: type[PPOAgent] = PPOAgent) -> str | None:
        return implementation(AgentContext([agent], [0], spaces, num_envs, frames=512)).cache_key("loss")

    agent = PPO(rollout=8, minibatch=16)
    assert key(agent) == key(agent)
    assert len({key(agent), key(agent.with_(clip=0.3)), key(agent, 8), None}) == 4

    class Mine(MLP, frozen=True):
        kind: str = "mine-with-cache-key"

    class MyAgent(PPOAgent):
        pass

    assert key(agent, implementation=MyAgent) is None
    assert key(agent.with_(net=Mine((8,)))) is None
