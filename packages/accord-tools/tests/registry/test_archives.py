"""An archive of a stranger writes nowhere but into its folder, and its size is bounded."""

import bz2
import gzip
import io
import os
import stat
import tarfile
import zipfile

import pytest

from accord_tools.registry import InstallError, UnsafeArchive, archives
from accord_tools.registry.archives import form_of, unpack
from tests.registry.local_registry import tar_archive, zip_archive


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks these bytes, and returns the folder."""

    def run(body, form="tar"):
        archive = tmp_path / f"archive.{form}"
        archive.write_bytes(body)
        folder = tmp_path / "inside" / "files"
        folder.parent.mkdir(exist_ok=True)
        unpack(archive, form, folder)
        return folder

    return run


def tar_of(*infos):
    """A tar archive of these members; each is a TarInfo, or one with its content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for item in infos:
            info, content = item if isinstance(item, tuple) else (item, b"")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def member(name, kind=tarfile.REGTYPE, target="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


@pytest.mark.parametrize("form", ["tar.gz", "tgz", "tar.bz2", "tbz2", "tar.xz", "zip", "TAR.GZ"])
def test_each_form_of_archive_is_unpacked(unpacked, form):
    files = {"bin/agent": "#!/bin/sh\n", "share/about.txt": "text"}
    body = (
        zip_archive(files)
        if form == "zip"
        else tar_archive(files, "xz" if "xz" in form else "bz2" if "b" in form.lower() else "gz")
    )
    folder = unpacked(body, form_of(f"agent.{form}"))
    assert (folder / "share" / "about.txt").read_text() == "text"
    assert (folder / "bin" / "agent").read_text() == "#!/bin/sh\n"


OUTSIDE = ["../outside", "a/../../outside", "/accord-outside", "..\\outside", "C:\\outside", "C:outside", "a/\nb"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_path_outside_of_the_folder_is_refused(unpacked, tmp_path, name, form):
    body = zip_archive({name: "x"}) if form == "zip" else tar_of((member(name), b"x"))
    with pytest.raises(UnsafeArchive, match=r"path (outside of its folder|with a control character)"):
        unpacked(body, form)
    assert not list(tmp_path.rglob("*outside*"))


def test_a_name_may_have_a_blank(unpacked):
    assert (unpacked(tar_of((member("a b/my agent"), b"x"))) / "a b" / "my agent").read_text() == "x"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "C:\\secret", "\\\\host\\share"])
def test_a_symbolic_link_that_leads_outside_is_refused(unpacked, target):
    with pytest.raises(UnsafeArchive, match="outside"):
        unpacked(tar_of(member("link", tarfile.SYMTYPE, target)))


def test_links_that_lead_outside_only_together_are_refused(unpacked, tmp_path):
    there = member("folder/here", tarfile.SYMTYPE, ".")
    out = member("way", tarfile.SYMTYPE, "folder/here/../..")
    with pytest.raises(UnsafeArchive, match="outside"):
        unpacked(tar_of(there, out))
    assert not (tmp_path / "inside" / "files").exists()


def test_nothing_is_written_through_a_link(unpacked, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    body = tar_of(member("door", tarfile.SYMTYPE, str(victim)), (member("door/file"), b"x"))
    with pytest.raises(UnsafeArchive):
        unpacked(body)
    assert list(victim.iterdir()) == []


def test_a_link_within_the_archive_is_kept(unpacked):
    folder = unpacked(
        tar_of((member("lib/program", mode=0o755), b"x"), member("program", tarfile.SYMTYPE, "lib/program"))
    )
    assert (folder / "program").is_symlink()
    assert (folder / "program").read_bytes() == b"x"


def test_a_link_in_a_zip_is_judged_like_one_in_a_tar(unpacked):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "../../secret")
    with pytest.raises(UnsafeArchive, match="outside"):
        unpacked(made.getvalue(), "zip")


