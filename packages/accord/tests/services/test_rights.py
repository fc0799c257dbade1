"""A write gives nobody a right that they did not have, and keeps what the file has beside its content."""

import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies

import accord
from accord.services.file_content import GROUP, MASK, OTHER, OWNER, USER, AccessEntry, AccessList
from accord.services.file_service import Files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="access lists as Linux keeps them")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may write as other users")

OTHERS, THEIR_GROUP, OURS = 54321, 54322, 54323


def list_of(path):
    return AccessList.read(os.getxattr(path, "system.posix_acl_access"))


@pytest.fixture
def limited(project):
    """A file that one more user may write, and its own group may not even read."""
    path = project / "shared.txt"
    path.write_text("old")
    path.chmod(0o600)
    entries = AccessList(
        (
            AccessEntry(OWNER, 6),
            AccessEntry(USER, 6, OTHERS),
            AccessEntry(GROUP, 0),
            AccessEntry(MASK, 6),
            AccessEntry(OTHER, 0),
        )
    )
    try:
        os.setxattr(path, "system.posix_acl_access", entries.written())
    except OSError:
        pytest.skip("this file system has no access lists")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    return path


async def test_a_write_keeps_the_access_list_of_a_file(session, limited):
    before = list_of(limited)
    await Files().write(session, str(limited), "new")
    assert limited.read_text() == "new"
    assert list_of(limited) == before


async def test_an_undone_change_keeps_the_access_list_too(session, limited):
    before, files = list_of(limited), Files()
    await files.undo(await files.write(session, str(limited), "new"))
    assert (limited.read_text(), list_of(limited)) == ("old", before)


async def test_a_write_keeps_extended_attributes(project, session):
    path = project / "a.txt"
    path.write_text("old")
    try:
        os.setxattr(path, "user.note", b"keep me")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    await Files().write(session, str(path), "new")
    assert os.getxattr(path, "user.note") == b"keep me"


async def test_a_write_does_not_add_the_rights_that_a_folder_gives_to_new_files(project, session, limited):
    plain = project / "plain.txt"
    plain.write_text("old")
    plain.chmod(0o644)
    os.setxattr(project, "system.posix_acl_default", list_of(limited).written())
    await Files().write(session, str(plain), "new")
    assert "system.posix_acl_access" not in os.listxattr(plain)
    assert stat.S_IMODE(plain.stat().st_mode) == 0o644


async def test_what_an_agent_wrote_does_not_run_as_the_owner_of_the_old_file(project, session):
    path = project / "tool"
    path.write_text("old")
    path.chmod(0o6755)
    await Files().write(session, str(path), "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


@contextmanager
def acting_as(user, group):
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def open_folder(asking):
    """A folder that every user may write to, and a session in it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder, asking(folder)
    shutil.rmtree(folder)


@as_root
@pytest.mark.parametrize(("before", "after"), [(0o666, 0o666), (0o662, 0o622), (0o466, 0o444), (0o606, 0o600)])
async def test_where_owner_and_group_cannot_be_kept_a_write_narrows_the_rights(open_folder, before, after):
    folder, session = open_folder
    path = folder / "theirs.txt"
    path.write_text("old")
    os.chown(path, OTHERS, THEIR_GROUP)
    path.chmod(before)
    with acting_as(OURS, OURS):
        if not os.access(path, os.W_OK | os.R_OK, effective_ids=True):
            with pytest.raises(accord.RequestError):
                await Files().write(session, str(path), "new")
            return
        await Files().write(session, str(path), "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (OURS, OURS)
    assert stat.S_IMODE(found.st_mode) == after


@as_root
async def test_an_access_list_is_narrowed_where_the_owner_cannot_be_kept(open_folder):
    folder, session = open_folder
    path = folder / "theirs.txt"
    path.write_text("old")
    os.chown(path, OTHERS, THEIR_GROUP)
    entries = [
        AccessEntry(OWNER, 6),
        AccessEntry(USER, 7, OURS),
        AccessEntry(GROUP, 6),
        AccessEntry(MASK, 7),
        AccessEntry(OTHER, 4),
    ]
    try:
        os.setxattr(path, "system.posix_acl_access", AccessList(entries).written())
    except OSError:
        pytest.skip("this file system has no access lists")
    with acting_as(OURS, OURS):
        await Files().write(session, str(path), "new")
    assert path.stat().st_uid == OURS
    assert [entry.rights for entry in list_of(path)] == [6, 6, 4, 6, 4]


def may(entries, user, groups, owner, group):
    """What a user may do with a file, by the rules of acl(5)."""
    by = {entry.tag: entry.rights for entry in entries}
    if user == owner:
        return by[OWNER]
    if group in groups:
        return by[GROUP]
    return by[OTHER]


@given(strategies.integers(0, 0o777), strategies.booleans(), strategies.booleans())
def test_no_user_gains_a_right_by_a_new_owner_or_a_new_group(mode, owner_lost, group_lost):
    before = AccessList.of_mode(mode)
    after = before.without(owner=owner_lost, group=group_lost)
    owner, group = ("we" if owner_lost else "owner"), ("ours" if group_lost else "group")
    for user in ("owner", "somebody"):
        for groups in ((), ("group",), ("ours",), ("group", "ours")):
            had, has = may(before, user, groups, "owner", "group"), may(after, user, groups, owner, group)
            assert has & ~had == 0


def test_an_access_list_is_read_as_the_kernel_writes_it(limited):
    written = os.getxattr(limited, "system.posix_acl_access")
    assert struct.unpack("<I", written[:4]) == (2,)
    assert AccessList.read(written).written() == written
    if shutil.which("getfacl"):
        told = subprocess.run(["getfacl", "-cpn", str(limited)], capture_output=True, text=True, check=True).stdout
        assert told.split() == ["user::rw-", f"user:{OTHERS}:rw-", "group::---", "mask::rw-", "other::---"]
