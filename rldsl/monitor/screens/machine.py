"""Machine: processors, memory, graphics cards, and the disk of the run directory."""

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

EVERY = 2.0
HISTORY = 60
BLOCKS = " ▁▂▃▄▅▆▇█"


class MachineScreen(WatchScreen):
    """Measures only while it is looked at."""

    NAME = "machine"
    AUTO_FOCUS = "#machine"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.show('runs')", "Back")]

    def __init__(self) -> None:
        super().__init__()
        self.busy: deque[float] = deque(maxlen=HISTORY)
        self.filled: deque[float] = deque(maxlen=HISTORY)

    def compose_body(self) -> Iterable[Widget]:
        yield VerticalScroll(Static(id="usage"), id="machine")

    def on_mount(self) -> None:
        self.set_interval(EVERY, self._measure_if_looked_at)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.measure()

    def _measure_if_looked_at(self) -> None:
        if self.is_current:
            self.measure()

    @work(thread=True, exclusive=True, group="machine", exit_on_error=False)
    def measure(self) -> None:
        """Asks in a thread: a graphics card may take its time."""
        usage = self.app.read_usage(self.app.runs)
        self.app.call_from_thread(self.show, usage)

    def show(self, usage: Usage) -> None:
        """Shows what was measured, and the last two minutes of it."""
        if usage.cores:
            self.busy.append(sum(usage.cores) / len(usage.cores))
        if usage.memory[1]:
            self.filled.append(usage.memory[0] / usage.memory[1])
        width = max(10, min(50, self.size.width - 46))
        self.query_one("#usage", Static).update(self._text(usage, width, palette_of(self.app)))
        running = [one for one in self.app.seen.values() if one.status.state == "running"]
        here = sum(one.place == "local" for one in running)
        self.say(
            f"{host_name()}: {here} of {len(running)} running sessions are here; measured every {EVERY:.0f} seconds"
        )

    def _text(self, usage: Usage, width: int, palette: Palette) -> Text:
        text = Text(no_wrap=True)
        text.append("Processors\n", palette.style("primary", bold=True))
        for number, share in enumerate(usage.cores):
            _gauge(text, f"core {number}", share, f"{share:4.0%}", width, palette)
        load = " ".join(f"{one:.2f}" for one in usage.load)
        _history(text, f"load {load}", self.busy, palette)
        text.append("\nMemory\n", palette.style("primary", bold=True))
        _sizes(text, "memory", usage.memory, width, palette)
        if usage.swap[1]:
            _sizes(text, "swap", usage.swap, width, palette)
        _history(text, "", self.filled, palette)
        text.append("\nGraphics cards\n", palette.style("primary", bold=True))
        for gpu in usage.gpus:
            _gauge(text, gpu.name[:14], gpu.share, f"{gpu.share:4.0%}", width, palette)
            _sizes(text, "  memory", (gpu.used, gpu.total), width, palette)
        if not usage.gpus:
            text.append("  none\n", palette.dim)
        text.append("\nDisk of the run directory\n", palette.style("primary", bold=True))
        if usage.disk is None:
            text.append(f"  {self.app.runs} is not there\n", palette.style("error"))
        else:
            _sizes(text, "disk", usage.disk, width, palette)
        return text


def _gauge(text: Text, name: str, share: float, figure: str, width: int, palette: Palette) -> None:
    role = "error" if share > 0.95 else "warning" if share > 0.8 else "success"
    text.append(f"  {name:<14} ", palette.dim)
    for segment in bar(min(1.0, share), width, palette.style(role), palette.faint):
        text.append(segment.text, segment.style)
    text.append(f" {figure}\n")


def _sizes(text: Text, name: str, sizes: tuple[int, int], width: int, palette: Palette) -> None:
    used, total = sizes
    _gauge(text, name, used / total if total else 0.0, f"{size(used)} of {size(total)}", width, palette)


def _history(text: Text, name: str, shares: Iterable[float], palette: Palette) -> None:
    marks = "".join(BLOCKS[min(8, round(share * 8))] for share in shares)
    text.append(f"  {name}\n" if name else "", palette.dim)
    text.append(f"  {'last minutes':<14} ", palette.dim)
    text.append(f"{marks}\n", palette.style("primary"))


def size(number: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} TiB"
