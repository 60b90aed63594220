"""Names of other libraries lead to ours."""

from __future__ import annotations

import pytest

from rldsl import DQN, PPO, SAC, Agent, SpecError


@pytest.mark.parametrize(
    ("agent", "theirs", "ours"),
    [
        (PPO, "learning_rate", "lr"),
        (PPO, "n_steps", "rollout"),
        (PPO, "batch_size", "minibatch"),
        (PPO, "gae_lambda", "lam"),
        (PPO, "ent_coef", "entropy"),
        (PPO, "clip_range", "clip"),
        (PPO, "n_epochs", "epochs"),
        (PPO, "vf_coef", "value_coef"),
        (DQN, "batch_size", "batch"),
        (DQN, "buffer_size", "buffer"),
        (DQN, "target_update_interval", "target_every"),
        (SAC, "ent_coef", "alpha"),
        (SAC, "gradient_steps", "updates_per_frame"),
    ],
)
def test_names_of_other_libraries_lead_to_ours(agent: type[Agent], theirs: str, ours: str) -> None:
    assert ours in agent.model_fields
    with pytest.raises(SpecError, match=rf"has no field '{theirs}'; did you mean {ours}\?$"):
        agent(**{theirs: 1})
