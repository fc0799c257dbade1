"""Modes, config options and commands: what is current is offered, what is set is offered, and the whole is told."""

from __future__ import annotations

from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, objects
from accord_check.passive.observer import Observer

_CATEGORIES = ("mode", "model", "model_config", "thought_level")


class Options(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._modes: dict[str, set[Any]] = {}
        self._options: dict[str, dict[Any, dict[str, Any]]] = {}

    def request(self, exchange: Exchange) -> None:
        if exchange.by != "client" or exchange.session_id is None:
            return
        if exchange.method == "session/set_mode":
            self._set_mode(exchange)
        elif exchange.method == "session/set_config_option":
            self._set_option(exchange)

    def answer(self, exchange: Exchange) -> None:
        frame = exchange.answered
        if exchange.by != "client" or frame is None or not exchange.succeeded:
            return
        made = exchange.fields.get("sessionId")
        session_id = made if isinstance(made, str) else exchange.session_id
        if session_id is None:
            return
        if isinstance(exchange.fields.get("modes"), dict):
            self._mode_state(exchange.fields["modes"], session_id, frame)
        if isinstance(exchange.fields.get("configOptions"), list):
            is_change = exchange.method == "session/set_config_option"
            self._option_list(
                exchange.fields["configOptions"],
                session_id,
                frame,
                whole="config.set.whole-state" if is_change else None,
            )

    def update(self, update: Update) -> None:
        session_id, frame = update.told.session_id, update.told.frame
        if session_id is None:
            return
        if update.kind == "current_mode_update" and session_id in self._modes:
            current = update.fields.get("currentModeId", update.fields.get("modeId"))
            wrong = None if current in self._modes[session_id] else f"the current mode {current!r} is not offered"
            self.judge("mode.current-is-offered", wrong, frame, session=session_id)
        elif update.kind == "config_option_update":
            self._option_list(update.fields.get("configOptions"), session_id, frame, whole="config.update.whole-state")
        elif update.kind == "available_commands_update":
            session = update.session
            if self.conversation.version == 2:
                return  # its updates may come before the answer
            early = session is None or (session.opened.answered is None and session.opened.method != "session/load")
            problem = "available_commands_update came before the answer that opens the session" if early else None
            self.judge("commands.after-session-exists", problem, frame, session=session_id)

    def _mode_state(self, state: dict[str, Any], session_id: str, frame: Frame) -> None:
        ids = [mode.get("id") for mode in objects(state.get("availableModes"))]
        current = state.get("currentModeId")
        self._modes[session_id] = {given for given in ids if isinstance(given, str)}
        wrong = None if current in ids or current is None else f"the current mode {current!r} is not among {ids}"
        self.judge("mode.current-is-offered", wrong, frame, session=session_id)
        twice = len(set(map(repr, ids))) < len(ids)
        self.judge("mode.ids-unique", f"two modes have the same id, among {ids}" if twice else None, frame)

    def _set_mode(self, exchange: Exchange) -> None:
        offered, wanted = self._modes.get(exchange.session_id or ""), exchange.params.get("modeId")
        if offered is not None:
            wrong = None if wanted in offered else f"the mode {wanted!r} is not offered"
            self.judge("mode.set.offered-only", wrong, exchange.frame, session=exchange.session_id)

    def _option_list(self, given: Any, session_id: str, frame: Frame, *, whole: str | None) -> None:
        options = [option for option in objects(given) if isinstance(id_of(option), str)]
        known = self._options.get(session_id, {})
        ids = [id_of(option) for option in options]
        twice = sorted({each for each in ids if ids.count(each) > 1})
        self.judge("config.ids-unique", f"two options have the id {twice[0]!r}" if twice else None, frame)
        # An option may come and go with the value of another, so only what is left of a list is suspect.
        if whole is not None:
            alone = len(ids) == 1 and len(known) > 1
            wrong = f"only the option {ids[0]!r} of {len(known)} options" if alone else None
            if not ids and known:
                wrong = f"none of {len(known)} options"
            self.judge(whole, wrong, frame, session=session_id)
        for option in options:
            self._option(option, frame)
        self._options[session_id] = {**known, **{id_of(option): option for option in options}}

    def _option(self, option: dict[str, Any], frame: Frame) -> None:
        category, current = option.get("category"), option.get("currentValue")
        if isinstance(category, str):
            fits = category in _CATEGORIES or category.startswith("_")
            problem = None if fits else f"the option {id_of(option)!r} has the category {category!r}"
            self.judge("config.category.own-underscore", problem, frame)
        values = values_of(option)
        if values is not None and current is not None:
            wrong = (
                None
                if current in values
                else f"the option {id_of(option)!r} has the value {current!r}, which it does not list"
            )
            self.judge("lint.config.current-is-offered", wrong, frame)

    def _set_option(self, exchange: Exchange) -> None:
        option = self._options.get(exchange.session_id or "", {}).get(exchange.params.get("configId"))
        value, kind = exchange.params.get("value"), exchange.params.get("type")
        if option is None:
            return
        name = id_of(option)
        if option.get("type") == "boolean":
            fits = isinstance(value, bool) and kind == "boolean"
            wrong = None if fits else f"the boolean option {name!r} was set to {value!r} with the type {kind!r}"
            self.judge("config.boolean.set-with-type", wrong, exchange.frame)
        elif (values := values_of(option)) is not None:
            wrong = None if value in values else f"the option {name!r} was set to {value!r}, which it does not list"
            self.judge("config.set.offered-only", wrong, exchange.frame)


def id_of(option: dict[str, Any]) -> Any:
    """The id of an option, which has another name in version 2."""
    return option.get("configId", option.get("id"))


def values_of(option: dict[str, Any]) -> list[Any] | None:
    """The values of a select option, those of groups included; None for another option."""
    given = option.get("options")
    if option.get("type") != "select" or not isinstance(given, list):
        return None
    values: list[Any] = []
    for item in objects(cast("list[Any]", given)):
        is_group = "group" in item or "groupId" in item
        inner = list(objects(item.get("options"))) if is_group else [item]
        values += [each.get("value") for each in inner]
    return values
