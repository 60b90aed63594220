"""Machine: usage of CPU, memory, GPUs and the disk of the run directory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from rldsl.monitor.machine import Usage
from rldsl.monitor.palette import Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import bar
from rldsl.store.processes import host_name

MEASURE_SECONDS = 2.0
HISTORY = 60
BLOCKS = " ▁▂▃▄▅▆▇█"


class MachineScreen(WatchScreen):
    """Measures only while the screen is shown."""

    NAME = "machine"
    AUTO_FOCUS = "#machine"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.show('runs')", "Back")]

    def __init__(self) -> None:
        super().__init__()
        self.cpu_history: deque[float] = deque(maxlen=HISTORY)
        self.memory_history: deque[float] = deque(maxlen=HISTORY)

    def compose_body(self) -> Iterable[Widget]:
        yield VerticalScroll(Static(id="usage"), id="machine")

    def on_mount(self) -> None:
        self.set_interval(MEASURE_SECONDS, self._measure_if_shown)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.measure()

    def _measure_if_shown(self) -> None:
        if self.is_current:
            self.measure()

    @work(thread=True, exclusive=True, group="machine", exit_on_error=False)
    def measure(self) -> None:
        """Measures in a thread: `nvidia-smi` can be slow."""
        usage = self.app.read_usage(self.app.runs)
        self.app.call_from_thread(self.show, usage)

    def show(self, usage: Usage) -> None:
        """Shows the usage and its history over the last two minutes."""
        if usage.cores:
            self.cpu_history.append(sum(usage.cores) / len(usage.cores))
        if usage.memory[1]:
            self.memory_history.append(usage.memory[0] / usage.memory[1])
        width = max(10, min(50, self.size.width - 46))
        self.query_one("#usage", Static).update(self._text(usage, width, palette_of(self.app)))
        running = [session for session in self.app.sessions.values() if session.status.state == "running"]
        local = sum(session.backend == "local" for session in running)
        self.set_status(
            f"{host_name()}: {local} of {len(running)} running sessions are on this machine; "
            f"measured every {MEASURE_SECONDS:.0f} seconds"
        )

    def _text(self, usage: Usage, width: int, palette: Palette) -> Text:
        text = Text(no_wrap=True)
        text.append("CPU\n", palette.style("primary", bold=True))
        for number, utilization in enumerate(usage.cores):
            _gauge(text, f"core {number}", utilization, f"{utilization:4.0%}", width, palette)
        load = " ".join(f"{average:.2f}" for average in usage.load)
        _history(text, f"load {load}", self.cpu_history, palette)
        text.append("\nMemory\n", palette.style("primary", bold=True))
        _sizes(text, "memory", usage.memory, width, palette)
        if usage.swap[1]:
            _sizes(text, "swap", usage.swap, width, palette)
        _history(text, "", self.memory_history, palette)
        text.append("\nGPU\n", palette.style("primary", bold=True))
        for gpu in usage.gpus:
            _gauge(text, gpu.name[:14], gpu.utilization, f"{gpu.utilization:4.0%}", width, palette)
            _sizes(text, "  memory", (gpu.used, gpu.total), width, palette)
        if not usage.gpus:
            text.append("  none\n", palette.dim)
        text.append("\nDisk of the run directory\n", palette.style("primary", bold=True))
        if usage.disk is None:
            text.append(f"  {self.app.runs} does not exist\n", palette.style("error"))
        else:
            _sizes(text, "disk", usage.disk, width, palette)
        return text


def _gauge(text: Text, name: str, share: float, label: str, width: int, palette: Palette) -> None:
    role = "error" if share > 0.95 else "warning" if share > 0.8 else "success"
    text.append(f"  {name:<14} ", palette.dim)
    for segment in bar(min(1.0, share), width, palette.style(role), palette.faint):
        text.append(segment.text, segment.style)
    text.append(f" {label}\n")


def _sizes(text: Text, name: str, usage: tuple[int, int], width: int, palette: Palette) -> None:
    used, total = usage
    _gauge(text, name, used / total if total else 0.0, f"{size(used)} of {size(total)}", width, palette)


def _history(text: Text, name: str, shares: Iterable[float], palette: Palette) -> None:
    marks = "".join(BLOCKS[min(8, round(share * 8))] for share in shares)
    text.append(f"  {name}\n" if name else "", palette.dim)
    text.append(f"  {'last minutes':<14} ", palette.dim)
    text.append(f"{marks}\n", palette.style("primary"))


def size(number: float) -> str:
    """A number of bytes: 6 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} TiB"
