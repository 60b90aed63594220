"""The identity of a search: same id, same search."""

from __future__ import annotations

import hashlib
import json

from rldsl.spec.base import SCHEMA, identity
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Nevergrad


def search_id(experiment: Experiment, length: int = 12) -> str:
    """The hash of the base trial, the search and its seeds.

    The number of trials and `max_failures` are left out, so that a search can be extended. Nevergrad's optimizers
    depend on the number of trials: it is part of the identity of their searches.
    """
    assert experiment.search is not None
    search = identity(experiment.search)
    search.pop("max_failures")
    if not isinstance(experiment.search.method, Nevergrad):
        search["method"].pop("trials", None)
    parts = [SCHEMA, identity(experiment.base()), search, list(experiment.session_seeds)]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
