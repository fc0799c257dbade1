"""What every store does, whichever it is."""

import asyncio
import functools

import msgspec
import pytest

from accord.errors import StoreError
from accord.store import PAGE_BYTES, PAGE_OF_UPDATES, Changes, Cursor, Store, StoredSession
from tests.store.stores import all_sessions, all_updates

HUGE = Cursor(2**80, 1, None).written()
"""A cursor with a number that no database has."""

UPDATES = [b'{"n":%d}' % number for number in range(5)]


async def test_a_session_is_found_as_it_was_created(store, new):
    session = new("s", roots=("/lib", "/docs"), title="A title", settings={"mode": "ask"}, state={"turns": [1, None]})
    assert await store.create(session) == session
    assert await store.find("s") == session


async def test_a_session_that_was_never_created_is_not_found(store):
    assert await store.find("nobody") is None


async def test_an_id_that_can_be_nobody_s_is_found_nowhere(store, new):
    await store.create(new("?"))
    for odd in ("\ud83d", "\0", "", "x" * 100_000):
        assert await store.find(odd) is None
        assert await all_updates(store, odd) == []
        await store.delete(odd)
        with pytest.raises(StoreError) as error:
            await store.take(odd)
        assert error.value.reason == "gone"
    assert await all_sessions(store) == ["?"]


async def test_an_id_is_used_once(store, new):
    await store.create(new("s"))
    with pytest.raises(StoreError) as error:
        await store.create(new("s", owner="somebody else"))
    assert error.value.reason == "exists"


async def test_updates_come_back_in_order(store, new):
    session = await store.create(new("s"))
    await store.write(session, UPDATES[:2])
    await store.write(session, UPDATES[2:])
    assert await all_updates(store, "s") == UPDATES


async def test_updates_are_read_from_any_place(store, new):
    session = await store.create(new("s"))
    await store.write(session, UPDATES)
    assert await all_updates(store, "s", after=3) == UPDATES[3:]
    assert await all_updates(store, "s", after=5) == []


async def test_updates_are_kept_byte_for_byte(store, new):
    session = await store.create(new("s"))
    odd = [
        b'{"text":"\\ud83d"}',
        '{"text":"\N{PARTY POPPER} \N{LATIN SMALL LETTER E WITH ACUTE}"}'.encode(),
        b'{"raw":"\x00"}',
    ]
    await store.write(session, odd)
    assert await all_updates(store, "s") == odd


async def test_writes_that_are_begun_at_once_are_kept_in_the_order_in_which_they_began(store, new):
    sessions = [await store.create(new(name)) for name in ("a", "b", "c")]
    writes = [store.write(session, [b"%d" % number]) for number in range(50) for session in sessions]
    await asyncio.gather(*writes)
    for session in sessions:
        assert await all_updates(store, session.id) == [b"%d" % number for number in range(50)]


async def test_a_write_that_is_cancelled_while_it_waits_was_never_made_or_is_whole(store, new):
    session = await store.create(new("s"))
    first, second = (asyncio.create_task(store.write(session, [name, name])) for name in (b"1", b"2"))
    await asyncio.sleep(0)  # both have begun
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert await all_updates(store, "s") in ([b"2", b"2"], [b"1", b"1", b"2", b"2"])


async def test_what_a_long_write_overtakes_nothing(store, new):
    session = await store.create(new("s"))
    long = b"x" * (2 * PAGE_BYTES)
    await asyncio.gather(*[store.write(session, [update]) for update in (b"1", long, b"2")])
    assert await all_updates(store, "s") == [b"1", long, b"2"]


async def test_pages_of_updates_are_bounded_in_number_and_in_bytes(store, new):
    session = await store.create(new("s"))
    many, big = [b"x"] * (PAGE_OF_UPDATES + 1), [b"x" * PAGE_BYTES] * 3
    await store.write(session, [*many, *big])
    pages = [page async for page in store.updates("s")]
    assert [len(page) for page in pages] == [PAGE_OF_UPDATES, 2, 1, 1]


async def test_changes_are_kept_and_the_rest_stays(store, new):
    session = await store.create(new("s", title="old", settings={"mode": "ask"}, state=[1]))
    await store.write(session, changes=Changes(title=None, state={"a": "\N{SNOWMAN}"}))
    found = await store.find("s")
    assert (found.title, found.settings, found.state) == (None, {"mode": "ask"}, {"a": "\N{SNOWMAN}"})
    await store.write(session, changes=Changes(settings={"mode": "code"}, roots=("/lib",), state=None))
    found = await store.find("s")
    assert (found.title, found.settings, found.roots, found.state) == (None, {"mode": "code"}, ("/lib",), None)


