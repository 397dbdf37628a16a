"""A headless Firefox, controlled over WebDriver BiDi: commands over a WebSocket, without a driver program."""

import asyncio
import base64
import itertools
import json
import re
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

FIREFOX = Path(__file__).parents[3] / "scripts" / "firefox.sh"
PATIENCE = 40.0  # seconds
START = 120.0  # seconds for a start with a new profile, which takes 5 on a machine that does nothing else

# Nothing that needs the internet, and no questions at the first start.
QUIET: Mapping[str, bool | int | str] = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.systemAddon.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "permissions.default.desktop-notification": 1,  # allowed, without asking
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "termsofuse.bypassNotification": True,
    "toolkit.telemetry.enabled": False,
}


# Messages of the browser itself when a page is left before its socket is open.
LEFT = re.compile(r"Firefox can.t establish a connection to the server at ws|The connection to ws\S+ was interrupted")


class NoFirefox(Exception):
    """There is no Firefox; the message says how to get one."""


class CommandFailed(Exception):
    """Firefox refused a command, or a script threw."""


def find_firefox() -> str:
    """Return the path of a Firefox; install it if possible."""
    asked = subprocess.run([FIREFOX], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise NoFirefox(asked.stderr.strip())
    return asked.stdout.strip()


class Tab:
    """One tab, and the errors that its pages logged."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._id = ""
        self.complaints: list[str] = []

    async def open(self) -> None:
        """Begin a session in the tab that is there."""
        await self._command("session.new", capabilities={})
        await self._command("session.subscribe", events=["log.entryAdded"])
        self._id = (await self._command("browsingContext.getTree"))["contexts"][0]["context"]

    async def goto(self, address: str) -> None:
        """Load a page."""
        await self._command("browsingContext.navigate", context=self._id, url=address, wait="complete")

    async def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        await self._command("browsingContext.setViewport", context=self._id, viewport=size)

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression, which may be a promise, as JSON."""
        text = f"(async () => JSON.stringify((await ({script})) ?? null))()"
        target = {"context": self._id}
        said = await self._command(
            "script.evaluate", expression=text, target=target, awaitPromise=True, userActivation=True
        )
        if said["type"] != "success":
            raise CommandFailed(said["exceptionDetails"]["text"])
        return json.loads(said["result"]["value"])

    async def eventually(self, script: str, seconds: float = PATIENCE) -> Any:
        """Return the value of an expression as soon as it is true; the page may load meanwhile."""
        value, problem = None, ""
        try:
            async with asyncio.timeout(seconds):
                while not value:
                    try:
                        value = await self.evaluate(script)
                    except CommandFailed as error:
                        problem = str(error)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = await self.evaluate("document.body.innerText.slice(0, 2000)")
            raise AssertionError(f"never true: {script}\n{problem}\n{shown}\n{self.complaints}") from None
        return value

    async def click(self, name: str, inside: str = "body") -> None:
        """Click on a button by its text."""
        find = f"[...document.querySelectorAll({json.dumps(inside)})].flatMap(it => [...it.querySelectorAll('button')])"
        find += f".find(it => it.innerText.trim() === {json.dumps(name)} && !it.disabled)"
        await self.eventually(f"{find} != null")
        await self.evaluate(f"{find}.click()")

    async def shoot(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode((await self._command("browsingContext.captureScreenshot", context=self._id))["data"])

    async def close(self) -> None:
        await self._command("browser.close")

    async def _command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        async with asyncio.timeout(PATIENCE):
            return await self._waiting[number]

    async def listen(self) -> None:
        """Take answers and events until Firefox is closed."""
        async for text in self._socket:
            said = json.loads(text)
            if said["type"] == "event":
                entry = said["params"]
                if entry["level"] in ("error", "warn") and not LEFT.match(entry["text"] or ""):
                    self.complaints.append(f"{entry['level']}: {entry['text']}")
            elif said["type"] == "error":
                self._waiting.pop(said["id"]).set_exception(CommandFailed(said["message"]))
            else:
                self._waiting.pop(said["id"]).set_result(said["result"])


@asynccontextmanager
async def firefox(folder: Path, preferences: Mapping[str, bool | int | str]) -> AsyncIterator[Tab]:
    """Start a Firefox with a profile of its own."""
    profile = folder / "profile"
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in (QUIET | preferences).items()]
    (profile / "user.js").write_text("\n".join(lines))
    process = await asyncio.create_subprocess_exec(
        find_firefox(),
        "--headless",
        "--no-remote",
        "--profile",
        str(profile),
        "--remote-debugging-port=0",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1", "TZ": "UTC"},
    )
    draining: list[asyncio.Task[Any]] = []
    try:
        address = await _find_address(process)
        assert process.stderr is not None
        draining.append(asyncio.create_task(process.stderr.read()))  # a full pipe would stop it
        async with connect(f"{address}/session", max_size=2**26) as socket:
            tab = Tab(socket)
            draining.append(asyncio.create_task(tab.listen()))
            await tab.open()
            yield tab
            await tab.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)


async def _find_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said: list[str] = []
    async with asyncio.timeout(START):
        while line := (await process.stderr.readline()).decode():
            said.append(line)
            if "WebDriver BiDi listening on " in line:
                return line.rpartition("listening on ")[2].strip()
    raise AssertionError(f"Firefox did not start: {''.join(said)}")
