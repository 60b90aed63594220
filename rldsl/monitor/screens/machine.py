"""Machine: usage of CPU, memory, GPUs and the disk of the run directory, and the processes of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from rldsl.monitor.machine import Gpu, Usage
from rldsl.monitor.palette import Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import bar
from rldsl.monitor.widgets.keyed_table import KeyedTable
from rldsl.monitor.widgets.painted import PaintedText
from rldsl.report.words import count
from rldsl.store.processes import host_name

MEASURE_SECONDS = 3.0
BLOCKS = "▁▂▃▄▅▆▇█"
MOST_GAUGES = 16
"""Machines with more cores than this show a block for each core instead of a line."""
COLUMNS = ("pid", "CPU", "memory", "GPU memory", "sessions")


class MachineScreen(WatchScreen):
    """The history is measured also while the screen is hidden, less often."""

    NAME = "machine"
    AUTO_FOCUS = "KeyedTable"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.show('runs')", "Back")]

    def compose_body(self) -> Iterable[Widget]:
        yield VerticalScroll(PaintedText(id="usage"), id="machine")
        yield KeyedTable(id="processes")

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.refresh_content())
        self.set_interval(MEASURE_SECONDS, self._measure_if_shown)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.app.sample_machine()

    def _measure_if_shown(self) -> None:
        if self.is_current:
            self.app.sample_machine()

    def chosen(self) -> list[SessionSnapshot]:
        """The sessions of the process under the cursor."""
        key = self.query_one(KeyedTable).current_key
        return self.app.in_order(path for path, pid in self.app.machine.holders.items() if str(pid) == key)

    def update_content(self) -> None:
        """Shows the last measurement and the history."""
        palette, machine = palette_of(self.app), self.app.machine
        width = max(10, min(50, self.size.width - 46))
        base = Style(color=palette.colour("foreground"), bgcolor=palette.colour("background"))
        self.query_one(PaintedText).show(self._text(machine.latest, width, palette), base)
        rows = [(str(pid), self._cells(pid)) for pid in machine.processes]
        self.query_one(KeyedTable).show(COLUMNS, rows)
        live = sum(session.live for session in self.app.sessions.values())
        here = len(machine.holders)
        self.set_status(
            f"{host_name()}: {here} of {count(live, 'running session')} on this machine; "
            f"measured every {MEASURE_SECONDS:.0f} seconds"
        )

    def _cells(self, pid: int) -> list[Text]:
        usage, sessions = self.app.machine.processes[pid], self.app.machine.holders
        ids = [
            self.app.sessions[path].status.session
            for path, one in sessions.items()
            if one == pid and path in self.app.sessions
        ]
        gpu = "" if usage.gpu_memory is None else size(usage.gpu_memory)
        texts = (str(pid), f"{usage.cpu:.2f} cores", size(usage.memory), gpu)
        named = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        return [*(Text(text, justify="right") for text in texts), Text(named)]

    def _text(self, usage: Usage, width: int, palette: Palette) -> Text:
        text = Text(no_wrap=True)
        heat = "" if usage.temperature is None else f"  {usage.temperature:.0f} °C"
        text.append(f"CPU{heat}\n", palette.style("primary", bold=True))
        _cores(text, usage.cores, width, palette)
        load = " ".join(f"{average:.2f}" for average in usage.load)
        _history(text, f"load {load}", self.app.machine.cpu, width, palette)
        text.append("\nMemory\n", palette.style("primary", bold=True))
        _sizes(text, "memory", usage.memory, width, palette)
        if usage.swap[1]:
            _sizes(text, "swap", usage.swap, width, palette)
        _history(text, "", self.app.machine.memory, width, palette)
        text.append("\nGPU\n", palette.style("primary", bold=True))
        for gpu in usage.gpus:
            _gauge(text, gpu.name[:14], gpu.utilization, f"{gpu.utilization:4.0%}{_power(gpu)}", width, palette)
            _sizes(text, "  memory", (gpu.used, gpu.total), width, palette)
        if usage.gpus:
            _history(text, "", self.app.machine.gpu, width, palette)
        else:
            text.append("  none\n", palette.dim)
        text.append("\nDisk of the run directory\n", palette.style("primary", bold=True))
        if usage.disk is None:
            text.append(f"  {self.app.runs} does not exist\n", palette.style("error"))
        else:
            _sizes(text, "disk", usage.disk, width, palette)
        return text


def _power(gpu: Gpu) -> str:
    limit = "" if gpu.power_limit is None else f"/{gpu.power_limit:.0f}"
    power = "" if gpu.power is None else f"  {gpu.power:.0f}{limit} W"
    return power + ("" if gpu.temperature is None else f"  {gpu.temperature:.0f} °C")


def _cores(text: Text, cores: Sequence[float], width: int, palette: Palette) -> None:
    """A gauge for each core; of many cores, a block for each."""
    if len(cores) <= MOST_GAUGES:
        for number, utilization in enumerate(cores):
            _gauge(text, f"core {number}", utilization, f"{utilization:4.0%}", width, palette)
        return
    in_row = max(16, width // 16 * 16)
    for first in range(0, len(cores), in_row):
        row = cores[first : first + in_row]
        text.append(f"  {f'{first}-{first + len(row) - 1}':<14} ", palette.dim)
        for utilization in row:
            text.append(_block(utilization), palette.style(_role(utilization)))
        text.append("\n")
    mean = sum(cores) / len(cores)
    _gauge(text, f"{len(cores)} cores", mean, f"{mean:4.0%}", width, palette)


def _block(share: float) -> str:
    return BLOCKS[max(0, min(len(BLOCKS) - 1, round(share * (len(BLOCKS) - 1))))]


def _role(share: float) -> str:
    return "error" if share > 0.95 else "warning" if share > 0.8 else "success"


def _gauge(text: Text, name: str, share: float, label: str, width: int, palette: Palette) -> None:
    text.append(f"  {name:<14} ", palette.dim)
    for segment in bar(min(1.0, share), width, palette.style(_role(share)), palette.faint):
        text.append(segment.text, segment.style)
    text.append(f" {label}\n")


def _sizes(text: Text, name: str, usage: tuple[int, int], width: int, palette: Palette) -> None:
    used, total = usage
    _gauge(text, name, used / total if total else 0.0, f"{size(used)} of {size(total)}", width, palette)


def _history(text: Text, name: str, shares: Sequence[float], width: int, palette: Palette) -> None:
    marks = "".join(map(_block, list(shares)[-width:]))
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
