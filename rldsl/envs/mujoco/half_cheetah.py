"""HalfCheetah-v5: run with two legs in a plane (Wawrzyński, 2009)."""

from rldsl.envs.mujoco.runner import Runner


class HalfCheetah(Runner):
    id = "HalfCheetah-v5"
    model_file = "half_cheetah.xml"
    normal_velocities = True
