"""Episodes as video files, one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rldsl.store.errors import StoreError, writing

CODEC = "vp09"
"""VP9: of what OpenCV's wheels can encode, the one that browsers and players show."""


class Film:
    """Writes `<name>-1.mp4`, `<name>-2.mp4`, ...; an episode of a single picture, which nobody played, leaves none."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.files: list[Path] = []
        self._first: np.ndarray | None = None
        self._writer: Any = None
        self._fps = 0.0
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def begin(self, picture: np.ndarray, fps: float) -> None:
        """An episode begins with this picture, `[height, width, 3]` of red, green and blue."""
        self.close()
        self._first, self._fps = picture, fps

    def add(self, picture: np.ndarray) -> None:
        """What the episode's next step showed."""
        if self._first is not None:
            self._writer = self._open(self._first)
            self._write(self._first)
            self._first = None
        self._write(picture)

    def close(self) -> None:
        """Ends the file of the episode."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None

    def _open(self, picture: np.ndarray) -> Any:
        import cv2

        path = self.folder / f"{self.name}-{len(self.files) + 1}.mp4"
        height, width, _ = picture.shape
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*CODEC), self._fps, (width, height))
        if not writer.isOpened():
            raise StoreError(
                f"cannot write a video to {path}: OpenCV has no {CODEC} encoder, or the place is not writable"
            )
        self.files.append(path)
        return writer

    def _write(self, picture: np.ndarray) -> None:
        self._writer.write(np.ascontiguousarray(picture[..., ::-1], np.uint8))
