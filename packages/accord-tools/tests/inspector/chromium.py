"""A headless Chromium, driven through its DevTools protocol: just what the tests of the page need."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

from tests.waiting import DEADLINE

PROGRAM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
KEYS = {"Enter": ("\r", 13), "Escape": ("", 27)}
"""What a key with a name types, and its number."""


class Chromium:
    """A browser with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="accord-chromium-")
        self.process = subprocess.Popen(
            [
                PROGRAM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
                f"--user-data-dir={self.profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = next(line for line in self.process.stderr if "DevTools listening on" in line)
        self.url = line.rsplit(" ", 1)[1].strip()

    def page(self, **options):
        return Page(self.url, **options)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=DEADLINE)
        self.process.stderr.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One page of the browser, in a context of its own."""

    def __init__(self, url, *, width=1280, height=800, dark=False):
        self.events = []
        self._number = 0
        self._session = None
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(url, max_size=None, open_timeout=DEADLINE))
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._target = target
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=DEADLINE))
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of this JavaScript; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, condition):
        """Wait until this JavaScript is true: looked at before each frame of the page."""
        wait = f"""new Promise((done, fail) => {{
            const end = performance.now() + {DEADLINE * 1000 - 5000};
            const look = () => {{
                let found;
                try {{ found = ({condition}); }} catch {{ found = false; }}
                if (found) done(true);
                else if (performance.now() > end) fail(new Error('still not so'));
                else setTimeout(look, 10);
            }};
            look();
        }})"""
        try:
            self.evaluate(wait)
        except AssertionError:
            raise AssertionError(f"still not so: {condition}; the page shows: {self.text()[:2000]}") from None

    def text(self, selector="body"):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((it) => it.innerText)")

    def press(self, key, *, control=False):
        text, code = KEYS.get(key, (key, ord(key.upper())) if len(key) == 1 else ("", 0))
        typed = {"text": text} if text and not control else {}
        pressed = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 if control else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **pressed, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, selector, number=0):
        self.evaluate(f"document.querySelectorAll({json.dumps(selector)})[{number}].click()")

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def problems(self):
        """What the page complained of: exceptions, refused requests, violations of its policy."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        return found

    def requested(self):
        """The origins that the page has sent requests to."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return {match[0] for url in urls if (match := re.match(r"[a-z]+:(//[^/]+)?", url))}

    def heap(self):
        """Bytes that the page's values take, after a collection."""
        self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]

    def close(self):
        self._session, session = None, self._session
        if session:
            self.call("Target.closeTarget", targetId=self._target)
        self._open.close()
