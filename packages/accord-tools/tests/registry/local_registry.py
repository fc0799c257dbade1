"""`LocalRegistry`: a registry of agents on this machine, for tests that install agents without a network.

    with LocalRegistry() as registry:
        registry.add_archive("mine", {"mine": "#!/bin/sh\nexec my-agent\n"}, cmd="./mine")
        subprocess.run(["accord", "agents", "install", "mine"], env={**os.environ, **registry.environment}, check=True)

It serves an index, archives, and packages in the protocols of npm and PyPI, all made of texts from the test.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self, cast

Content = Mapping[str, str | bytes]
"""Files by their paths."""

PLATFORMS = tuple(
    f"{system}-{machine}" for system in ("darwin", "linux", "windows") for machine in ("aarch64", "x86_64")
)


@dataclass(frozen=True)
class Answer:
    """The registry's answer to a request for one path."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    length: int | None = None
    """The declared length, if it is not that of the body."""


class LocalRegistry:
    """A registry of agents on this machine. It is a context manager, which starts and ends its server."""

    def __init__(self) -> None:
        self.agents: list[dict[str, Any]] = []
        """The entries of the index; a test may change them."""
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        """The path and the headers of each request that has arrived."""
        self.answers: dict[str, Answer | Callable[[Mapping[str, str]], Answer]] = {}
        """Answers by path; one may be a function of the request's headers."""
        self.connects: list[str] = []
        """The hosts that clients have requested, as if this server were their proxy. It refuses them all."""
        self._packages: dict[str, dict[str, Any]] = {}
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def address(self) -> str:
        """The address of the server, without a slash at the end."""
        if self._server is None:
            raise RuntimeError(
                "the registry is not started: use it as a context manager, `with LocalRegistry() as ...`"
            )
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        """The address of the index."""
        return f"{self.address}/registry.json"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which Accord, npm, pip and uv use only this registry."""
        return {
            "ACCORD_REGISTRY": self.url,
            "npm_config_registry": f"{self.address}/npm/",
            "npm_config_update_notifier": "false",
            "PIP_INDEX_URL": f"{self.address}/simple/",
            "PIP_NO_INDEX": "0",
            "PIP_FIND_LINKS": "",
            "UV_DEFAULT_INDEX": f"{self.address}/simple/",
            "NO_PROXY": "127.0.0.1",
        }

    def add_entry(self, agent_id: str, distribution: object, version: str = "1.0.0", **more: object) -> dict[str, Any]:
        """List an agent with this distribution, and return its entry, which may be changed."""
        entry = {
            "id": agent_id,
            "name": agent_id.title(),
            "version": version,
            "description": f"The agent {agent_id}.",
            "authors": ["Example"],
            "license": "MIT",
            "distribution": distribution,
            **more,
        }
        self.agents = [it for it in self.agents if it.get("id") != agent_id] + [entry]
        return entry

    def add_archive(
        self,
        agent_id: str,
        files: Content,
        cmd: str,
        *,
        version: str = "1.0.0",
        form: Literal["tar.gz", "tgz", "tar.bz2", "tbz2", "zip"] = "tar.gz",
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        with_hash: bool = True,
    ) -> dict[str, Any]:
        """List an agent that is an archive of these files, the same for every platform."""
        body = zip_archive(files) if form == "zip" else tar_archive(files, "bz2" if "b" in form else "gz")
        return self.add_download(
            agent_id, body, cmd, f"{agent_id}.{form}", version=version, args=args, env=env, with_hash=with_hash
        )

    def add_download(
        self,
        agent_id: str,
        body: bytes,
        cmd: str,
        file: str,
        *,
        version: str = "1.0.0",
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        with_hash: bool = True,
    ) -> dict[str, Any]:
        """List an agent whose download is these bytes, such as a bare program or a broken archive."""
        path = f"/download/v{version}/{file}"
        self.answers[path] = Answer(body)
        target: dict[str, Any] = {
            "archive": self.address + path,
            "cmd": cmd,
            "args": list(args),
            "env": dict(env or {}),
        }
        if with_hash:
            target["sha256"] = hashlib.sha256(body).hexdigest()
        return self.add_entry(agent_id, {"binary": {key: dict(target) for key in PLATFORMS}}, version)

    def add_npm_package(
        self,
        name: str,
        version: str,
        files: Content,
        bins: Mapping[str, str] | str | None,
        *,
        published: str = "2020-01-01T00:00:00.000Z",
        **about: object,
    ) -> None:
        """Offer a package of npm. `bins` has its programs; `about` adds to its package.json.

        `published` is when the version was published, for settings of npm that refuse new ones.
        """
        manifest = {"name": name, "version": version, **({"bin": bins} if bins is not None else {}), **about}
        inside = {"package.json": json.dumps(manifest), **files}
        body = tar_archive({f"package/{path}": content for path, content in inside.items()})
        place = f"/npm/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self.answers[place] = Answer(body)
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(body).digest()).decode()}"
        dist = {
            "tarball": self.address + place,
            "integrity": integrity,
            "shasum": hashlib.sha1(body, usedforsecurity=False).hexdigest(),
        }
        package = self._packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}, "time": {}})
        package["time"][version] = published
        package["versions"][version] = {**manifest, "dist": dist}
        package["dist-tags"]["latest"] = version
        answer = Answer(json.dumps(package).encode(), headers={"Content-Type": "application/json"})
        self.answers[f"/npm/{name}"] = self.answers[f"/npm/{name.replace('/', '%2f')}"] = answer

    def add_python_package(
        self, name: str, version: str, files: Content, programs: Mapping[str, str], requires: tuple[str, ...] = ()
    ) -> None:
        """Offer a package of PyPI, as a wheel. `programs` has its programs, such as {"mine": "mine:main"}."""
        module = name.replace("-", "_")
        file = f"{module}-{version}-py3-none-any.whl"
        body = wheel(module, name, version, files, programs, requires)
        self.answers[f"/files/{file}"] = Answer(body)
        link = f'<a href="{self.address}/files/{file}#sha256={hashlib.sha256(body).hexdigest()}">{file}</a>\n'
        place = f"/simple/{name.lower()}/"
        old = self.answers.get(place)
        page = (old.body if isinstance(old, Answer) else b"") + link.encode()
        self.answers[place] = Answer(page, headers={"Content-Type": "text/html"})

    def index(self) -> bytes:
        """Return the index as it is served."""
        return json.dumps({"version": "1.0.0", "agents": self.agents, "extensions": []}).encode()

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a request."""
        self.requests.append((path, headers))
        found = self.answers.get(path)
        if found is not None:
            return found if isinstance(found, Answer) else found(headers)
        if path != "/registry.json":
            return Answer(b"not found", 404)
        body = self.index()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        return Answer(body, headers={"ETag": etag}) if headers.get("if-none-match") != etag else Answer(b"", 304)


