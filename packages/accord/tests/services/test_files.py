"""Files as an agent reads and writes them: whole and in parts, in their encoding, in order, and taken back."""

import asyncio
import gc
import itertools
import os
import stat
import tracemalloc

import pytest
from hypothesis import given, strategies

import accord
from accord import v1
from accord.services.file_content import LineRange, decode, encode_like
from accord.services.file_service import AROUND, GAP, MOST, AgentWrite, ChangeJournal, FileChange, Files


async def refused(awaitable, code=-32602):
    with pytest.raises(accord.RequestError) as caught:
        await awaitable
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.requirement("files.read.line-and-limit")
@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "one\ntwo\nthree"),
        (1, None, "one\ntwo\nthree"),
        (0, None, "one\ntwo\nthree"),
        (2, None, "two\nthree"),
        (2, 1, "two\n"),
        (None, 2, "one\ntwo\n"),
        (3, 9, "three"),
        (4, 1, ""),
        (1, 0, ""),
    ],
)
async def test_reading_starts_at_a_line_and_stops_at_a_limit(project, session, line, limit, expected):
    (project / "a.txt").write_text("one\ntwo\nthree")
    assert await Files().read(session, str(project / "a.txt"), line, limit) == expected


@given(
    text=strategies.text("ab\n\r\u2028\x0c", max_size=40),
    cuts=strategies.lists(strategies.integers(0, 40)),
    line=strategies.integers(1, 8),
    limit=strategies.none() | strategies.integers(0, 8),
)
def test_lines_do_not_depend_on_the_pieces_that_a_text_comes_in(text, cuts, line, limit):
    lines = [line + "\n" for line in text.split("\n")[:-1]] + [text.rpartition("\n")[2]]
    expected = "".join(lines[line - 1 :][: len(lines) if limit is None else limit])
    wanted = LineRange(line, limit)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in itertools.pairwise(edges):
        if wanted.add(text[start:end]):
            break
    assert wanted.text == expected


@pytest.mark.requirement("files.missing-code")
async def test_a_missing_file_is_not_found(project, session):
    await refused(Files().read(session, str(project / "no")), -32002)
    await refused(Files().read(session, str(project / "no" / "deeper")), -32002)


async def test_a_file_is_no_folder(project, session):
    (project / "a.txt").write_text("x")
    await refused(Files().write(session, str(project / "a.txt" / "b.txt"), "x"))


@pytest.mark.requirement("files.write.creates")
async def test_writing_makes_the_file_and_its_folders(project, session):
    await Files().write(session, str(project / "new" / "deep" / "a.txt"), "text")
    assert (project / "new" / "deep" / "a.txt").read_text() == "text"


async def test_writing_keeps_the_mode_and_leaves_nothing_else(project, session):
    script = project / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await Files(sync=True).write(session, str(script), "new")
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert [path.name for path in project.iterdir()] == ["run.sh"]


async def test_a_new_file_has_the_mode_that_the_user_s_new_files_have(project, session):
    (project / "by hand").touch()
    await Files().write(session, str(project / "by agent"), "")
    assert (project / "by agent").stat().st_mode == (project / "by hand").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every file")
async def test_a_read_only_file_is_not_replaced(project, session):
    (project / "a.txt").write_text("old")
    (project / "a.txt").chmod(0o444)
    assert "read-only" in await refused(Files().write(session, str(project / "a.txt"), "new"))


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(project, session):
    (project / "a.txt").write_text("old")
    assert "half a surrogate pair" in await refused(Files().write(session, str(project / "a.txt"), "new \ud83d"))
    assert [path.name for path in project.iterdir()] == ["a.txt"]
    assert (project / "a.txt").read_text() == "old"


