"""What the server of forks has read before it forks: every algorithm, and the sources that code versions digest.

Most of the time that a worker needs to start is spent there. Nothing is computed: torch has no threads yet.
"""

from __future__ import annotations

import gc

import tensorboard.compat.proto.event_pb2
import tensorboard.compat.proto.summary_pb2
import tensorboard.plugins.hparams.summary_v2
import tensorboard.plugins.text.summary_v2
import tensorboard.summary.writer.record_writer  # noqa: F401

import rldsl.envs.classic
import rldsl.envs.make
import rldsl.train.__main__  # noqa: F401
from rldsl.spec.implementation import implementation
from rldsl.store.code_version import CodeVersions
from rldsl.store.provenance import packages
from tests.train.packs import CASES, session

versions = CodeVersions(None)
for agent, env in CASES.values():
    implementation(agent)
    versions.of(session(agent, env).trial)
packages()
gc.collect()
gc.freeze()  # so that the collector of a fork does not copy everything
