"""Episodes as video files, one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rldsl.store.errors import StoreError, writing

CODEC = "vp09"
"""VP9: of the codecs that OpenCV's wheels can encode, the one that browsers and players support."""


class VideoRecorder:
    """Writes `<name>-1.mp4`, `<name>-2.mp4`, ... An episode without a step leaves no file."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.files: list[Path] = []
        self._first: np.ndarray | None = None
        self._writer: Any = None
        self._fps = 0.0
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def begin_episode(self, image: np.ndarray, fps: float) -> None:
        """Starts an episode with its first image, RGB `[height, width, 3]`."""
        self.close()
        self._first, self._fps = image, fps

    def add(self, image: np.ndarray) -> None:
        """Adds the image after a step."""
        if self._first is not None:
            self._writer = self._open(self._first)
            self._write(self._first)
            self._first = None
        self._write(image)

    def close(self) -> None:
        """Finishes the file of the current episode."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None

    def _open(self, image: np.ndarray) -> Any:
        import cv2

        path = self.folder / f"{self.name}-{len(self.files) + 1}.mp4"
        height, width, _ = image.shape
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*CODEC), self._fps, (width, height))
        if not writer.isOpened():
            raise StoreError(
                f"cannot write a video to {path}: OpenCV has no {CODEC} encoder, or the folder is not writable"
            )
        self.files.append(path)
        return writer

    def _write(self, image: np.ndarray) -> None:
        self._writer.write(np.ascontiguousarray(image[..., ::-1], np.uint8))
