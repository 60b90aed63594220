"""TD3 (Fujimoto et al. 2018, arXiv:1802.09477): the spec is here, the implementation in td3_agent.py."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rldsl import MLP, Classic, experiment, main
from rldsl.extend import Count, Fraction, NonNegative, OffPolicy, PerMember


class TD3(OffPolicy, frozen=True):
    """Adds to the settings of every off-policy agent: learning rate, batch, replay buffer, network and so on."""

    kind: Literal["td3"] = "td3"
    implementation: ClassVar[str] = "td3_agent:TD3Agent"
    actions: ClassVar[frozenset[str]] = frozenset({"continuous"})

    tau: Annotated[Fraction, PerMember] = Field(default=0.005, description="Update rate of the target networks")
    policy_delay: Count = Field(default=2, description="Gradient steps of the critics per step of the policy")
    noise: NonNegative = Field(default=0.1, description="Standard deviation of exploration noise")
    target_noise: NonNegative = Field(default=0.2, description="Standard deviation of noise in the critics' targets")
    noise_clip: NonNegative = Field(default=0.5, description="Largest noise in the critics' targets")


small = MLP((64, 64), activation="relu")
pendulum = experiment("pendulum").env(Classic("Pendulum-v1", num_envs=4)).seeds(2).frames(2e4).target(-200)
td3 = pendulum.agent(TD3(lr=1e-3, net=small, batch=128, updates_per_frame=0.5, noise=0.2))

if __name__ == "__main__":
    main(td3)
