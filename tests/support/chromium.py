"""chromium.py - a page in headless Chromium, driven by its DevTools protocol over a pipe.

    with Page(folder) as page:
        page.open("file:///...")
        page.value("document.title")

Each call ends after 30 s.  What the page threw, and what it asked of the network, is in .errors and .requests.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import time

SECONDS = 30


class Page:
    def __init__(self, folder, width=1200, height=800):
        self.errors, self.requests = [], []
        self.number, self.session, self.bytes, self.events = 0, None, b"", []
        there, ours = os.pipe()
        back, theirs = os.pipe()
        # Chromium wants exactly descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec 3<&%d 4>&%d; exec "$@"' % (there, theirs), "sh", "chromium", "--headless", "--no-sandbox",
             "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-networking",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir=" + os.path.join(folder, "chromium"),
             "--window-size=%d,%d" % (width, height), "about:blank"],
            pass_fds=(there, theirs), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(theirs)
        self.to, self.back = ours, back
        target = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"][0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)

    def message(self, until):
        while b"\0" not in self.bytes:
            if not select.select([self.back], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("chromium is silent")
            more = os.read(self.back, 1 << 16)
            if not more:
                raise RuntimeError("chromium has ended")
            self.bytes += more
        text, self.bytes = self.bytes.split(b"\0", 1)
        said = json.loads(text)
        method, given = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(given["exceptionDetails"].get("exception", {}).get("description") or str(given))
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method:
            self.events.append(method)
        return said

    def call(self, method, **given):
        until = time.monotonic() + SECONDS
        self.number += 1
        call = {"id": self.number, "method": method, "params": given}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.to, json.dumps(call).encode() + b"\0")
        while True:
            said = self.message(until)
            if said.get("id") == self.number:
                if "error" in said:
                    raise RuntimeError("%s: %s" % (method, said["error"]))
                return said["result"]

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url):
        """Another address of the same page too is loaded anew."""
        self.go("about:blank")
        self.go(url)
        self.settle()

    def go(self, url):
        """Until the page there is loaded: an event may still be of the one before."""
        until = time.monotonic() + SECONDS
        self.call("Page.navigate", url=url)
        while time.monotonic() < until:
            try:
                address, state = self.value("[location.href, document.readyState]")
                if state == "complete" and (address == "about:blank") == (url == "about:blank"):
                    return
            except RuntimeError:
                pass  # it was taken away meanwhile
            time.sleep(0.02)
        raise TimeoutError("does not load: " + url)

    def value(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(str(got["exceptionDetails"]))
        return got["result"].get("value")

    def settle(self):
        """After two frames all that was asked for has been drawn."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, x, y, *kinds):
        for kind in kinds or ("mouseMoved",):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" else "none",
                      clickCount=0 if kind == "mouseMoved" else 1)
        self.settle()

    def click(self, x, y):
        self.mouse(x, y, "mouseMoved", "mousePressed", "mouseReleased")

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def dark(self, is_dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
        self.settle()

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


def is_here():
    return shutil.which("chromium") is not None
