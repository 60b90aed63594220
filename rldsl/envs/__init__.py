"""Vector environments with one step contract."""

from rldsl.envs.contract import Continuous, Discrete, EnvError, Spaces, Step, VectorEnv

__all__ = ["Continuous", "Discrete", "EnvError", "Spaces", "Step", "VectorEnv"]
