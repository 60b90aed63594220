"""Swimmer-v5: a chain of three links swims in a plane (Coulom, 2002)."""

from rldsl.envs.mujoco.runner import Runner


class Swimmer(Runner):
    id = "Swimmer-v5"
    model_file = "swimmer.xml"
    ground_positions = 2