async def test_half_an_emoji_in_a_title_does_no_harm(store, new):
    session = await store.create(new("s", title="\ud83d"))
    await store.write(session, [b"1"], Changes(title="half \ud83d", state="\ud83d"))
    assert (await store.find("s")).state == "\ud83d"
    assert await all_updates(store, "s") == [b"1"]


async def test_what_cannot_be_written_as_json_fails_alone(store, new):
    session = await store.create(new("s"))
    bad = store.write(session, [b"bad"], Changes(state=object()))
    good = store.write(session, [b"good"])
    outcomes = await asyncio.gather(bad, good, return_exceptions=True)
    assert isinstance(outcomes[0], TypeError)
    assert outcomes[1] is None
    assert await all_updates(store, "s") == [b"good"]


async def test_a_write_is_activity_and_looking_is_none(store, new):
    session = await store.create(new("s"))
    await store.write(session, [b"1"])
    written = (await store.find("s")).updated
    assert written > session.updated
    await all_updates(store, "s")
    await store.page()
    await store.take("s")
    assert (await store.find("s")).updated == written


async def test_a_cut_forgets_what_is_behind_and_writing_goes_on_there(store, new):
    session = await store.create(new("s"))
    await store.create(new("t"))
    await store.write(session, UPDATES)
    before = (await store.find("s")).updated
    await store.cut(session, 2)
    assert await all_updates(store, "s") == UPDATES[:2]
    assert (await store.find("s")).updated == before
    await store.write(session, [b"more"])
    assert await all_updates(store, "s") == [*UPDATES[:2], b"more"]
    await store.cut(session, 9)
    assert await all_updates(store, "s") == [*UPDATES[:2], b"more"]
    await store.cut(session, 0)
    assert await all_updates(store, "s") == []


# Who may write


async def test_only_who_holds_a_session_may_cut_it(store, new):
    first = await store.create(new("s"))
    await store.write(first, UPDATES)
    held = await store.take("s")
    with pytest.raises(StoreError) as error:
        await store.cut(first, 1)
    assert error.value.reason == "taken"
    assert await all_updates(store, "s") == UPDATES
    await store.delete("s")
    with pytest.raises(StoreError) as error:
        await store.cut(held, 1)
    assert error.value.reason == "gone"


async def test_who_takes_a_session_holds_it_and_whoever_held_it_is_refused(store, new):
    first = await store.create(new("s"))
    second = await store.take("s")
    with pytest.raises(StoreError) as error:
        await store.write(first, [b"late"], Changes(title="late"))
    assert error.value.reason == "taken"
    await store.write(second, [b"1"])
    assert await all_updates(store, "s") == [b"1"]
    assert (await store.find("s")).title is None


async def test_who_takes_a_session_says_its_roots(store, new):
    await store.create(new("s", roots=("/lib",)))
    assert (await store.take("s", roots=["/a", "/b"])).roots == ("/a", "/b")
    assert (await store.take("s")).roots == ()
    assert (await store.find("s")).roots == ()


async def test_taking_what_is_not_there_fails(store):
    with pytest.raises(StoreError) as error:
        await store.take("nobody")
    assert error.value.reason == "gone"


async def test_a_refused_write_does_not_harm_those_beside_it(store, new):
    stale = await store.create(new("a"))
    await store.take("a")
    other = await store.create(new("b"))
    outcomes = await asyncio.gather(
        store.write(stale, [b"1"]), store.write(other, [b"1"]), store.write(stale, [b"2"]), return_exceptions=True
    )
    assert [getattr(it, "reason", None) for it in outcomes] == ["taken", None, "taken"]
    assert await all_updates(store, "b") == [b"1"]


async def test_what_keeps_an_update_at_once_does_as_a_write_does(store, new):
    session = await store.create(new("s"))
    append = store.appending(session)
    if append is None:
        pytest.skip("this store waits for every write")
    append(b"1")
    await store.write(session, [b"2"])
    append(b"3")
    assert await all_updates(store, "s") == [b"1", b"2", b"3"]
    assert (await store.find("s")).updated > session.updated
    held = await store.take("s")
    with pytest.raises(StoreError) as error:
        append(b"late")
    assert error.value.reason == "taken"
    append = store.appending(held)
    await store.delete("s")
    with pytest.raises(StoreError) as error:
        append(b"late")
    assert error.value.reason == "gone"


# Lists


async def test_the_latest_active_come_first(store, new):
    sessions = [await store.create(new(name)) for name in "abcde"]
    await store.write(sessions[1], [b"1"])
    assert await all_sessions(store) == ["b", "e", "d", "c", "a"]


