"""The generator's settings.

They are written as JSON into a file that is called mkdocs.yml: JSON is YAML, Zensical reads it, and so does Material
for MkDocs, should the older of the two ever be needed.
"""

from __future__ import annotations

from typing import Any

FEATURES = (
    "content.code.copy",
    "content.tooltips",
    "navigation.footer",
    "navigation.indexes",
    "navigation.path",
    "navigation.prune",
    "navigation.tabs",
    "navigation.top",
    "navigation.tracking",
    "search.highlight",
    "toc.follow",
)

PALETTE = (
    {
        "media": "(prefers-color-scheme: light)",
        "scheme": "default",
        "toggle": {"icon": "lucide/sun", "name": "Switch to dark mode"},
    },
    {
        "media": "(prefers-color-scheme: dark)",
        "scheme": "slate",
        "toggle": {"icon": "lucide/moon", "name": "Switch to light mode"},
    },
)

EXTENSIONS: dict[str, Any] = {
    "admonition": {},
    "attr_list": {},
    "tables": {},
    # Anchors as GitHub makes them, so that one link is right in both places.
    "toc": {"permalink": True, "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}},
    "pymdownx.highlight": {"pygments_lang_class": True},
    "pymdownx.superfences": {},
}
"""What GitHub's Markdown has too: the pages are read there as well."""

STYLES = "stylesheets/accord.css"
SCRIPT = "javascripts/accord.js"


def settings(navigation: list[dict[str, Any]], address: str | None) -> dict[str, Any]:
    """The settings of a site with this navigation; `address` is where it will be, if that is known."""
    return {
        "site_name": "Accord",
        "site_description": "The Agent Client Protocol for Python: write agents, drive agents.",
        "docs_dir": "docs",
        "site_dir": "html",
        "nav": navigation,
        "theme": {
            "name": "material",
            "language": "en",
            "font": False,  # fonts of the reader's system: no page loads anything from another host
            "features": list(FEATURES),
            "palette": list(PALETTE),
            "icon": {"logo": "lucide/handshake"},
        },
        "extra": {"version": {"provider": "mike"}, "generator": False},
        "extra_css": [STYLES],
        "extra_javascript": [SCRIPT],
        "markdown_extensions": EXTENSIONS,
        "plugins": {"search": {}},
        **({"site_url": address} if address else {}),
    }
