"""What each feature of the contract has to do, from the side of a Python client of either version.

Prints one line of JSON per feature, as `interop-client` does. Both versions look the same here: see `Peer`.
"""

import asyncio
import json
from typing import Any, Protocol

PATIENCE = 10
TOOLS = ["add", "ask", "bump", "cancelled", "echo", "fail", "log", "slow", "think", "where"]


class Peer(Protocol):
    """A connected client. Results are as on the wire."""

    revision: str
    logged: asyncio.Queue
    updated: asyncio.Queue
    Error: type[Exception]

    async def list(self, what: str) -> dict[str, Any]: ...
    async def call(self, name: str, arguments: dict[str, Any], on_progress=None) -> dict[str, Any]: ...
    async def call_until(self, name: str, arguments: dict[str, Any], heard: asyncio.Event) -> None: ...
    async def read(self, uri: str) -> dict[str, Any]: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]: ...
    async def complete(self, prompt: str, argument: str, value: str) -> dict[str, Any]: ...
    async def want_logs(self) -> None: ...
    def subscribed(self, uri: str): ...


class Wrong(Exception):
    pass


def same(found, expected):
    if found != expected:
        raise Wrong(f"expected {expected!r}, got {found!r}")


class Features:
    def __init__(self, peer: Peer):
        self.peer = peer

    async def text(self, name, arguments=None):
        result = await self.peer.call(name, arguments or {})
        text = result["content"][0]["text"]
        if result.get("isError"):
            raise Wrong(text)
        return text

    async def reads(self, uri, text):
        result = await self.peer.read(uri)
        same([contents.get("text") for contents in result["contents"]], [text])

    async def list(self):
        result = await self.peer.list("tools")
        same(sorted(tool["name"] for tool in result["tools"]), TOOLS)

    async def call(self):
        same(await self.text("echo", {"message": "hé, 世界"}), "hé, 世界")

    async def structured(self):
        """Revisions before 2025-06-18 have the same as text."""
        result = await self.peer.call("add", {"a": 2, "b": 3})
        is_known = self.peer.revision >= "2025-06-18"
        same(result.get("structuredContent") if is_known else json.loads(result["content"][0]["text"]), {"sum": 5})

    async def error(self):
        result = await self.peer.call("fail", {})
        same((result.get("isError"), "it failed" in result["content"][0]["text"]), (True, True))
        try:
            await self.peer.read("demo://nothing")
        except self.peer.Error:
            return
        raise Wrong("there is no such resource")

    async def progress(self):
        heard = []

        async def on_progress(progress, total, message):
            heard.append((progress, total))

        result = await self.peer.call("slow", {"steps": 3}, on_progress)
        same(result["content"][0]["text"], "done")
        same(heard, [(1, 3), (2, 3), (3, 3)])

    async def cancel(self):
        before = int(await self.text("cancelled"))
        await self.peer.call_until("slow", {"steps": 1, "hold": True}, asyncio.Event())
        # The server has the time limit of this feature to notice.
        while int(await self.text("cancelled")) != before + 1:
            await asyncio.sleep(0.02)

    async def log(self):
        await self.peer.want_logs()
        same(await self.text("log"), "logged")
        same(await self.peer.logged.get(), "a word")

    async def resources(self):
        result = await self.peer.list("resources")
        same(sorted(resource["uri"] for resource in result["resources"]), ["demo://counter", "demo://text"])
        await self.reads("demo://text", "Hello, resource!")

    async def templates(self):
        result = await self.peer.list("resource_templates")
        same([template["uriTemplate"] for template in result["resourceTemplates"]], ["demo://item/{id}"])
        await self.reads("demo://item/7", "item 7")

    async def subscribe(self):
        async with self.peer.subscribed("demo://counter"):
            counter = await self.text("bump")
            same(await self.peer.updated.get(), "demo://counter")
            await self.reads("demo://counter", counter)

    async def prompts(self):
        result = await self.peer.list("prompts")
        same([prompt["name"] for prompt in result["prompts"]], ["greet"])
        result = await self.peer.prompt("greet", {"name": "Ada"})
        same([message["content"]["text"] for message in result["messages"]], ["Hello, Ada!"])

    async def completion(self):
        result = await self.peer.complete("greet", "name", "A")
        same(result["completion"]["values"], ["Ada", "Alan"])

    async def sampling(self):
        same(await self.text("think"), "deep-thought: 42")

    async def elicitation(self):
        same(await self.text("ask"), "accept Ada")

    async def roots(self):
        same((await self.text("where")).rstrip("/"), "file:///tmp")


FEATURES = [name for name in vars(Features) if name not in ("__init__", "text", "reads") and not name.startswith("__")]


async def run(peer: Peer):
    print(json.dumps({"revision": peer.revision}), flush=True)
    for feature in FEATURES:
        found = {"feature": feature, "status": "ok"}
        try:
            async with asyncio.timeout(PATIENCE):
                await getattr(Features(peer), feature)()
        except TimeoutError:
            found |= {"status": "fail", "detail": f"nothing within {PATIENCE} s"}
        except Exception as error:
            found |= {"status": "fail", "detail": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)
