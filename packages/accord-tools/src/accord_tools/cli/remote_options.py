"""`--token-file`, `--header`, `--ca` and `--proxy`: how agents behind URLs are reached, in all commands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from accord_tools.cli import tokens
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    import ssl

    from accord_tools.configuration.settings import AgentSettings


class RemoteOptions(NamedTuple):
    """The token, the headers, the certificates and the proxy for an agent behind a URL."""

    token: str | None = None
    headers: dict[str, str] = {}  # noqa: RUF012
    tls: ssl.SSLContext | None = None
    proxy: str | bool = True


def arguments(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument("--token-file", metavar="FILE", help=tokens.HELP)
    group.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="send this header to an agent with a URL; may be repeated",
    )
    group.add_argument("--ca", metavar="FILE", help="also trust the certificates in this file (PEM)")
    group.add_argument(
        "--proxy",
        metavar="URL",
        help="the proxy on the way to an agent with a URL (http, https, socks5 or socks5h), in place of the one that "
        "HTTPS_PROXY and the like name; 'none' for none",
    )


def read(options: argparse.Namespace, settings: AgentSettings) -> RemoteOptions:
    """What these options and the agent's settings say. The token's variable is removed from the environment."""
    if settings.url is None:
        tokens.forget()  # the agent that is started would inherit it
        for name in ("token_file", "header", "ca", "proxy"):
            if getattr(options, name):
                raise WrongUsage(f"--{name.replace('_', '-')} is for an agent with a URL, and this one is a command")
        return RemoteOptions()
    return RemoteOptions(
        tokens.token(options.token_file or settings.token_file),
        dict(_header(given) for given in options.header),
        _tls(options.ca or settings.ca),
        options.proxy or settings.proxy or True,
    )


def _header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not (name.strip() and colon):
        raise WrongUsage("--header must be 'NAME: VALUE', with a colon after the name")
    return name.strip(), value.strip()


def _tls(file: str | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    import ssl

    trusted = ssl.create_default_context()
    try:
        trusted.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise WrongUsage(f"cannot read the certificates in {file}: {error.strerror}") from error
    return trusted
