"""Dialogs that ask for a text, for one of several names, or for some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input, OptionList, SelectionList, Static
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection


class Prompt(ModalScreen[str]):
    """Asks for a text; escape gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close")]

    def __init__(self, title: str, value: str = "", hint: str = "") -> None:
        super().__init__(classes="dialog")
        self.title_text, self.value, self.hint = title, value, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self.title_text), classes="title")
            yield Input(self.value, placeholder=self.hint, id="prompt", compact=True)
            yield Static(Text("enter: done   escape: leave it as it is", "dim"))

    @on(Input.Submitted, "#prompt")
    def _done(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)


class Pick(ModalScreen[str]):
    """Asks for one of several names; escape gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close"),
        Binding("j", "app.simulate_key('down')", "Down", show=False),
        Binding("k", "app.simulate_key('up')", "Up", show=False),
    ]

    def __init__(self, title: str, names: Sequence[tuple[str, str]]) -> None:
        """`names` with what is shown behind them."""
        super().__init__(classes="dialog")
        self.title_text, self.names = title, names

    def compose(self) -> ComposeResult:
        options = [Option(Text.assemble((name, "bold"), f"  {about}")) for name, about in self.names]
        with Vertical(classes="box"):
            yield Static(Text(self.title_text), classes="title")
            yield OptionList(*options, compact=True)

    @on(OptionList.OptionSelected)
    def _done(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.names[event.option_index][0])


class Choices(SelectionList[str]):
    """Boxes that are on or off, which can be told without colours."""

    def render_line(self, y: int) -> Strip:
        line, index = super().render_line(y), self.scroll_offset.y + y
        if index >= self.option_count or self.get_option_at_index(index).value in self.selected:
            return line
        left, box, *rest = line
        return Strip([left, Segment(" ", box.style), *rest])


class PickMany(ModalScreen[list[str]]):
    """Asks for some of several names: space switches one, enter is done, escape gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close"),
        Binding("enter", "done", "Done", priority=True),
        Binding("j", "app.simulate_key('down')", "Down", show=False),
        Binding("k", "app.simulate_key('up')", "Up", show=False),
    ]

    def __init__(self, title: str, names: Iterable[str], chosen: Iterable[str]) -> None:
        super().__init__(classes="dialog")
        self.title_text, self.names, self.chosen_names = title, list(names), set(chosen)

    def compose(self) -> ComposeResult:
        choices = [Selection(Text(name), name, name in self.chosen_names) for name in self.names]
        with Vertical(classes="box"):
            yield Static(Text(self.title_text), classes="title")
            yield Choices(*choices, compact=True)
            yield Static(Text("space: on or off   enter: done   escape: leave it as it is", "dim"))

    def action_done(self) -> None:
        chosen = set(self.query_one(SelectionList).selected)
        self.dismiss([name for name in self.names if name in chosen])
