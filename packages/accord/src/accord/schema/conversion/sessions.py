"""Sessions: opening them, their options and modes, and logging in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from accord.schema import v1, v2
from accord.schema.base import Model
from accord.schema.conversion.rows import DOWN, UP

MODE_OPTION = v2.SessionConfigId("mode")
"""session-config-options: the id, and the category, of the option that replaces modes."""

MODEL_OPTION = v2.SessionConfigId("model")
"""session-config-options: the id, and the category, of the option that replaces `models`."""

_Started = v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse


# Resuming: `session/load` is `session/resume` with a replay from the start


@UP.step(v1.LoadSessionRequest)
def _load_request(value: v1.LoadSessionRequest) -> v2.ResumeSessionRequest:
    resumed: v2.ResumeSessionRequest = UP.carry(value, v2.ResumeSessionRequest, replay_from=v2.ReplayFromStart())
    return resumed


@DOWN.step(v2.ResumeSessionRequest)
def _resume_request(value: v2.ResumeSessionRequest) -> Any:
    match value.replay_from:
        case None:
            return DOWN.carry(value, v1.ResumeSessionRequest)
        case v2.ReplayFromStart(meta=None):
            return DOWN.carry(value, v1.LoadSessionRequest, used=("replay_from",))
        case other:
            return DOWN.refuse(
                "ResumeSessionRequest.replayFrom", f"session/load replays from the start only, not from {other!r:.60}"
            )


_ANSWERS: dict[type, type] = {
    v1.NewSessionResponse: v2.NewSessionResponse,
    v1.LoadSessionResponse: v2.ResumeSessionResponse,
    v1.ResumeSessionResponse: v2.ResumeSessionResponse,
    v1.ForkSessionResponse: v2.ForkSessionResponse,
}


@UP.step(*_ANSWERS)
def _started_up(value: _Started) -> Any:
    target = _ANSWERS[value.__class__]
    return UP.carry(value, target, used=("modes", "models", "config_options"), config_options=_options_of(value))


def _options_of(value: _Started) -> list[v2.SessionConfigOption]:
    # session-config-options: a client that reads the options ignores the modes and models, which repeat two of them.
    if value.config_options is not None:
        options: list[v2.SessionConfigOption] = UP.one(value.config_options)
        return options
    return [UP.one(older) for older in (value.modes, value.models) if older is not None]


@DOWN.step(v2.NewSessionResponse, v2.ResumeSessionResponse, v2.ForkSessionResponse)
def _started_down(value: v2.NewSessionResponse | v2.ResumeSessionResponse | v2.ForkSessionResponse) -> Any:
    target: type = getattr(v1, type(value).__name__)
    return DOWN.carry(value, target, config_options=DOWN.one(value.config_options) or None)


# Modes and options


@UP.step(v1.SessionModeState)
def _modes(value: v1.SessionModeState) -> v2.SessionConfigSelect:
    return _option(MODE_OPTION, "Mode", value.current_mode_id, value.available_modes, value)


@UP.step(v1.SessionModelState)
def _models(value: v1.SessionModelState) -> v2.SessionConfigSelect:
    return _option(MODEL_OPTION, "Model", value.current_model_id, value.available_models, value)


def _option(
    option_id: v2.SessionConfigId, name: str, current: str, values: Sequence[Model], older: Model
) -> v2.SessionConfigSelect:
    """The config option that replaces an older choice; its id is its category, too."""
    return v2.SessionConfigSelect(
        config_id=option_id,
        name=name,
        current_value=v2.SessionConfigValueId(current),
        options=UP.one(values),
        category=option_id,
        meta=older.meta,
    )


@UP.step(v1.SessionMode)
def _mode(value: v1.SessionMode) -> v2.SessionConfigSelectOption:
    return _choice(value.id, value)


@UP.step(v1.ModelInfo)
def _model(value: v1.ModelInfo) -> v2.SessionConfigSelectOption:
    return _choice(value.model_id, value)


def _choice(value_id: str, it: v1.SessionMode | v1.ModelInfo) -> v2.SessionConfigSelectOption:
    return v2.SessionConfigSelectOption(v2.SessionConfigValueId(value_id), it.name, it.description, meta=it.meta)


@UP.step(v1.SetSessionConfigOptionRequest)
def _set_option_up(value: v1.SetSessionConfigOptionRequest) -> v2.SetSessionConfigOption:
    if isinstance(value.value, bool):
        return v2.SetSessionConfigOptionBoolean(value.session_id, value.config_id, value.value, meta=value.meta)
    return v2.SetSessionConfigOptionId(value.session_id, value.config_id, value.value, meta=value.meta)


@DOWN.step(v2.SetSessionConfigOptionId, v2.SetSessionConfigOptionBoolean)
def _set_option_down(
    value: v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean,
) -> v1.SetSessionConfigOptionRequest:
    kind: Literal["boolean"] | None = "boolean" if isinstance(value.value, bool) else None
    return v1.SetSessionConfigOptionRequest(value.session_id, value.config_id, value.value, kind, meta=value.meta)


# Login in a terminal: environment variables by name in version 1, in a list in version 2


@UP.step(v1.AuthMethodTerminal)
def _terminal_login_up(value: v1.AuthMethodTerminal) -> Any:
    variables = [v2.EnvVariable(name, text) for name, text in value.env.items()]
    return UP.carry(value, v2.AuthMethodTerminal, env=variables)


@DOWN.step(v2.AuthMethodTerminal)
def _terminal_login_down(value: v2.AuthMethodTerminal) -> Any:
    variables = {variable.name: variable.value for variable in value.env}
    if len(variables) < len(value.env) or any(variable.meta is not None for variable in value.env):
        DOWN.refuse("AuthMethodTerminal.env", "a variable must have one value, and cannot have _meta")
    return DOWN.carry(value, v1.AuthMethodTerminal, env=variables)
