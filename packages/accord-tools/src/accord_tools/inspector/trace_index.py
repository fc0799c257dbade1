"""`TraceIndex`: the position of each message of a trace, and the few numbers that every view needs of it.

    TraceReader ──▶ grow, a slice at a time ──▶ line_of ──▶ columns
                                                       ├──▶ pairs: a request and its answer
                                                       ├──▶ runs: chunks that follow each other
                                                       └──▶ sessions and their turns

A finished trace and a live one are read the same way: `grow` continues where it stopped, and leaves a last line without
a newline for later. A line costs 2 to 6 us and 35 bytes.

The columns are a few small numbers for each message, in arrays.

A *turn* begins with a prompt and ends with its stop reason: the answer to the prompt in version 1, an idle state in
version 2. Messages before the first prompt, or with `session/load`, belong to a turn without a prompt (`replay`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Any, Literal, cast

import msgspec

from accord import DecodeError
from accord.schema.codec import loads
from accord.trace import FORMAT
from accord_tools.inspector.trace_lines import (
    ANSWER,
    BROKEN,
    ERROR,
    NOTE,
    NOTIFICATION,
    REFUSALS,
    REQUEST,
    DecodedLine,
    Line,
    TraceReader,
    decode,
    frame_of,
    line_of,
    tolerant_line,
)

MOST_WORDS = 65_000
"""Different words that one table stores. A peer may make up a method for each message; the rest becomes `OTHER`."""

OTHER = "(other)"


class Words:
    """A table of repeated words: the index stores a word's number.

    >>> words = Words()
    >>> words.number("initialize"), words.number("session/new"), words.number("initialize")
    (1, 2, 1)
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._words = [""]

    def __getitem__(self, number: int) -> str:
        return self._words[number]

    def __len__(self) -> int:
        return len(self._words)

    def number(self, word: str) -> int:
        """The number of a word, which is added if it is new."""
        found = self._numbers.get(word)
        if found is not None:
            return found
        if len(self._words) >= MOST_WORDS:
            word = OTHER
            if word in self._numbers:
                return self._numbers[word]
        self._numbers[word] = len(self._words)
        self._words.append(word)
        return len(self._words) - 1

    def known(self, word: str) -> int | None:
        """Return the number of a word; None if no message has it."""
        return self._numbers.get(word)

    def containing(self, text: str) -> set[int]:
        """The numbers of the words that contain this text, in any case."""
        wanted = text.lower()
        return {number for number, word in enumerate(self._words) if word and wanted in word.lower()}


class Columns:
    """One entry for each message, in each column."""

    def __init__(self) -> None:
        self.offset = array("Q")
        """Where its line begins in the file."""
        self.time = array("d")
        """Seconds since the start of the trace."""
        self.kind = array("B")
        """Its kind; see `lines`."""
        self.to_agent = array("B")
        """1 if it goes towards the agent."""
        self.method = array("H")
        """Its method; an answer has that of its request."""
        self.update = array("H")
        """The kind of its session update."""
        self.session = array("H")
        """Its session; an answer has that of its request."""
        self.hop = array("H")
        """In a trace of several links: the two components that it passes between."""
        self.pair = array("i")
        """The row of the answer to a request, and of the request of an answer; -1 if there is none."""
        self.runs = array("I")
        """The rows at which a run begins: one entry for each run, not for each message."""
        self.errors = array("I")
        """The rows of errors, broken lines and notes."""
        self.end = 0
        """Where the last line ends."""

    def __len__(self) -> int:
        return len(self.time)

    def repeat(self, offset: int, time: float) -> None:
        """Add a message that is like the previous one in all but its place and its time."""
        self.offset.append(offset)
        self.time.append(time)
        for column in (self.kind, self.to_agent, self.method, self.update, self.session, self.hop):
            column.append(column[-1])
        self.pair.append(-1)

    def size(self, row: int) -> int:
        """Return how many bytes the line of a row has."""
        after = self.offset[row + 1] if row + 1 < len(self.offset) else self.end
        return after - self.offset[row]

    def latency(self, row: int) -> float | None:
        """Return the seconds between a request and its answer, for both of them; None if there is no answer."""
        pair = self.pair[row]
        return None if pair < 0 else abs(self.time[pair] - self.time[row])


