"""Calls every tool of a server with version 2 of the Python SDK, and prints what happened as one line of JSON.

Usage: python client.py PLAN (URL | PROGRAM ARGUMENTS…). PLAN: {"servers": […], "arguments": {tool: {…}}}
"""

import asyncio
import json
import os
import sys
import time
import warnings

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

warnings.simplefilter("ignore")
FORMATS = {"email": "ada@example.com", "date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "uri": "https://example.com/"}


def value(field):
    """The first value that a schema allows."""
    for name in ("default", "const"):
        if name in field:
            return field[name]
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", field.get("anyOf", []))]
    if choices:
        return choices[0]
    plain = {"boolean": True, "integer": field.get("minimum", 1), "number": field.get("minimum", 1), "array": []}
    return plain.get(field.get("type"), FORMATS.get(field.get("format"), "Ada"))


class Trial:
    def __init__(self, plan, target):
        self.plan, self.asked, self.current, self.lists = plan, {}, "", 0
        self.client = Client(
            target,
            elicitation_callback=self.on_ask,
            sampling_callback=self.on_sample,
            list_roots_callback=self.on_roots,
            read_timeout_seconds=120,
        )

    async def on_ask(self, context, params):
        self.asked.setdefault(self.current, []).append(params.message)
        schema = getattr(params, "requested_schema", None) or {}
        content = {name: value(field) for name, field in schema.get("properties", {}).items()}
        return types.ElicitResult(action="accept", content=content)

    async def on_sample(self, context, params):
        content = types.TextContent(type="text", text="42")
        return types.CreateMessageResult(role="assistant", content=content, model="deep-thought")

    async def on_roots(self, context):
        return types.ListRootsResult(roots=[])

    async def list(self):
        self.lists += 1
        tools, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            tools += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return tools

    async def call(self, name):
        self.current = name
        try:
            result = await self.client.call_tool(name, self.plan["arguments"].get(name, {}), read_timeout_seconds=60)
        except Exception as error:  # Whatever the SDK raises is the outcome of this call.
            return {"error": True, "text": str(error)}
        text = "\n".join(getattr(part, "text", "") or "" for part in result.content)
        return {"error": bool(result.is_error), "text": text[:2000]}

    async def run(self):
        async with self.client:
            deadline, tools = time.monotonic() + 300, await self.list()
            while time.monotonic() < deadline:
                if all(any(name.startswith(f"{server}__") for name in tools) for server in self.plan["servers"]):
                    break
                await asyncio.sleep(5)
                tools = await self.list()
            calls = {name: await self.call(name) for name in tools}
        print(json.dumps({"tools": tools, "lists": self.lists, "calls": calls, "asked": self.asked}))


async def main():
    plan, first, *arguments = json.loads(sys.argv[1]), *sys.argv[2:]
    if not first.startswith("http"):
        return await Trial(plan, StdioServerParameters(command=first, args=arguments, env=dict(os.environ))).run()
    headers = {"Authorization": f"Bearer {os.environ['TRIAL_TOKEN']}"} if os.environ.get("TRIAL_TOKEN") else {}
    async with create_mcp_http_client(headers=headers) as http:
        await Trial(plan, streamable_http_client(first, http_client=http)).run()


asyncio.run(main())
