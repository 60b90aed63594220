"""The run directory: journal, metrics, checkpoints, provenance. Importing it imports nothing heavy."""

from rldsl.store.checkpoint import Checkpoint, checkpoint_frames, load_checkpoint, save_checkpoint
from rldsl.store.errors import (
    AlreadyRunning,
    CannotWrite,
    CheckpointDamaged,
    CheckpointOutdated,
    CheckpointRefused,
    DiskFull,
    SessionNotFound,
    StoreError,
    WrongColumns,
)
from rldsl.store.journal import Garbage, Journal, JournalReader, fold, read_journal
from rldsl.store.metrics import MetricsReader, MetricsWriter, last_row, read_metrics
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState, State
from rldsl.store.tensorboard import TensorBoardWriter

__all__ = [
    "AlreadyRunning",
    "CannotWrite",
    "Checkpoint",
    "CheckpointDamaged",
    "CheckpointOutdated",
    "CheckpointRefused",
    "DiskFull",
    "Garbage",
    "Journal",
    "JournalReader",
    "MetricsReader",
    "MetricsWriter",
    "Runs",
    "SessionDir",
    "SessionNotFound",
    "SessionState",
    "State",
    "StoreError",
    "TensorBoardWriter",
    "WrongColumns",
    "checkpoint_frames",
    "fold",
    "last_row",
    "load_checkpoint",
    "read_journal",
    "read_metrics",
    "save_checkpoint",
]
