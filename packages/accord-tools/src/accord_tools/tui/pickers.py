"""`Picker`: a list to choose from, with a filter; and screens for a form or variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Checkbox, Input, Label, OptionList, SelectionList, Static
from textual.widgets.option_list import Option

from accord import FormQuestion, RemoteSession, updates, v1
from accord.printable import label, printable
from accord.services import FormField
from accord.session import ConfigOption, SessionState, choices_of

COLUMNS = 90


class Entry(NamedTuple):
    """One entry of a list."""

    label: str
    value: Any
    about: str = ""
    is_current: bool = False
    group: str = ""
    preview: str = ""
    """The text below the list while the entry is chosen."""


class Picker(ModalScreen[Any]):
    """Lets the user choose one entry; the result is its value, or None."""

    DEFAULT_CSS = """
    Picker { align: center middle; }
    Picker > Vertical { width: 90%; max-width: 100; height: auto; max-height: 80%; border: round $accent;
                        background: $surface; padding: 0 1; }
    Picker Input, Picker Input:focus { border: none; height: 1; background: $surface; padding: 0; }
    Picker OptionList { border: none; height: auto; max-height: 20; background: $surface; padding: 0;
                        scrollbar-size-vertical: 1; }
    Picker #heading { height: 1; }
    Picker #count { width: 1fr; text-align: right; color: $text-muted; }
    Picker .hint { color: $text-muted; }
    Picker #preview { height: 3; border-top: solid $panel; padding: 0; }
    """

    def __init__(
        self,
        title: str,
        entries: Sequence[Entry],
        hint: str = "",
        keys: Sequence[str] = (),
        *,
        on_highlight: Callable[[Any], object] | None = None,
        takes_text: bool = False,
    ) -> None:
        """`on_highlight` is called with each highlighted value; `takes_text` accepts a text that no entry has."""
        super().__init__()
        self._on_highlight = on_highlight
        self._takes_text = takes_text
        self._title = title
        self.entries = list(entries)
        """All entries."""
        self._hint = hint
        self._keys = keys
        self._shown: list[Entry] = []
        self._names = 0
        """Columns of the labels if something follows them."""
        self._text: str | None = None
        """The text by which the list was filtered."""

    def compose(self) -> ComposeResult:
        with Vertical():
            with Horizontal(id="heading"):
                yield Label(Text(label(self._title, COLUMNS), "bold"))
                yield Static(id="count")
            yield Input(placeholder="type a value, or choose" if self._takes_text else "type to filter")
            yield OptionList()
            if any(entry.preview for entry in self.entries):
                yield Static(id="preview")
            if self._hint:
                yield Static(Text(self._hint), classes="hint")

    def on_mount(self) -> None:
        below = self._hint.count("\n") + 1 if self._hint else 0
        below += 3 * bool(self.query("#preview"))
        self.query_one(OptionList).styles.max_height = max(3, min(20, self.size.height * 8 // 10 - 4 - below))
        self._filter("")
        self.query_one(Input).focus()

    def set_entries(self, entries: Sequence[Entry]) -> None:
        """Show other entries, as more of them have arrived."""
        self.entries = list(entries)
        self._filter(self.query_one(Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter(event.value)

    def on_option_list_option_highlighted(self, _: OptionList.OptionHighlighted) -> None:
        entry = self._highlighted()
        if self._on_highlight is not None and entry is not None:
            self._on_highlight(entry.value)
        for preview in self.query("#preview").results(Static):
            preview.update(Text("" if entry is None else entry.preview, "dim"))

    def _filter(self, text: str) -> None:
        self._text = text
        words = text.casefold().split()
        self._shown = [it for it in self.entries if all(word in _searched(it) for word in words)]
        options = self.query_one(OptionList)
        options.clear_options()
        self._names = min(28, max((cell_len(label(it.label, 60)) for it in self._shown if it.about), default=0))
        self.query_one("#count", Static).update(f"{len(self._shown)} of {len(self.entries)}" if text else "")
        group = ""
        for number, entry in enumerate(self._shown):
            if entry.group != group:
                group = entry.group
                options.add_option(Option(Text(label(group, COLUMNS), "bold"), id=f"group-{number}", disabled=True))
            options.add_option(Option(self._line(entry), id=str(number)))
        current = next((number for number, it in enumerate(self._shown) if it.is_current and not text), 0)
        if self._shown:
            options.highlighted = options.get_option_index(str(current))

    def _line(self, entry: Entry) -> Text:
        text = Text("● " if entry.is_current else "  ")
        name = label(entry.label, 60)
        text.append(name)
        if entry.about:
            text.append(f"{' ' * max(0, self._names - cell_len(name))}  {label(entry.about, 200)}", "dim")
        text.truncate(min(COLUMNS + 10, self.size.width * 9 // 10) - 5, overflow="ellipsis")
        return text

    def on_key(self, event: events.Key) -> None:
        options = self.query_one(OptionList)
        if event.key in ("up", "down", "pageup", "pagedown"):
            move = f"page_{event.key[4:]}" if event.key.startswith("page") else f"cursor_{event.key}"
            getattr(options, f"action_{move}")()
        elif event.key == "enter":
            self._choose(None)
        elif event.key == "escape":
            self.dismiss(None)
        elif event.key in self._keys and self._highlighted() is not None:
            self._choose(event.key)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self._choose(None)

    def on_option_list_option_selected(self, _: OptionList.OptionSelected) -> None:
        self._choose(None)

    def _highlighted(self) -> Entry | None:
        options = self.query_one(OptionList)
        if options.highlighted is None:
            return None
        its_id = options.get_option_at_index(options.highlighted).id or ""
        return self._shown[int(its_id)] if its_id.isdecimal() else None

    def _choose(self, key: str | None) -> None:
        text = self.query_one(Input).value
        if text != self._text:  # the key came before the events of the letters before it
            self._filter(text)
        entry = self._highlighted()
        if not self.is_current:
            return
        if self._takes_text and entry is None and text:
            self.dismiss(text)
        elif entry is not None:
            self.dismiss((key, entry.value) if self._keys else entry.value)


def _searched(entry: Entry) -> str:
    """The text in which the filter searches."""
    return f"{entry.label} {entry.about} {entry.group} {entry.preview}".casefold()


class FormScreen(ModalScreen[Any]):
    """Lets the user fill in a form: the result is its values, False if the user declines, None if they leave it."""

    DEFAULT_CSS = """
    FormScreen { align: center middle; }
    FormScreen > VerticalScroll { width: 90%; max-width: 100; height: auto; max-height: 90%; border: round $accent;
                                  background: $surface; padding: 0 1; }
    FormScreen .about { color: $text-muted; }
    FormScreen .problem { color: $text-error; }
    FormScreen Input, FormScreen Input:focus { border: none; height: 1; background: $panel; padding: 0 1; }
    FormScreen SelectionList { height: auto; max-height: 8; border: none; padding: 0; }
    FormScreen Button { margin: 1 1 0 0; min-width: 12; }
    FormScreen Checkbox { border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[Any]] = [("escape", "leave", "Leave the form"), ("ctrl+s", "send", "Send")]

    def __init__(self, question: FormQuestion) -> None:
        super().__init__()
        self._question = question
        self._fields = question.fields

    def compose(self) -> ComposeResult:
        question = self._question
        with VerticalScroll():
            yield Static(Text(printable(question.message[:2_000]), "bold"))
            for number, field in enumerate(self._fields):
                star = " *" if field.required else ""
                yield Label(Text(f"{label(field.title, 80)}{star}"))
                if field.schema.description:
                    yield Static(Text(label(field.schema.description, 300)), classes="about")
                yield self._widget(number, field, question.content.get(field.name))
                problem = question.problems.get(field.name, "")
                yield Static(Text(label(problem, 200)), classes="problem", id=f"problem-{number}")
            yield Button("Send", id="send", variant="primary")
            yield Button("Decline", id="decline")
            yield Static(Text("tab: next field   ctrl+s: send   esc: leave"), classes="about")

    def _widget(self, number: int, field: FormField, value: Any) -> Any:
        name = f"field-{number}"
        if isinstance(field.schema, v1.BooleanPropertySchema):
            return Checkbox("yes" if value else "no", bool(value), id=name)
        if field.choices:
            chosen: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
            options = [(Text(label(it.title, 80)), it.const, it.const in chosen) for it in field.choices]
            return SelectionList[str](*options, id=name)
        return Input("" if value is None else str(value), id=name)

    def on_mount(self) -> None:
        if self._fields:
            self.query_one("#field-0").focus()

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        """Show in words what the colour shows."""
        event.checkbox.label = "yes" if event.value else "no"

    def on_selection_list_selection_toggled(self, event: SelectionList.SelectionToggled[str]) -> None:
        """Keep one choice if only one is allowed."""
        chosen = event.selection_list
        field = self._fields[int((chosen.id or "field-0").rpartition("-")[2])]
        if not isinstance(field.schema, v1.MultiSelectPropertySchema) and len(chosen.selected) > 1:
            for value in list(chosen.selected):
                if value != event.selection.value:
                    chosen.deselect(value)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "decline":
            self.dismiss(False)
        else:
            self.action_send()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.action_send()

    def action_leave(self) -> None:
        """Leave the form without an answer."""
        self.dismiss(None)

    def action_send(self) -> None:
        """Send the values, if all of them fit."""
        content: dict[str, Any] = {}
        is_right = True
        for number, field in enumerate(self._fields):
            value, problem = self._value(number, field)
            self.query_one(f"#problem-{number}", Static).update(Text(problem or ""))
            is_right = is_right and problem is None
            if value is not None:
                content[field.name] = value
        if is_right:
            self.dismiss(content)

    def _value(self, number: int, field: FormField) -> tuple[Any, str | None]:
        widget = self.query_one(f"#field-{number}")
        if isinstance(widget, Checkbox):
            return widget.value, None
        if isinstance(widget, SelectionList):
            chosen: list[str] = list(widget.selected)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            value: Any = chosen if isinstance(field.schema, v1.MultiSelectPropertySchema) else next(iter(chosen), None)
            if value in (None, []) and not field.required:
                return None, None
            return value, "choose one" if value is None else field.problem(value)
        assert isinstance(widget, Input)
        if not widget.value and not field.required:
            return None, None
        try:
            return field.parse(widget.value), None
        except ValueError as error:
            return None, str(error)


