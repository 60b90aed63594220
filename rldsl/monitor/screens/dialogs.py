"""What lies over a screen for a moment: a question, a diff, a text, the keys."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
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
  c             stop the chosen sessions: they checkpoint first
  r             resume the chosen sessions on this machine
  d             what differs between two selected sessions
  t             TensorBoard of the chosen sessions
  y             copy the command that repeats a session
  ctrl+t        dark or light        ctrl+p   command palette
  ?             this                 q        quit
  [dim]chosen: what is selected, or else what the cursor is on[/dim]

[b]Runs[/b]
  j k, arrows   move                 g G      first, last
  ctrl+d ctrl+u a page               h l      fold, unfold
  H L           fold, unfold all     space    select
  enter         open, or unfold      u        unselect all
  /             filter               o O      sort, reverse

[b]Filter[/b]  all words must hold; a minus excludes; commas mean or
  status:failed,resume   env:Hopper   algo:ppo   experiment:x   id:5bd3
  place:local   seed:1   differs:gamma   -algo:random   any word

[b]Curves[/b]
  m M           next, previous metric     s   mean or every seed
  + - wheel     zoom                      x   frames or seconds
  h l, arrows   move                      L   log axis
  0             the whole

[b]Log[/b]
  f             follow                    /   search, n N next, previous
"""


class Dialog(ModalScreen[bool]):
    """A box in the middle; escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "answer(False)", "Close"),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
    ]

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    def action_scroll(self, lines: int) -> None:
        self.query(VerticalScroll).first().scroll_relative(y=lines, animate=False)


class Confirm(Dialog):
    """Says what will happen, and asks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, question: str, what: str) -> None:
        super().__init__()
        self.question, self.what = question, what

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(self.question), classes="title")
            yield VerticalScroll(Static(Text(self.what)), classes="text")
            yield Static("[@click=screen.answer(True)][b] y [/b]yes[/]   [@click=screen.answer(False)][b] n [/b]no[/]")


class Words(Dialog):
    """A text to read."""

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self.title_text, self.text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box -wide"):
            yield Static(Text(self.title_text), classes="title")
            yield VerticalScroll(Static(self.text), classes="text")
            yield Static("[@click=screen.answer(False)][b]escape[/b] closes[/]", classes="hint")


class Help(Words):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "answer(False)", "Close", show=False)]

    def __init__(self) -> None:
        super().__init__("Keys", Text.from_markup(HELP))


class Diff(Dialog):
    """What differs between two sessions."""

    def __init__(self, first: str, second: str, found: list[SessionDifference]) -> None:
        super().__init__()
        self.first, self.second, self.found = first, second, found

    def compose(self) -> ComposeResult:
        with Vertical(classes="box -wide"):
            yield Static(Text("What differs" if self.found else "They do not differ"), classes="title")
            yield DataTable(cursor_type="row", zebra_stripes=True)
            yield Static("[@click=screen.answer(False)][b]escape[/b] closes[/]", classes="hint")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("of", "name", self.first, self.second)
        for one in self.found:
            table.add_row(one.of, one.name, value(one.a), value(one.b))

    def action_scroll(self, lines: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + lines)
