"""Takes a server through the contract of interop/README.md with version 1 of the Python SDK.

Usage: python client.py REVISION (URL | PROGRAM ARGUMENTS…). The revision is for the server to choose.
"""

import asyncio
import sys
from contextlib import asynccontextmanager

import features
from mcp import ClientSession, McpError, StdioServerParameters
from mcp import types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


def wire(result):
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    Error = McpError

    def __init__(self, read, write):
        self.logged, self.updated = asyncio.Queue(), asyncio.Queue()
        self.session = ClientSession(
            read,
            write,
            sampling_callback=self.on_sample,
            elicitation_callback=self.on_ask,
            list_roots_callback=self.on_roots,
            logging_callback=self.on_log,
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
        if isinstance(getattr(message, "root", None), types.ResourceUpdatedNotification):
            self.updated.put_nowait(str(message.root.params.uri))

    async def list(self, what):
        return wire(await getattr(self.session, f"list_{what}")())

    async def call(self, name, arguments, on_progress=None):
        return wire(await self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def call_until(self, name, arguments, heard):
        async def on_progress(progress, total, message):
            heard.set()

        # This version leaves it to the caller to tell the server, and keeps the id to itself.
        request = self.session._request_id
        task = asyncio.create_task(self.call(name, arguments, on_progress))
        await heard.wait()
        params = types.CancelledNotificationParams(requestId=request)
        note = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(note))
        task.cancel()

    async def read(self, uri):
        return wire(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments):
        return wire(await self.session.get_prompt(name, arguments))

    async def complete(self, prompt, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.session.complete(ref, {"name": argument, "value": value}))

    async def want_logs(self):
        await self.session.set_logging_level("info")

    @asynccontextmanager
    async def subscribed(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))
        yield
        await self.session.unsubscribe_resource(AnyUrl(uri))


def transport(target, *arguments):
    if not target.startswith("http"):
        return stdio_client(StdioServerParameters(command=target, args=list(arguments)))
    return sse_client(target) if target.endswith("/sse") else streamable_http_client(target)


async def main():
    async with transport(*sys.argv[2:]) as (read, write, *_):
        peer = Peer(read, write)
        async with peer.session:
            peer.revision = (await peer.session.initialize()).protocolVersion
            await features.run(peer)


asyncio.run(main())