MODES: Mapping[str, Literal["w:gz", "w:bz2", "w:xz"]] = {"gz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, registry: LocalRegistry) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.registry = registry


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = cast("_Server", self.server).registry.answer(self.path, headers)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer.body)
        if answer.length is not None:
            self.close_connection = True

    do_HEAD = do_GET  # noqa: N815  # the name that the base class looks for

    def do_CONNECT(self) -> None:
        cast("_Server", self.server).registry.connects.append(self.path)
        self.send_error(501)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing: the requests are in `LocalRegistry.requests`."""


def tar_archive(files: Content, compression: Literal["gz", "bz2", "xz"] = "gz") -> bytes:
    """A tar archive of these files. Those that begin with `#!` may be run."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=MODES[compression]) as tar:
        for path, content in files.items():
            body = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(path)
            info.size = len(body)
            info.mode = 0o755 if body.startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(body))
    return made.getvalue()


def zip_archive(files: Content) -> bytes:
    """A zip archive of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return made.getvalue()


def wheel(
    module: str, name: str, version: str, files: Content, programs: Mapping[str, str], requires: tuple[str, ...] = ()
) -> bytes:
    """A wheel of these files, with these programs."""
    info = f"{module}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {it}\n" for it in requires)
    inside: dict[str, str | bytes] = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: accord\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\n" + "".join(f"{it} = {programs[it]}\n" for it in programs),
    }
    rows = [f"{path},sha256={_digest(content)},{len(_bytes(content))}" for path, content in inside.items()]
    inside[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    return zip_archive(inside)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _digest(content: str | bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(_bytes(content)).digest()).rstrip(b"=").decode()
