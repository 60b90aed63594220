"""Dialogs over a screen: a question, the difference of two sessions, the help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from rldsl.report.difference import SessionDifference
from rldsl.report.words import value

HELP = """\
[b]Everywhere[/b]
  1 .. 7        Runs, Curves, Log, Detail, Search, Queue, Machine
  c             stop the chosen sessions; they checkpoint first
  r             resume the chosen sessions on this machine
  d             show what differs between two sessions
  t             start TensorBoard for the chosen sessions
  y             copy the command that trains a session again
  T N           tags of, note on the chosen sessions
  !             next problem         E        events
  ctrl+t        dark or light theme  B        colour-blind palette
  ctrl+p        command palette
  ?             this help            q        quit
  escape        back, or clear the filter, the search, the crosshair
  [dim]chosen: what is selected on this screen, or under its cursor[/dim]

[b]Runs[/b]
  j k, arrows   move                 g G      first, last
  ctrl+d ctrl+u a page               h l      fold, unfold
  H L           fold, unfold all     space    select
  enter         open, or unfold      u        unselect all
  /             filter               o O      sort, reverse; or click a header
  S F           save, pick a filter  C        columns
  p             pin: always draw its curve

[b]Filter[/b]  all words must match; a minus excludes; or separates
  status:failed,resume   env:Hopper   algo:ppo   experiment:x   id:5bd3
  backend:local   seed:1   differs:gamma   tag:x   note:x   any word
  return>400   gamma>=.99   age<1h   entropy<0.1   /regular expression/

[b]Curves[/b]
  m M           next, previous metric     v   all metrics
  + - wheel     zoom                      0   show everything
  h l, arrows   move, or drag             s   mean or every seed
  i , .         crosshair, move it        e   smoothing
  x X           frames or seconds, log x  L   log y
  pgup pgdn     more lines                p   pin
  w             save as PNG, SVG or CSV

[b]Log, Detail[/b]
  \\[ ]           previous, next session    a   Log: all seeds
  f             follow                    /   search, n N next, previous
"""


class Dialog(ModalScreen[bool]):
    """A box in the middle of the screen; escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "answer(False)", "Close"),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
    ]

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    def action_scroll(self, lines: int) -> None:
        for text in self.query(VerticalScroll):  # there is none while the dialog opens or closes
            text.scroll_relative(y=lines, animate=False)


class Confirm(Dialog):
    """Describes what will happen and asks for confirmation. Enter does not confirm: it is pressed too easily."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, question: str, details: str) -> None:
        super().__init__()
        self.question, self.details = question, details

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self.question), classes="title")
            yield VerticalScroll(Static(Text(self.details)), classes="text")
            yield Static("[@click=screen.answer(True)][b] y [/b]yes[/]   [@click=screen.answer(False)][b] n [/b]no[/]")


class Choose(ModalScreen[str]):
    """A choice of a few keys; escape chooses nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close")]

    def __init__(self, title: str, choices: Mapping[str, str]) -> None:
        super().__init__(classes="dialog")
        self.title_text, self.choices = title, choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self.title_text), classes="title")
            for key, name in self.choices.items():
                yield Static(Text.assemble((f" {key} ", "bold"), name))

    def on_key(self, event: events.Key) -> None:
        if event.key in self.choices:
            event.stop()
            self.dismiss(event.key)


class TextDialog(Dialog):
    """A text with a title."""

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self.title_text, self.text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box -wide"):
            yield Static(Text(self.title_text), classes="title")
            yield VerticalScroll(Static(self.text), classes="text")
            yield Static("[@click=screen.answer(False)][b]escape[/b] closes[/]", classes="hint")


class Help(TextDialog):
    """The list of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "answer(False)", "Close", show=False)]

    def __init__(self) -> None:
        super().__init__("Keys", Text.from_markup(HELP))


class Diff(Dialog):
    """What differs between two sessions."""

    def __init__(self, first: str, second: str, differences: list[SessionDifference]) -> None:
        super().__init__()
        self.first, self.second, self.differences = first, second, differences

    def compose(self) -> ComposeResult:
        with Vertical(classes="box -wide"):
            yield Static(Text("Differences" if self.differences else "The sessions do not differ"), classes="title")
            yield DataTable(cursor_type="row", zebra_stripes=True)
            yield Static("[@click=screen.answer(False)][b]escape[/b] closes[/]", classes="hint")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("of", "name", self.first, self.second)
        for row in self.differences:
            table.add_row(row.of, row.name, value(row.a), value(row.b))

    def action_scroll(self, lines: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + lines)
