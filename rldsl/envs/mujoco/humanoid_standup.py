"""HumanoidStandup-v5: get up from the ground (Tassa, Erez and Todorov, 2012)."""

import numpy as np

from rldsl.envs.mujoco.humanoid_body import HumanoidBody


class HumanoidStandup(HumanoidBody):
    id = "HumanoidStandup-v5"
    model_file = "humanoidstandup.xml"

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        options = self.options
        height = self.qpos[:, 2] / self.model.opt.timestep
        impact = self._contact_cost(options.impact_cost_weight, options.impact_cost_range)
        return height - self._control_cost() - impact + 1, self._never()
