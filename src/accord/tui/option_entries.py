"""Everything that an agent lets its user choose, as entries of one list: models, modes and config options. PURE."""

from __future__ import annotations

from collections.abc import Iterator

from accord.schema import v1
from accord.state import ConfigOption, SessionState, choices_of
from accord.tui.pickers import Entry


def option_entries(state: SessionState) -> list[Entry]:
    """The entries. The value of each is the id of an option and its value; `""` stands for the model, None the mode."""
    entries = [entry for option in state.config for entry in _of(option)]
    if state.model_option is None:
        entries += [
            Entry(it.name, ("", it.model_id), it.description or "", it.model_id == state.model, "Model")
            for it in state.models
        ]
    if state.mode_option is None:
        entries += [
            Entry(it.name, (None, it.id), it.description or "", it.id == state.mode, "Mode") for it in state.modes
        ]
    return entries


def _of(option: ConfigOption) -> Iterator[Entry]:
    if isinstance(option, v1.SessionConfigSelect):
        for value in choices_of(option):
            is_current = value.value == option.current_value
            yield Entry(value.name, (option.id, value.value), value.description or "", is_current, option.name)
    else:
        now, other = ("on", "off") if option.current_value else ("off", "on")
        about = f"{now}; choose to turn it {other}"
        yield Entry(option.name, (option.id, not option.current_value), about, group=option.name)