TurnKind = Literal["opening", "prompt", "replay"]


class Turn(msgspec.Struct, rename={"end": "last", "ended_at": "end"}):
    """The part of a session from one prompt to the next. Only those with a prompt are numbered for people: turn 1 is
    the first.
    """

    number: int
    """Its number among all parts of the trace."""
    prompt: int
    """Its number among the turns with a prompt, of all sessions, from 1 on; 0 without a prompt."""
    session: int
    kind: TurnKind
    first: int
    """The row of its prompt, or of its first message."""
    begin: float
    end: int | None = None
    """The row that ends it; None while it continues."""
    ended_at: float | None = None
    stop: str = ""
    """Its stop reason."""
    error: bool = False
    """Whether its prompt was answered with an error."""

    def finish(self, row: int, time: float, stop: str, *, error: bool = False) -> None:
        """End the turn at this row."""
        self.end, self.ended_at, self.stop, self.error = row, time, stop, error


SETTINGS = (
    "current_mode_update",
    "config_option_update",
    "available_commands_update",
    "plan",
    "usage_update",
    "session_info_update",
)
"""Updates that replace a whole setting, so that a turn needs only the last one before it."""


_NO_ROWS = array("I")


class SessionRows:
    """The rows of one session."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.count = 0
        """How many messages it has."""
        self.turns: list[Turn] = []
        self._firsts = array("I")
        self.settings: dict[str, array[int]] = {}
        """The rows of each kind of update in `SETTINGS`."""
        self.openings = array("I")
        """The rows of the answers that opened the session, with its modes and options."""

    def add_turn(self, turn: Turn) -> None:
        """Begin a turn."""
        self.turns.append(turn)
        self._firsts.append(turn.first)

    def place_at(self, row: int) -> int:
        """Return the index of the session's turn to which a row belongs; -1 before the first."""
        return bisect_right(self._firsts, row) - 1

    def turn_at(self, row: int) -> Turn | None:
        """Return the turn to which a row belongs; None before the first."""
        place = self.place_at(row)
        return self.turns[place] if place >= 0 else None

    def next_turn(self, turn: Turn) -> Turn | None:
        """Return the turn after this one."""
        place = self.place_at(turn.first) + 1
        return self.turns[place] if place < len(self.turns) else None

    def note_setting(self, update: str, row: int) -> None:
        """Note the row of an update that replaces a setting."""
        self.settings.setdefault(update, array("I")).append(row)

    def setting_before(self, update: str, row: int) -> int | None:
        """Return the last row before this one that replaces a setting."""
        rows = self.settings.get(update, _NO_ROWS)
        place = bisect_left(rows, row)
        return rows[place - 1] if place else None

    def plain(self) -> dict[str, Any]:
        """The session as the page gets it."""
        return {
            "number": self.number,
            "name": self.name,
            "count": self.count,
            "turns": sum(1 for turn in self.turns if turn.prompt),
        }


SLICE = 128 * 1024
"""Bytes of one step of `grow`: about 10 ms of work."""

MOST_LINE = 512 * 1024 * 1024
"""Bytes of the longest line that is read."""

MOST_NAMED = 200_000
"""Tool calls, and messages with an id, whose beginnings are stored."""

