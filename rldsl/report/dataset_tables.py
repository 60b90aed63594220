"""Parquet tables of a dataset repository: runs (a row for each trial), seeds (each session) and curves (log points).

Curves are in a fixed number of files, all seeds of a trial in the same one, so that a push rewrites few of them.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.hub.index import Index, IndexRow
from rldsl.maths.statistics import interval_of_mean
from rldsl.report.learning_curve import Curve
from rldsl.report.result import thinned
from rldsl.spec.errors import SpecError
from rldsl.store.metrics import read_metrics
from rldsl.store.session_dir import SessionDir

RUNS, SEEDS, CURVES = "tables/runs.parquet", "tables/seeds.parquet", "tables/curves"
SHARDS = 32
CONFIGS = (
    {"config_name": "runs", "data_files": RUNS, "default": True},
    {"config_name": "seeds", "data_files": SEEDS},
    {"config_name": "curves", "data_files": f"{CURVES}/*.parquet"},
)
"""The tables, for the dataset viewer and `datasets.load_dataset`."""
NAMES = ("experiment", "env", "agent", "trial")


def require_pyarrow() -> None:
    """Refuses to continue without pyarrow, in one sentence."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise SpecError("pushing writes Parquet tables: pip install 'rldsl[hub]'") from error


def shard_of(trial: str) -> str:
    """The file with the curves of a trial."""
    return f"{CURVES}/{int(hashlib.sha256(trial.encode()).hexdigest(), 16) % SHARDS:02d}.parquet"


def trials_of(index: Index) -> Iterator[tuple[str, list[IndexRow]]]:
    """The rows of each trial, by experiment."""
    trials: dict[str, list[IndexRow]] = {}
    for row in sorted(index.rows.values(), key=lambda row: (row.env, row.experiment, row.trial, row.seed)):
        trials.setdefault(row.trial, []).append(row)
    yield from trials.items()


def run_data(trial: str, rows: Sequence[IndexRow]) -> dict[str, Any]:
    """A row of `runs`: the seeds of a trial that are done, or all of them if none is."""
    counted = [row for row in rows if row.state == "done"] or list(rows)
    scores = [row.score for row in counted if row.score is not None]
    interval = interval_of_mean(scores) if len(scores) > 1 else None
    known = interval is not None and np.isfinite(interval.low)
    return {
        **{name: getattr(rows[0], name) for name in NAMES},
        "state": "done" if all(row.state == "done" for row in rows) else "unfinished",
        "n": len(scores),
        "seeds": [row.seed for row in counted],
        "score": float(np.mean(scores)) if scores else None,
        "interval_low": float(interval.low) if known and interval else None,
        "interval_high": float(interval.high) if known and interval else None,
        "scores": scores,
        "target": rows[0].target,
        "frames": rows[0].frames,
        "seconds": float(np.mean([row.seconds for row in counted])),
        "audited": all(row.audited for row in rows),
    }


def runs_table(index: Index) -> bytes:
    """tables/runs.parquet."""
    return _parquet([run_data(trial, rows) for trial, rows in trials_of(index)], _runs_schema())


def seeds_table(index: Index) -> bytes:
    """tables/seeds.parquet."""
    names = ("directory", "id", *NAMES, "seed", "state", "score", "target", "frame", "frames", "seconds", "size")
    rows = [row for _, seeds in trials_of(index) for row in seeds]
    data = [{name: getattr(row, name) for name in (*names, "digest", "audited")} for row in rows]
    return _parquet(data, _seeds_schema())


def curves_table(rows: Iterable[IndexRow], sessions: Mapping[str, SessionDir], previous: bytes | None) -> bytes:
    """A file of curves: of sessions on disk, and of all others as they were in the previous file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _curves_schema()
    by_id = {row.id: row for row in rows}
    tables = [_curve(row, sessions[row.directory], schema) for row in by_id.values() if row.directory in sessions]
    if previous is not None:
        kept = [id for id, row in by_id.items() if row.directory not in sessions]
        old = pq.read_table(io.BytesIO(previous)).select(schema.names).cast(schema)
        tables.append(old.filter(pa.compute.field("session").isin(kept)))
    order = [(name, "ascending") for name in ("trial", "seed", "frame")]
    return _written(pa.concat_tables(tables).sort_by(order))


def curves_of(data: bytes, trial: str) -> list[Curve]:
    """The curves of the seeds of a trial in a file of curves."""
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data), filters=[("trial", "==", trial)])
    seeds, frames, returns = (table[name].to_numpy() for name in ("seed", "frame", "episode_return"))
    return [Curve.of(frames[seeds == seed], returns[seeds == seed]) for seed in np.unique(seeds)]


def _curve(row: IndexRow, session: SessionDir, schema: Any) -> Any:
    import pyarrow as pa

    metrics = read_metrics(session.metrics)
    frames, returns = metrics.get("frame", []), metrics.get("episode_return", [])
    curve = thinned(Curve.of(np.array(frames, np.float64), np.array(returns, np.float64)))
    points = len(curve.frame)
    columns = {"session": [row.id] * points, **{name: [getattr(row, name)] * points for name in (*NAMES, "seed")}}
    return pa.table({**columns, "frame": curve.frame.astype(np.int64), "episode_return": curve.value}, schema=schema)


def _parquet(rows: Sequence[Mapping[str, Any]], schema: Any) -> bytes:
    import pyarrow as pa

    return _written(pa.Table.from_pylist(list(rows), schema=schema))


def _written(table: Any) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _runs_schema() -> Any:
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    return pa.schema(
        [
            *((name, text) for name in (*NAMES, "state")),
            *(("n", whole), ("seeds", pa.list_(whole)), ("score", number)),
            *(("interval_low", number), ("interval_high", number), ("scores", pa.list_(number))),
            *(("target", number), ("frames", whole), ("seconds", number), ("audited", pa.bool_())),
        ]
    )


def _seeds_schema() -> Any:
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    return pa.schema(
        [
            *((name, text) for name in ("directory", "id", *NAMES)),
            *(("seed", whole), ("state", text), ("score", number), ("target", number), ("frame", whole)),
            *(("frames", whole), ("seconds", number), ("size", whole), ("digest", text), ("audited", pa.bool_())),
        ]
    )


def _curves_schema() -> Any:
    import pyarrow as pa

    names = [(name, pa.string()) for name in ("session", *NAMES)]
    return pa.schema([*names, ("seed", pa.int64()), ("frame", pa.int64()), ("episode_return", pa.float64())])
