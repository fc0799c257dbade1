"""The columns of the index: a few small numbers for each message of a trace, in arrays. PURE."""

from __future__ import annotations

from array import array

MOST_WORDS = 65_000
"""Different words that one table keeps. A peer may make up a method for each message; the rest becomes `OTHER`."""

OTHER = "(other)"


class Words:
    """A table of words that repeat: the index keeps a word's number.

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
        """The number of a word; None if no message has it."""
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
        """What it is; see `lines`."""
        self.to_agent = array("B")
        """1 if it goes towards the agent."""
        self.method = array("H")
        """Its method; an answer has that of its request."""
        self.update = array("H")
        """The kind of its session update."""
        self.session = array("H")
        """Its session; an answer has that of its request."""
        self.hop = array("H")
        """In a trace of several links: which two components it passes between."""
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
        """Add a message that is like the one before in all but its place and its time."""
        self.offset.append(offset)
        self.time.append(time)
        for column in (self.kind, self.to_agent, self.method, self.update, self.session, self.hop):
            column.append(column[-1])
        self.pair.append(-1)

    def size(self, row: int) -> int:
        """How many bytes the line of a row has."""
        after = self.offset[row + 1] if row + 1 < len(self.offset) else self.end
        return after - self.offset[row]

    def latency(self, row: int) -> float | None:
        """Seconds between a request and its answer, for both of them; None if there is no answer."""
        pair = self.pair[row]
        return None if pair < 0 else abs(self.time[pair] - self.time[row])
