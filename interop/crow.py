"""crow-cli, an agent that is built on the official Python SDK's pre-release: where it comes from, and how it starts.

It speaks version 2 by `crow-cli acp2`, with a model that is made of rules. It wants Python 3.14, as Toad does.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.peers import Peer, fill

from interop.peers import had
from interop.toad import interpreter

VERSION, SDK = "0.1.48", "1.0.0rc3"
PACKAGES = (f"crow-cli=={VERSION}", f"agent-client-protocol=={SDK}")

CONFIG = """\
providers:
  rules:
    api_key: x
    base_url: {url}/v1
models:
  fake:
    provider: rules
    model: fake
    modality: [text]
db_uri: sqlite:///{home}/crow.db
"""


def installed() -> Path:
    """Its program; raises Unavailable with a line that says what to install."""
    crow = Peer(
        name="crow",
        package="crow-cli",
        version=VERSION,
        language="Python",
        agent=("{venv}",),
        client=(),
        steps=(
            (interpreter(), "-m", "venv", "--clear", "--without-pip", "{build}/venv"),
            # pip takes minutes to resolve its 150 packages.
            ("{python}", "-m", "uv", "pip", "install", "--quiet", "--python", "{venv}", *PACKAGES),
        ),
        install="Python 3.14 or later",
    )
    return Path(fill(crow.agent, had(crow).folder)[0]).with_name("crow-cli")


def environment(home: Path, url: str) -> dict[str, str]:
    """The variables with which it works in this home, with the model at this URL."""
    folder = home / ".agents" / "crow"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG.format(url=url, home=home))
    path = f"{installed().parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1,localhost"}