async def test_a_reader_sees_the_old_text_or_the_new(project, session):
    path, files = project / "a.txt", Files()
    texts = ["a" * 200_000, "b" * 200_000]
    path.write_text(texts[0])
    seen = set()

    async def write():
        for number in range(30):
            await files.write(session, str(path), texts[number % 2])

    writing = asyncio.create_task(write())
    while not writing.done():
        seen.add(await asyncio.to_thread(path.read_text))
    await writing
    assert seen <= set(texts)


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
async def test_encoding_and_newlines_are_kept(project, session, encoding, mark, newline):
    path, files = project / "a.txt", Files()
    path.write_bytes(mark + f"größe{newline}𝄞{newline}".encode(encoding))
    assert await files.read(session, str(path)) == f"größe{newline}𝄞{newline}"
    await files.write(session, str(path), "größer\n𝄞\n")
    assert path.read_bytes() == mark + f"größer{newline}𝄞{newline}".encode(encoding)


@pytest.mark.parametrize("text", ["one\r\ntwo\n", "one\ntwo\n", "one\r\ntwo\r\n"])
def test_newlines_that_the_agent_writes_itself_are_left_alone(text):
    assert encode_like(b"old\r\nfile\n", text) == text.encode()


@given(strategies.text(strategies.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")))
def test_what_was_read_is_written_back_byte_for_byte(text):
    for encoding, mark in (("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe")):
        data = mark + text.encode(encoding)
        assert encode_like(data, decode(data)) == data


@pytest.mark.parametrize(
    "data",
    [b"\x89PNG\r\n\x1a\n\0\0", b"caf\xe9", b"a\0b", b"\xff\xfe\0\0a\0\0\0", b"ok" * 200_000 + b"\xff", b"\xff\xfea"],
)
async def test_what_is_no_text_is_refused(project, session, data):
    (project / "it").write_bytes(data)
    assert "not a text file" in await refused(Files().read(session, str(project / "it")))


async def test_a_large_file_is_read_in_parts_and_in_bounded_memory(project, session):
    path, files = project / "big.log", Files(limit=100_000)
    with path.open("w") as file:
        for number in range(400_000):
            file.write(f"line {number}\n")
    assert "read some of the lines" in await refused(files.read(session, str(path)))
    assert "read some of the lines" in await refused(files.read(session, str(path), 2))
    tracemalloc.start()
    try:
        assert await files.read(session, str(path), 390_001, 2) == "line 390000\nline 390001\n"
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.requirement("files.read.unsaved-edits")
async def test_unsaved_text_is_what_agents_read_and_what_they_write_to(project, session):
    path = project / "a.txt"
    path.write_text("saved")
    unsaved = {path: "one\nunsaved\n", project / "new.txt": "never saved"}
    files = Files(unsaved=unsaved)
    assert await files.read(session, str(path), 2) == "unsaved\n"
    assert await files.read(session, str(project / "new.txt")) == "never saved"
    await files.write(session, str(path), "by the agent")
    assert unsaved[path] == path.read_text() == "by the agent"


async def test_unsaved_text_of_a_link_s_target_is_read_by_the_link(project, session):
    (project / "a.txt").write_text("saved")
    (project / "link").symlink_to("a.txt")
    assert await Files(unsaved={project / "a.txt": "unsaved"}).read(session, str(project / "link")) == "unsaved"


async def test_unsaved_text_outside_is_not_read(project, session, tmp_path):
    files = Files(unsaved={tmp_path / "private.txt": "unsaved"})
    await refused(files.read(session, str(tmp_path / "private.txt")))


async def test_changes_are_remembered_shown_and_undone(project, session):
    told = []
    path, files = project / "a.txt", Files(on_change=told.append)
    path.write_bytes(b"one\r\ntwo\r\n")
    await files.write(session, str(path), "one\n2\n")
    await files.write(session, str(project / "new.txt"), "new")
    changed, made = files.changes
    assert told == [changed, made]
    assert (changed.agent, changed.session_id, changed.path) == ("tester", "s1", path)
    assert changed.diff() == f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n"
    assert made.diff().startswith("--- /dev/null\n")
    assert made.diff().endswith("+new\n\\ No newline at end of file\n")
    await files.undo(made)
    await files.undo(changed)
    assert not (project / "new.txt").exists()
    assert path.read_bytes() == b"one\r\ntwo\r\n"
    assert len(files.changes) == 0


async def test_what_was_changed_again_is_not_undone(project, session):
    path, files = project / "a.txt", Files()
    change = await files.write(session, str(path), "by the agent")
    path.write_text("by the user")
    with pytest.raises(ValueError, match="has changed since"):
        await files.undo(change)
    assert path.read_text() == "by the user"


async def test_files_go_back_to_what_they_were_before_several_changes(project, session):
    old, new, files = project / "a.txt", project / "sub" / "new.txt", Files()
    old.write_bytes(b"one\r\ntwo\r\n")
    old.chmod(0o755)
    first = await files.write(session, str(old), "one\n")
    (project / "sub").mkdir()
    since = [
        await files.write(session, str(old), "1\n"),
        await files.write(session, str(new), "new"),
        await files.write(session, str(old), "11\n"),
    ]
    assert await files.rewind(since) == []
    assert old.read_bytes() == b"one\r\n"
    assert not new.exists()
    assert list(files.changes) == [first]
    assert await files.rewind([first]) == []
    assert old.read_bytes() == b"one\r\ntwo\r\n"
    assert old.stat().st_mode & 0o777 == 0o755


async def test_a_file_that_was_deleted_since_is_written_again_with_its_folder(project, session):
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("before")
    files = Files()
    changes = [await files.write(session, str(project / "sub" / name), "by the agent") for name in ("a.txt", "b.txt")]
    (project / "sub" / "a.txt").unlink()
    (project / "sub" / "b.txt").unlink()
    (project / "sub").rmdir()
    assert await files.rewind(changes) == []
    assert (project / "sub" / "a.txt").read_text() == "before"
    assert not (project / "sub" / "b.txt").exists()


@pytest.mark.parametrize("when", ["between", "since"])
async def test_a_file_that_somebody_else_has_changed_is_left_until_the_user_says_otherwise(project, session, when):
    path, other, files = project / "a.txt", project / "b.txt", Files()
    path.write_text("before")
    await files.write(session, str(path), "by the agent")
    if when == "between":
        path.write_text("by the user")
    await files.write(session, str(path), "by the agent again")
    if when == "since":
        path.write_text("by the user")
    await files.write(session, str(other), "new")
    now = path.read_text()
    assert await files.rewind(files.changes) == [path]
    assert path.read_text() == now
    assert not other.exists()
    assert [it.path for it in files.changes] == [path, path]
    assert await files.rewind(files.changes, overwrite=True) == []
    assert path.read_text() == "before"
    assert len(files.changes) == 0


async def test_what_took_the_name_of_a_changed_file_is_left(project, session, tmp_path):
    outside, files = tmp_path / "outside.txt", Files()
    outside.write_text("before")
    (project / "a.txt").write_text("before")
    await files.write(session, str(project / "a.txt"), "by the agent")
    await files.write(session, str(project / "b.txt"), "by the agent")
    (project / "a.txt").unlink()
    (project / "a.txt").symlink_to(outside)
    (project / "b.txt").unlink()
    (project / "b.txt").mkdir()
    assert await files.rewind(files.changes) == [project / "a.txt", project / "b.txt"]
    assert await files.rewind(files.changes, overwrite=True) == [project / "a.txt", project / "b.txt"]
    assert outside.read_text() == "before"


async def test_the_journal_forgets_its_oldest_changes(project, session):
    files = Files()
    files.changes._most_bytes = 1000
    for number in range(50):
        await files.write(session, str(project / f"{number}"), "x" * 100)
    assert [change.path.name for change in files.changes] == [str(number) for number in range(40, 50)]


async def test_requests_of_a_session_are_done_in_the_order_they_came(project, session, lend, within):
    path = project / "a.txt"
    async with lend(Files(), sessions=[session]) as client:
        requests = []
        for number in range(40):
            requests.append(client.request(v1.WriteTextFileRequest(session.id, str(path), str(number))))
            requests.append(client.request(v1.ReadTextFileRequest(session.id, str(path))))
        answers = await within(asyncio.gather(*requests))
    assert [answer.content for answer in answers[1::2]] == [str(number) for number in range(40)]


async def test_a_cancelled_write_has_happened_or_not_but_never_comes_later(project, session):
    path, files = project / "a.txt", Files()
    for size in range(0, 2_000_000, 100_000):
        writing = asyncio.create_task(files.write(session, str(path), "x" * size))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
        await files.write(session, str(path), "last")
        assert path.read_text() == "last"
        assert len(files.changes) in (1, 2)
        for change in files.changes:
            files.changes.discard(change)


@pytest.mark.parametrize(("read", "write"), [(True, True), (True, False), (False, True)])
async def test_what_is_not_lent_is_not_declared_and_not_there(project, session, lend, read, write):
    (project / "a.txt").write_text("text")
    path = str(project / "a.txt")
    requests = {v1.ReadTextFileRequest(session.id, path): read, v1.WriteTextFileRequest(session.id, path, ""): write}
    async with lend(Files(read=read, write=write), sessions=[session]) as client:
        for request, lent in requests.items():
            if lent:
                await client.request(request)
                continue
            with pytest.raises(accord.CapabilityMissing):
                await client.request(request)
            with pytest.raises(accord.PeerError) as caught:
                await client.request(request, force=True)
            assert caught.value.code == -32601


async def test_a_part_of_a_large_file_may_have_as_many_bytes_as_the_limit(project, session):
    path, files = project / "big.log", Files(limit=10)
    path.write_text("first line\n12345678\n0\nlast line\n")
    assert await files.read(session, str(path), 2, 1) == "12345678\n"
    path.write_text("first line\n123456789\n")
    assert await files.read(session, str(path), 2) == "123456789\n"
    path.write_text("first line\n1234567890\n")
    assert "at most 10 bytes" in await refused(files.read(session, str(path), 2))


async def test_a_session_that_nobody_knows_gets_nothing(project, session, lend):
    async with lend(Files(), sessions=[session]) as client:
        with pytest.raises(accord.PeerError) as caught:
            await client.request(v1.ReadTextFileRequest(v1.SessionId("another"), str(project / "a.txt")))
        assert caught.value.code == -32002


async def test_what_a_cancelled_reader_would_have_been_told_is_not_left_lying_about(project, session):
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, it: complaints.append(it))
    reading = asyncio.create_task(Files().read(session, str(project / "no-such-file")))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    del reading
    gc.collect()
    assert complaints == []


def test_the_journal_keeps_so_many_changes_however_short_they_are(tmp_path):
    changes = ChangeJournal()
    for number in range(MOST + 10):
        changes.add(AgentWrite(tmp_path / str(number), None, b""))
    assert len(changes) == MOST
    assert next(iter(changes)).path.name == "10"


def test_the_journal_keeps_changes_up_to_its_size_and_drops_the_oldest(tmp_path):
    changes = ChangeJournal(kept=3)
    changes.add(AgentWrite(tmp_path / "one", None, b"abc"))
    assert [it.path.name for it in changes] == ["one"]
    changes.add(AgentWrite(tmp_path / "two", None, b"d"))
    assert [it.path.name for it in changes] == ["two"]


@pytest.mark.parametrize(("same", "gaps"), [(2 * AROUND + 1, 0), (2 * AROUND + 2, 1)])
def test_unchanged_lines_between_two_changes_are_left_out_if_that_is_shorter(same, gaps):
    between = [f"line {number}" for number in range(same)]
    change = FileChange("\n".join(["a", *between, "b", ""]), "\n".join(["c", *between, "d", ""]))
    shown = list(change.lines())
    assert shown.count(GAP) == gaps
    assert [it for it in shown if it.startswith(("+", "-"))] == ["-a", "+c", "-b", "+d"]
    assert len(shown) == 4 + (2 * AROUND + 1 if gaps else same)