CHUNKS = frozenset(("agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "terminal_output_chunk"))
POLL = "terminal/output"
PROMPT = "session/prompt"
UPDATE = "session/update"
OPENS = {"session/new": "opening", "session/load": "replay", "session/resume": "replay", "session/fork": "replay"}
"""Requests that open a session, and the kind of the turn that begins with them."""


class TraceIndex:
    """The index of one trace, which grows with its file."""

    def __init__(self, reader: TraceReader) -> None:
        self.reader = reader
        self._start()

    def _start(self) -> None:
        self.header: dict[str, Any] = {}
        self.columns = Columns()
        self.methods, self.updates, self.hops = Words(), Words(), Words()
        self.session_names = Words()
        self.sessions: list[SessionRows] = [SessionRows(0, "")]
        """By their numbers; number 0 is for messages of no session."""
        self.turns: list[Turn] = []
        self.prompts = 0
        """How many turns have a prompt."""
        self.problem: str | None = None
        """Why the rest of the file is not read; None if there is no problem."""
        self.initialized: tuple[int, int] | None = None
        """The rows of the first `initialize` and its answer."""
        self.tool_calls: dict[tuple[int, str], int] = {}
        """The row of the update that began each tool call, by its session and id: later updates omit its title."""
        self.messages: dict[tuple[int, str], int] = {}
        """The row of the update that began each message, by its session and id: a later turn may change it."""
        self._at = 0
        self._open: dict[tuple[int, int, bytes], int] = {}
        """The rows of the requests without an answer."""
        self._last_chunk: Line | None = None
        """The previous message, if it is a chunk."""
        self._towards_agent: dict[tuple[str, str], None] = {}
        """Which component sends to which, towards the agent."""
        self._run: tuple[int, int, str] | None = None
        self._in_is_to_agent = False

    # Growing

    @property
    def is_behind(self) -> bool:
        """Whether the file has bytes that are not read yet; they may include a part of a line."""
        return self.problem is None and self._at < self.reader.size

    @property
    def progress(self) -> tuple[int, int]:
        """Return how many bytes are indexed, of how many."""
        return self._at, self.reader.size

    def grow(self, most: int = SLICE) -> bool:
        """Read on for about `most` bytes; returns whether a whole line was added."""
        while self.problem is None:
            data = self.reader.read(self._at, most)
            end = data.rfind(b"\n") + 1
            if end:
                self._add(data[:end])
                return True
            if len(data) < most:
                return False
            most *= 4
            if most > MOST_LINE:
                self.problem = f"the line at byte {self._at:,} has more than {MOST_LINE:,} bytes"
        return False

    def grow_whole(self) -> None:
        """Read all that the file has."""
        while self.is_behind and self.grow():
            pass

    def start_again(self, reader: TraceReader) -> None:
        """Forget everything: the file was replaced."""
        self.reader.close()
        self.reader = reader
        self._start()

    def _add(self, data: bytes) -> None:
        lines = data.split(b"\n")
        lines.pop()
        offset = self._at
        if offset == 0:
            self._take_header(lines[0])
            offset += len(lines.pop(0)) + 1
        for line in lines:
            if line and not line.isspace():
                self._read(line, offset)
            offset += len(line) + 1
        self._at = self.columns.end = offset

    def _read(self, line: bytes, offset: int) -> None:
        try:
            found = decode(line)
        except REFUSALS:
            self._add_line(tolerant_line(line), offset)
            return
        if not self._continues_run(found, offset):
            self._add_line(line_of(found, line), offset)

    def _continues_run(self, found: DecodedLine, offset: int) -> bool:
        """Add a chunk like the previous one; most messages of a trace are such. Returns False for any other line."""
        last, frame = self._last_chunk, found.frame
        if last is None or frame is None or frame.params is None or frame.params.update is None or bytes(frame.id):
            return False
        update = frame.params.update
        is_same = (
            update.sessionUpdate == last.update
            and frame.params.sessionId == last.session
            and (update.messageId or "") == last.message
            and found.dir == last.dir
            and frame.method == UPDATE
            and (found.from_, found.to, str(found.link)) == (*last.hop, last.link)
        )
        if is_same:
            columns = self.columns
            columns.repeat(offset, found.t)
            self.sessions[columns.session[-1]].count += 1
        return is_same

    def _take_header(self, line: bytes) -> None:
        try:
            header = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            header = {}
        if header.get("accord-trace") != FORMAT:
            raise DecodeError("line 1", f"not an Accord trace of version {FORMAT}: {self.reader.path}")
        self.header = header
        self._in_is_to_agent = header.get("role") == "agent"

    def _add_line(self, line: Line, offset: int) -> None:
        columns, row = self.columns, len(self.columns.time)
        to_agent = (line.dir == "in") is self._in_is_to_agent
        method, pair, session = line.method, -1, line.session
        hop = self._way(*line.hop, line.link)
        if hop and to_agent and line.hop[0]:
            self._towards_agent[line.hop] = None
        kind = line.kind
        if kind == REQUEST:
            self._open[to_agent, hop, line.id] = row
        elif kind in (ANSWER, ERROR):
            back = self._way(line.hop[1], line.hop[0], line.link)
            pair = self._open.pop((not to_agent, back, line.id), -1)
            if pair >= 0:
                columns.pair[pair] = row
                method = self.methods[columns.method[pair]]
                session = self._session_of_answer(line, method, pair)
        number = self._session(session)
        columns.offset.append(offset)
        columns.time.append(line.time)
        columns.kind.append(kind)
        columns.to_agent.append(to_agent)
        columns.method.append(self.methods.number(method))
        columns.update.append(self.updates.number(line.update))
        columns.session.append(number)
        columns.hop.append(hop)
        columns.pair.append(pair)
        self._note_run(line, method, number, row)
        if kind in (BROKEN, ERROR, NOTE):
            columns.errors.append(row)
        if number or method:
            self._note_session(line, method, number, row)

    def _way(self, sender: str, to: str, link: str) -> int:
        """The number of the two components, or the connection, of a message; 0 where a trace has only one."""
        if not (sender or link):
            return 0
        return self.hops.number(" ".join(part for part in (link, f"{sender} → {to}" if sender else "") if part))

    def components(self) -> list[str]:
        """Return the components that messages pass between, from the client to the agent; empty if there are only
        these.
        """
        left_of: dict[str, set[str]] = {}
        for sender, to in self._towards_agent:
            left_of.setdefault(to, set()).add(sender)
            left_of.setdefault(sender, set())
        found: list[str] = []
        while left_of:
            free = [name for name, left in left_of.items() if not left - set(found)] or list(left_of)[:1]
            found += free
            left_of = {name: left for name, left in left_of.items() if name not in free}
        return found

    def is_towards_agent(self, direction: str) -> bool:
        """Whether a direction is the one towards the agent: agent, client, or in and out as in the recording."""
        return (direction == "in") is self._in_is_to_agent if direction in ("in", "out") else direction == "agent"

    def _session_of_answer(self, line: Line, method: str, request: int) -> str:
        """Return the session of an answer; one that opens a session gives its request the session, too."""
        columns = self.columns
        if method in OPENS and line.session and not columns.session[request]:
            columns.session[request] = self._session(line.session)
        return self.session_names[columns.session[request]]

    def _session(self, name: str) -> int:
        number = self.session_names.number(name)
        if number == len(self.sessions):
            self.sessions.append(SessionRows(number, self.session_names[number]))
        return number

    def _note_run(self, line: Line, method: str, session: int, row: int) -> None:
        run: tuple[int, int, str] | None = None
        self._last_chunk = None
        if line.update in CHUNKS:
            run = (session, self.columns.update[row], line.message)
            self._last_chunk = line if line.method == UPDATE and line.kind == NOTIFICATION else None
        elif method == POLL:
            run = (session, -1, "")
        if run is None or run != self._run:
            self.columns.runs.append(row)
        self._run = run

    def _note_session(self, line: Line, method: str, number: int, row: int) -> None:
        session = self.sessions[number]
        session.count += 1
        kind = line.kind
        if kind == NOTIFICATION:
            if line.update in SETTINGS:
                session.note_setting(line.update, row)
            elif line.tool:
                _remember(self.tool_calls, (number, line.tool), row)
            elif line.message:
                _remember(self.messages, (number, line.message), row)
            elif line.update == "state_update":
                self._note_state(session, line, row)
            if number and not session.turns:
                self._begin_turn(session, "opening", row, line.time)
        elif kind == REQUEST:
            if method == PROMPT:
                self._begin_turn(session, "prompt", row, line.time)
            elif number and method in OPENS:
                self._begin_turn(session, cast("TurnKind", OPENS[method]), row, line.time)
        elif method == PROMPT:
            self._note_prompt_answer(session, line, row)
        elif method in OPENS:
            session.openings.append(row)
            turn = session.turns[-1] if session.turns else None
            if turn is None:  # the request did not name the session
                request = max(self.columns.pair[row], 0)
                turn = self._begin_turn(session, "opening", request, self.columns.time[request])
            if turn.kind != "prompt" and turn.end is None:
                turn.finish(row, line.time, "", error=kind == ERROR)
        elif method == "initialize" and self.initialized is None and self.columns.pair[row] >= 0:
            self.initialized = (self.columns.pair[row], row)

    def _begin_turn(self, session: SessionRows, kind: TurnKind, row: int, time: float) -> Turn:
        self.prompts += kind == "prompt"
        turn = Turn(len(self.turns), self.prompts if kind == "prompt" else 0, session.number, kind, row, time)
        self.turns.append(turn)
        session.add_turn(turn)
        return turn

    def _note_prompt_answer(self, session: SessionRows, line: Line, row: int) -> None:
        turn = session.turn_at(max(self.columns.pair[row], 0))
        if turn is not None and turn.end is None and (line.stop or line.kind == ERROR):
            turn.finish(row, line.time, line.stop, error=line.kind == ERROR)

    def _note_state(self, session: SessionRows, line: Line, row: int) -> None:
        turn = session.turns[-1] if session.turns else None
        if line.state == "idle" and turn is not None and turn.kind == "prompt" and turn.end is None:
            turn.finish(row, line.time, line.stop or line.state)

    # Reading

    @property
    def open_requests(self) -> int:
        """Return how many requests have no answer yet."""
        return len(self._open)

    @property
    def version(self) -> int:
        """The version of the protocol that the agent has chosen; 1 if that is not known."""
        frame = self.frame(self.initialized[1]) if self.initialized else None
        try:
            message: Any = {} if frame is None else loads(frame)
            return 2 if message["result"]["protocolVersion"] == 2 else 1
        except (DecodeError, KeyError, TypeError):
            return 1

    def __len__(self) -> int:
        return len(self.columns)

    def line(self, row: int, most: int | None = None) -> bytes:
        """The line of a row, or its first `most` bytes."""
        size = self.columns.size(row) - 1
        return self.reader.read(self.columns.offset[row], size if most is None else min(size, most)).rstrip(b"\n")

    def frame(self, row: int) -> bytes | None:
        """Return the message of a row; None if it has none."""
        return frame_of(self.line(row))

    def turn_of(self, row: int) -> Turn | None:
        """The turn that a row belongs to."""
        return self.sessions[self.columns.session[row]].turn_at(row)

    def row_at(self, time: float) -> int:
        """The last row at or before this time."""
        return max(bisect_right(self.columns.time, time) - 1, 0)

    def run_of(self, row: int) -> int:
        """Return the index of the run to which a row belongs."""
        return bisect_right(self.columns.runs, row) - 1

    def run_length(self, place: int) -> int:
        """Return how many rows a run has."""
        runs = self.columns.runs
        after = runs[place + 1] if place + 1 < len(runs) else len(self.columns)
        return after - runs[place]


def _remember(rows: dict[tuple[int, str], int], named: tuple[int, str], row: int) -> None:
    if len(rows) < MOST_NAMED:
        rows.setdefault(named, row)
