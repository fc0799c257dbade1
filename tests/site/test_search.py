"""The search finds guides before reference, design and requirements; `make docs` asks the built site."""

from tools.website.search import ranked


def item(location, title="Cancel"):
    return {"location": location, "title": title, "text": "<p>It ends.</p>", "path": ["Topics"], "level": 2, "tags": []}


def test_guides_come_first_and_requirements_are_left_out():
    items = [item("design/engine/#cancel"), item("requirements/cancel/"), item("agents/#cancel")]
    assert [it["location"] for it in ranked(items)] == ["agents/#cancel", "design/engine/#cancel"]


def test_a_section_of_the_design_is_found_by_its_text_and_a_name_of_the_reference_by_its_title():
    section, name = ranked([item("design/engine/#cancel"), item("reference/accord.Turn/", "accord.Turn")])
    assert section["title"] == "Design"
    assert "Cancel" in section["text"]
    assert name["title"] == "accord.Turn"
