"""One step contract for every environment: many rows stepped as one batch."""

from rldsl.envs.contract import Continuous, Discrete, EnvError, Spaces, Step, VectorEnv

__all__ = ["Continuous", "Discrete", "EnvError", "Spaces", "Step", "VectorEnv"]
