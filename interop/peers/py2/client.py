"""Takes a server through the contract of interop/README.md with version 2 of the Python SDK.

Usage: python client.py REVISION (URL | PROGRAM ARGUMENTS…). A legacy revision is for the server to choose; `any` is
for both to find.
"""

import asyncio
import sys
import warnings
from contextlib import asynccontextmanager

import features
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

warnings.simplefilter("ignore")
MODERN = "2026-07-28"


def wire(result):
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    Error = MCPError

    def __init__(self, revision, server):
        self.logged, self.updated = asyncio.Queue(), asyncio.Queue()
        self.client = Client(
            server,
            mode={"any": "auto", MODERN: MODERN}.get(revision, "legacy"),
            sampling_callback=self.on_sample,
            elicitation_callback=self.on_ask,
            list_roots_callback=self.on_roots,
            logging_callback=self.on_log,
            log_level="info",
            message_handler=self.on_message,
        )

    async def on_sample(self, context, params):
        content = types.TextContent(type="text", text="42")
        return types.CreateMessageResult(role="assistant", content=content, model="deep-thought")

    async def on_ask(self, context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def on_roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp")])

    async def on_log(self, params):
        self.logged.put_nowait(params.data)

    async def on_message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.put_nowait(str(message.params.uri))

    async def list(self, what):
        return wire(await getattr(self.client, f"list_{what}")())

    async def call(self, name, arguments, on_progress=None):
        return wire(await self.client.call_tool(name, arguments, progress_callback=on_progress))

    async def call_until(self, name, arguments, heard):
        async def on_progress(progress, total, message):
            heard.set()

        task = asyncio.create_task(self.call(name, arguments, on_progress))
        await heard.wait()
        task.cancel()

    async def read(self, uri):
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name, arguments):
        return wire(await self.client.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.client.complete(ref, {"name": argument, "value": value}))

    async def want_logs(self):
        if self.revision < MODERN:
            await self.client.set_logging_level("info")

    @asynccontextmanager
    async def subscribed(self, uri):
        if self.revision >= MODERN:
            async with self.client.listen(resource_subscriptions=[uri]):
                yield
            return
        await self.client.subscribe_resource(uri)
        yield
        await self.client.unsubscribe_resource(uri)


def target(first, *arguments):
    if not first.startswith("http"):
        return StdioServerParameters(command=first, args=list(arguments))
    return sse_client(first) if first.endswith("/sse") else first


async def main():
    peer = Peer(sys.argv[1], target(*sys.argv[2:]))
    async with peer.client:
        peer.revision = peer.client.protocol_version
        await features.run(peer)


asyncio.run(main())