async def test_sessions_of_one_moment_are_listed_the_newest_first(store, clock):
    at = clock()
    for name in "abcde":
        await store.create(StoredSession(id=name, cwd="/work", created=at, updated=at))
    assert await all_sessions(store) == ["e", "d", "c", "b", "a"]


async def test_a_list_may_be_of_one_folder(store, new):
    for name in "abcdef":
        await store.create(new(name, cwd="/even" if name in "bdf" else "/odd"))
    assert await all_sessions(store, cwd="/even") == ["f", "d", "b"]
    assert await all_sessions(store, cwd="/nowhere") == []


async def test_no_page_is_followed_by_an_empty_one(store, new):
    for name in "abcd":
        await store.create(new(name))
    page = await store.page(size=2)
    assert (await store.page(size=2, cursor=page.next)).next is None


async def test_a_session_that_becomes_active_between_two_pages_is_not_listed_twice_and_hides_no_other(store, new):
    sessions = [await store.create(new(name)) for name in "abcd"]
    page = await store.page(size=2)
    await store.write(sessions[3], [b"1"])
    await store.create(new("e"))
    rest = await store.page(size=10, cursor=page.next)
    assert [it.id for it in page.sessions] == ["d", "c"]
    assert [it.id for it in rest.sessions] == ["b", "a"]


async def test_a_session_that_is_deleted_between_two_pages_hides_no_other(store, new):
    for name in "abcd":
        await store.create(new(name))
    page = await store.page(size=2)
    await store.delete("c")
    assert [it.id for it in (await store.page(cursor=page.next)).sessions] == ["b", "a"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "e30", "WzEsMl0", "\N{SNOWMAN}", "////", "W10=", "\ud83d", HUGE])
async def test_a_cursor_that_no_page_had_is_refused(store, cursor):
    with pytest.raises(StoreError) as error:
        await store.page(cursor=cursor)
    assert error.value.reason == "cursor"


async def test_a_cursor_of_another_list_is_refused(store, new):
    for name in "abc":
        await store.create(new(name))
    page = await store.page(size=1, cwd="/work")
    with pytest.raises(StoreError):
        await store.page(cursor=page.next)


# Copies and ends


async def test_a_list_may_be_of_archived_sessions_or_of_the_others(store, new):
    for identifier in "abcd":
        await store.create(new(identifier, archived=identifier in "bd"))
    assert await all_sessions(store, size=1) == ["d", "c", "b", "a"]
    assert await all_sessions(store, size=1, archived=True) == ["d", "b"]
    assert await all_sessions(store, size=1, archived=False) == ["c", "a"]
    assert await all_sessions(store, size=1, archived=False, cwd="/elsewhere") == []


async def test_a_cursor_of_a_list_of_archived_sessions_is_refused_in_another_list(store, new):
    for identifier in "abc":
        await store.create(new(identifier, archived=True))
    page = await store.page(size=1, archived=True)
    assert len((await store.page(archived=True, cursor=page.next)).sessions) == 2
    for archived in (False, None):
        with pytest.raises(StoreError, match="another 'archived'"):
            await store.page(archived=archived, cursor=page.next)


async def test_a_session_can_be_amended_by_any_caller_and_its_holder_writes_on(store, new):
    held = await store.create(new("a", title="old", settings={"mode": "ask"}))
    before = await store.find("a")
    await store.amend("a", Changes(title="new", archived=True, info={"a": [1, None]}))
    assert await store.find("a") == msgspec.structs.replace(before, title="new", archived=True, info={"a": [1, None]})
    await store.write(held, [b"1"], Changes(settings={}))
    await store.amend("a", Changes(archived=False, info=None))
    after = await store.find("a")
    assert (after.title, after.archived, after.info, after.settings, after.hold) == ("new", False, None, {}, held.hold)
    assert await all_updates(store, "a") == [b"1"]


async def test_amending_nothing_changes_nothing(store, new):
    await store.create(new("a", title="T"))
    before = await store.find("a")
    await store.amend("a", Changes())
    assert await store.find("a") == before


async def test_amending_a_session_of_another_owner_or_of_no_owner_fails(store, new):
    await store.create(new("a", owner="ada"))
    for identifier, owner in (("a", "eve"), ("a", ""), ("b", "ada"), ("\ud83d", "ada")):
        with pytest.raises(StoreError) as raised:
            await store.amend(identifier, Changes(title="stolen"), owner=owner)
        assert raised.value.reason == "gone"
    assert (await store.find("a", owner="ada")).title is None


