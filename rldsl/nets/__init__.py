"""Networks with a member axis: frozen dataclasses whose methods are pure functions of flat parameters `[M, P]`."""

from rldsl.nets.acting import Actor, NumpyPolicy, make_actor
from rldsl.nets.actor_critic import ActorCritic, Unrolled
from rldsl.nets.heads import Gaussian, Policy
from rldsl.nets.layout import Layout, Params
from rldsl.nets.network import Network
from rldsl.nets.q_network import QNetwork
from rldsl.nets.sampling import greedy, gumbel_noise, sample
from rldsl.nets.trunk import FeedForward, Trunk, build_trunk

__all__ = [
    "Actor",
    "ActorCritic",
    "FeedForward",
    "Gaussian",
    "Layout",
    "Network",
    "NumpyPolicy",
    "Params",
    "Policy",
    "QNetwork",
    "Trunk",
    "Unrolled",
    "build_trunk",
    "greedy",
    "gumbel_noise",
    "make_actor",
    "sample",
]
