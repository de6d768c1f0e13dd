"""A headless Chromium that is driven through a pipe: what a person does with a page, and what it shows.

The protocol is Chrome's own (DevTools), messages of JSON with a zero byte between; it needs nothing
but Python. ``python -m tests.visualization.browser`` takes the documentation's picture of a page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = next(filter(None, map(shutil.which, NAMES)), None)
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32}
#: In seconds: what takes longer hangs.
PATIENCE = 60
#: The browser reads from descriptor 3 and writes to 4.
LAUNCHER = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
for descriptor, pipe in zip((3, 4), pipes):
    os.dup2(pipe, descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one page; use it as a context manager."""

    def __init__(self, width=1400, height=1000):
        self._profile = tempfile.mkdtemp()
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        command = [
            EXECUTABLE,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={self._profile}",
            f"--window-size={width},{height}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._received = b""
        self._number = 0
        self._session = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        (page,) = [t for t in self._targets() if t["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)  # Without it the browser ends by itself.
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _targets(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.call("Target.getTargets")["targetInfos"]
            if any(target["type"] == "page" for target in found):
                return found
            time.sleep(0.1)
        raise TimeoutError("the browser opens no page")

    def call(self, method, **parameters):
        """Calls a method of the protocol; gives its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next(self):
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from], [], [], PATIENCE)
            part = os.read(self._from, 1 << 16) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))

    def open(self, path):
        """Opens a file and waits until its scripts have run."""
        self.call("Page.navigate", url=Path(path).absolute().as_uri())
        deadline = time.monotonic() + PATIENCE
        while self.run("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.05)

    def run(self, expression):
        """The value of an expression of JavaScript's in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def place(self, selector, x=0.5, y=0.5):
        """A point of an element, scrolled to, by fractions of its width and height."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();"
            "return [r.x, r.y, r.width, r.height]; })()"
        )
        return box[0] + x * box[2], box[1] + y * box[3]

    def hover(self, selector, x=0.5, y=0.5):
        """Moves the pointer there."""
        at = self.place(selector, x, y)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])

    def click(self, selector, x=0.5, y=0.5):
        """Presses the button of the mouse there."""
        at = self.place(selector, x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1
            )

    def press(self, key):
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key if key != " " else "Space",
                windowsVirtualKeyCode=KEYS[key],
            )

    def screenshot(self, path, **clip):
        """Writes the page, or a part of it, as a PNG."""
        part = {"clip": clip} if clip else {}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, **part)["data"]
        Path(path).write_bytes(base64.b64decode(image))


def picture(path):
    """The picture of a page in the documentation."""
    from examples import mm

    shape = (64, 64)
    page = mm.kernel.visualize(shape, shape, shape, BLOCK_SIZE_M=16)
    with tempfile.TemporaryDirectory() as folder, Browser(1320, 1000) as browser:
        page.save(Path(folder) / "mm.html")
        browser.open(Path(folder) / "mm.html")
        browser.hover("#grid canvas", 0.62, 0.4)
        browser.press("ArrowRight")
        end = browser.run("document.querySelector('footer').getBoundingClientRect().top")
        browser.screenshot(path, x=0, y=0, width=1320, height=end - 8, scale=0.75)


if __name__ == "__main__":
    picture("docs/images/page.png")
