"""A network of your own: the spec is here, the implementation in sine_net.py."""

from typing import ClassVar, Literal

from pydantic import Field

from rldsl import PPO, Classic, Net, experiment, main


class Sine(Net, frozen=True):
    """One linear layer and a sine."""

    kind: Literal["sine"] = "sine"
    implementation: ClassVar[str] = "sine_net:SineTrunk"
    units: int = Field(kw_only=False, default=64, gt=0, description="Units of the layer")


pendulum = experiment("pendulum").env(Classic("Pendulum-v1", num_envs=4)).seeds(2).frames(2e5)
ppo = pendulum.agent(PPO(rollout=256, net=Sine(128), critic_net=Sine(128)))

if __name__ == "__main__":
    main(ppo)
