"""Builds the documentation site: `make docs`.

The generator is Zensical. It reads Markdown files and one file of settings, so this package only writes those:

    docs/, examples/ and four pages at the root    -> `sources`
    one page for each public name, error code, session update, requirement and command -> `*_pages`
        -> a list of `Page`s
        -> `links`: links that lead out of the site lead to a page of it, or become plain text
        -> `navigation`: the order in which people read
        -> `build`: writes all into build/site, runs Zensical, and puts the result into site/VERSION
        -> `search`: guides before reference, design and requirements
        -> `plain`: llms.txt, llms-full.txt and each page as Markdown beside its HTML
        -> `accessibility`: axe-core finds no serious problem on ten pages, where a browser and npm are there
        -> `built`: every link and anchor of the HTML resolves, and no page loads anything from another host

The build reads no network. It imports Accord with the extra `http`, for the names of `accord.http`.
"""