def test_a_hard_link_becomes_a_copy_of_a_member(unpacked):
    folder = unpacked(tar_of((member("first"), b"x"), member("second", tarfile.LNKTYPE, "first")))
    assert (folder / "second").read_bytes() == b"x"
    assert (folder / "second").stat().st_nlink == 1


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "absent"])
def test_a_hard_link_to_what_is_not_in_the_archive_is_refused(unpacked, target):
    with pytest.raises(UnsafeArchive):
        unpacked(tar_of(member("second", tarfile.LNKTYPE, target)))


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_devices_and_pipes_are_refused(unpacked, kind):
    with pytest.raises(UnsafeArchive, match="a device or a pipe"):
        unpacked(tar_of(member("thing", kind)))


@pytest.mark.parametrize("second", ["a/b", "./a/b", "a//b", "a\\b"])
def test_two_members_of_one_name_are_refused(unpacked, second):
    with pytest.raises(UnsafeArchive, match="two members"):
        unpacked(tar_of((member("a/b"), b"1"), (member(second), b"2")))


def test_a_file_where_a_folder_is_needed_is_refused(unpacked):
    with pytest.raises(UnsafeArchive, match="a file and a folder"):
        unpacked(tar_of((member("a"), b"1"), (member("a/b"), b"2")))


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_an_archive_that_grows_too_much_is_refused(unpacked, monkeypatch, form):
    monkeypatch.setattr(archives, "FREE_GROWTH", 1_000_000)
    bomb = {"a": bytes(3_000_000)}
    with pytest.raises(UnsafeArchive, match="grows to more than 200 times"):
        unpacked(zip_archive(bomb) if form == "zip" else tar_archive(bomb, "bz2"), form)


def test_an_archive_with_too_many_members_is_refused(unpacked, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    with pytest.raises(UnsafeArchive, match="more than 3 members"):
        unpacked(tar_archive({str(n): "" for n in range(4)}))


def test_an_archive_with_too_many_bytes_is_refused(unpacked, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 10)
    with pytest.raises(UnsafeArchive, match="more than 10 bytes"):
        unpacked(tar_archive({"a": "123456", "b": "123456"}))


def test_a_tar_with_a_huge_header_is_refused(unpacked):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 50_000_000
    with pytest.raises(UnsafeArchive, match="a header of more than"):
        unpacked(gzip.compress(header.tobuf() + bytes(50_000_000)))


DAMAGED = {
    "cut gzip": (tar_archive({"a": "x" * 10_000})[:-40], "tar"),
    "text as tar": (b"this is a page that says 404", "tar"),
    "cut bzip2": (tar_archive({"a": "x" * 10_000}, "bz2")[:-20], "tar"),
    "changed bzip2": (bz2.compress(b"not a tar file at all" * 100), "tar"),
    "cut xz": (tar_archive({"a": os.urandom(10_000)}, "xz")[:5_000], "tar"),
    "text as zip": (b"this is a page that says 404", "zip"),
    "cut zip": (zip_archive({"a": "x" * 10_000})[:-40], "zip"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_archive_is_an_error_that_says_so(unpacked, name):
    with pytest.raises(InstallError, match=r"the archive (is damaged|cannot be read)"):
        unpacked(*DAMAGED[name])


def test_rights_beyond_those_of_a_program_are_not_kept(unpacked):
    folder = unpacked(tar_of((member("a", mode=0o6777), b"x"), (member("b", mode=0o000), b"x")))
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "b").stat().st_mode) == 0o600


def test_a_zip_with_a_huge_directory_is_refused_before_it_is_read(tmp_path):
    name = "x" * 60_000
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(300):
            archive.writestr(f"{name}{number}", "")
    with pytest.raises(UnsafeArchive, match="directory of more than 16,777,216 bytes"):
        unpack(tmp_path / "a.zip", "zip", tmp_path / "out")


def test_the_members_of_a_zip_are_counted_before_one_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 2)
    (tmp_path / "a.zip").write_bytes(zip_archive({"a": "1", "b": "2", "c": "3"}))
    with pytest.raises(UnsafeArchive, match="more than 2 members"):
        unpack(tmp_path / "a.zip", "zip", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