class VariablesScreen(FormScreen):
    """Asks for the variables of a login, which are not stored; the result is None if the user leaves it."""

    def __init__(self, method: v1.AuthMethodEnvVar, missing: Sequence[v1.AuthEnvVar]) -> None:
        super().__init__(FormQuestion(method.name, v1.ElicitationSchema(), None))
        self._method = method
        self._missing = list(missing)

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Label(Text(label(self._method.name, 80), "bold"))
            if self._method.link:
                yield Static(Text(f"See {label(self._method.link, 300)}"), classes="about")
            for wanted in self._missing:
                yield Label(Text(label(wanted.label or wanted.name, 80)))
                yield Input(password=bool(wanted.secret))
            yield Static(Text("enter: next, then log in   esc: leave"), classes="about")

    def action_send(self) -> None:
        """Return the variables, if none is missing."""
        inputs = list(self.query(Input))
        empty = next((it for it in inputs if not it.value), None)
        if empty is not None:
            empty.focus()
            return
        self.dismiss({wanted.name: it.value for wanted, it in zip(self._missing, inputs, strict=True)})


def mode_entries(state: SessionState) -> list[Entry]:
    """The modes that the agent offers."""
    return [Entry(it.name, it.id, it.description or "", it.id == state.mode) for it in state.modes]


def model_entries(state: SessionState) -> list[Entry]:
    """The models that the agent offers."""
    return [Entry(it.name, it.model_id, it.description or "", it.model_id == state.model) for it in state.models]


def option_entries(session: RemoteSession) -> list[Entry]:
    """The model, the mode and all other options. The value of each is the call that sets it."""
    state = session.state
    entries = [it._replace(value=partial(session.set_config, *it.value)) for one in state.config for it in _of(one)]
    models = model_entries(state) if state.model_option is None else []
    modes = mode_entries(state) if state.mode_option is None else []
    entries += [it._replace(value=partial(session.set_model, it.value), group="Model") for it in models]
    return entries + [it._replace(value=partial(session.set_mode, it.value), group="Mode") for it in modes]


def _of(option: ConfigOption) -> Iterator[Entry]:
    if isinstance(option, updates.SessionConfigSelect):
        for value in choices_of(option):
            is_current = value.value == option.current_value
            yield Entry(value.name, (option.config_id, value.value), value.description or "", is_current, option.name)
    else:
        now, other = ("on", "off") if option.current_value else ("off", "on")
        about = f"{now}; choose to turn it {other}"
        yield Entry(option.name, (option.config_id, not option.current_value), about, group=option.name)