async def test_a_copy_has_the_updates_of_then_and_its_own_from_then_on(store, new):
    source = await store.create(new("source"))
    await store.write(source, UPDATES[:2])
    copy = await store.copy("source", new("copy", cwd="/other", title="Copy"))
    await store.write(source, [b"of the source"])
    await store.write(copy, [b"of the copy"])
    assert await all_updates(store, "source") == [*UPDATES[:2], b"of the source"]
    assert await all_updates(store, "copy") == [*UPDATES[:2], b"of the copy"]
    assert (await store.find("copy")).cwd == "/other"


async def test_a_copy_has_nothing_of_the_sessions_beside_its_source(store, new):
    for name in ("before", "source", "after"):
        await store.write(await store.create(new(name)), [name.encode()])
    await store.copy("source", new("copy"))
    await store.create(new("next"))
    assert await all_updates(store, "copy") == [b"source"]
    assert await all_updates(store, "next") == []


async def test_copying_what_is_not_there_fails_and_leaves_nothing(store, new):
    with pytest.raises(StoreError) as error:
        await store.copy("nobody", new("copy"))
    assert error.value.reason == "gone"
    assert await store.find("copy") is None


async def test_a_deleted_session_is_gone_and_its_copy_is_not(store, new):
    session = await store.create(new("s"))
    await store.write(session, UPDATES)
    await store.copy("s", new("copy"))
    await store.delete("s")
    await store.delete("s")
    assert await store.find("s") is None
    assert await all_updates(store, "s") == []
    assert await all_sessions(store) == ["copy"]
    assert await all_updates(store, "copy") == UPDATES
    with pytest.raises(StoreError) as error:
        await store.write(session, [b"late"])
    assert error.value.reason == "gone"


async def test_a_session_that_takes_the_id_of_a_deleted_one_has_none_of_its_past(store, new):
    await store.write(await store.create(new("s")), UPDATES)
    await store.delete("s")
    await store.write(await store.create(new("s")), [b"new"])
    assert await all_updates(store, "s") == [b"new"]


async def test_an_owner_sees_nothing_of_another(store, new):
    session = await store.create(new("s", owner="ada"))
    await store.write(session, [b"secret"])
    assert await store.find("s", owner="eve") is None
    assert await all_updates(store, "s", owner="eve") == []
    assert await all_sessions(store, owner="eve") == []
    await store.delete("s", owner="eve")
    for theft in (store.take("s", owner="eve"), store.copy("s", new("copy", owner="eve"))):
        with pytest.raises(StoreError) as error:
            await theft
        assert error.value.reason == "gone"
    assert await all_sessions(store, owner="ada") == ["s"]
    assert await all_updates(store, "s", owner="ada") == [b"secret"]


async def test_closing_twice_is_fine(store):
    await store.open()
    await store.close()
    await store.close()


@pytest.fixture(params=["its own", "the default"])
def lengths(request, store):
    """The lengths that a store tells, by its own method and by the one that every store has."""

    async def ask(known, **more):
        method = store.lengths if request.param == "its own" else functools.partial(Store.lengths, store)
        return await method(known, **more)

    return ask


async def test_the_lengths_of_many_sessions_are_told_at_once(store, new, lengths):
    sessions = [await store.create(new(f"s{number}")) for number in range(4)]
    for number, session in enumerate(sessions):
        await store.write(session, UPDATES[:number])
    known = {session.id: 0 for session in sessions}
    assert await lengths({**known, "nobody": 7, "\ud83d": 0, "\0": 0}) == {"s0": 0, "s1": 1, "s2": 2, "s3": 3}
    assert await lengths({}) == {}


async def test_a_length_falls_with_a_cut_and_goes_with_its_session(store, new, lengths):
    session = await store.create(new("s"))
    await store.write(session, UPDATES)
    assert await lengths({"s": 5}) == {"s": 5}
    await store.cut(session, 2)
    assert await lengths({"s": 5}) == {"s": 2}
    await store.write(session, UPDATES[:1])
    assert await lengths({"s": 2}) == {"s": 3}
    await store.cut(session, 0)
    assert await lengths({"s": 3}) == {"s": 0}
    await store.delete("s")
    assert await lengths({"s": 3}) == {}


async def test_the_lengths_of_others_are_not_told(store, new, lengths):
    await store.create(new("s", owner="ada"))
    assert await lengths({"s": 0}, owner="ada") == {"s": 0}
    assert await lengths({"s": 0}) == await lengths({"s": 0}, owner="eve") == {}


async def test_the_lengths_of_more_sessions_than_one_statement_names_are_told(store, new):
    for name in ("first", "last"):
        await store.write(await store.create(new(name)), UPDATES)
    names = ["first", *(f"no{number}" for number in range(1_200)), "last"]
    assert await store.lengths(dict.fromkeys(names, 0)) == {"first": 5, "last": 5}
