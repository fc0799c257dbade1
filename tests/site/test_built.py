"""The checks of a built site find what is broken, and the versions of a site stand beside each other."""

import json

from tools.website.built import problems_of
from tools.website.versions import publish, short_version


def site_of(folder, **pages):
    for name, body in pages.items():
        file = folder / name / "index.html"
        file.parent.mkdir(parents=True)
        file.write_text(f"<html><body>{body}</body></html>")
    return folder


def test_a_link_to_a_page_and_its_anchor_is_accepted(tmp_path):
    site = site_of(tmp_path, a='<a href="../b/#there">b</a><a href="https://example.com/">far</a>', b='<p id="there">')
    report = problems_of(site)
    assert report.problems == []
    assert (report.pages, report.links) == (2, 2)


def test_a_link_to_a_page_that_does_not_exist_is_reported(tmp_path):
    assert problems_of(site_of(tmp_path, a='<a href="../c/">c</a>')).problems == ["a/index.html: broken link ../c/"]


def test_a_link_to_an_anchor_that_does_not_exist_is_reported(tmp_path):
    site = site_of(tmp_path, a='<a href="../b/#gone">b</a>', b="")
    assert problems_of(site).problems == ["a/index.html: broken link ../b/#gone"]


def test_a_link_out_of_the_site_is_reported(tmp_path):
    assert problems_of(site_of(tmp_path, a='<a href="../../x">x</a>')).problems == ["a/index.html: broken link ../../x"]


def test_a_script_of_another_host_is_reported(tmp_path):
    site = site_of(tmp_path, a='<script src="https://example.com/x.js"></script>')
    assert problems_of(site).problems == ["a/index.html: loads https://example.com/x.js from another host"]


def test_a_style_that_loads_a_font_of_another_host_is_reported(tmp_path):
    site = site_of(tmp_path, a="")
    (site / "a.css").write_text("@font-face { src: url(https://example.com/x.woff2) }")
    assert problems_of(site).problems == ["a.css: loads https://example.com/x.woff2"]


def test_a_picture_that_does_not_exist_is_reported(tmp_path):
    assert problems_of(site_of(tmp_path, a='<img src="x.png">')).problems == ["a/index.html: x.png does not exist"]


def test_the_newest_version_is_the_latest_and_older_ones_stay(tmp_path):
    site = tmp_path / "site"
    for version in ("0.9", "0.10"):
        html = tmp_path / "html"
        html.mkdir()
        (html / "index.html").write_text(version)
        publish(html, site, version)
    assert (site / "0.9" / "index.html").read_text() == "0.9"
    assert [it["version"] for it in json.loads((site / "versions.json").read_text())] == ["0.10", "0.9"]
    assert 'href="0.10/"' in (site / "index.html").read_text()
    assert 'href="../0.10/"' in (site / "latest" / "index.html").read_text()


def test_a_version_of_the_site_has_no_number_of_corrections():
    assert short_version("0.2.1") == "0.2"
