"""The contract of interop/README.md, served by version 1 of the Python SDK.

Usage: python server.py [--http PORT]
"""

import asyncio
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP("py1", log_level="ERROR")
low = server._mcp_server
subscribed: dict[str, object] = {}
counter = 0
cancellations = 0


class Sum(BaseModel):
    sum: int


class Person(BaseModel):
    name: str


@server.tool()
def echo(message: str) -> str:
    return message


@server.tool()
def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    raise ValueError("it failed")


@server.tool()
async def slow(ctx: Context, steps: int, hold: bool = False) -> str:
    global cancellations
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    if hold:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancellations += 1
            raise
    return "done"


@server.tool()
def cancelled() -> str:
    return str(cancellations)


@server.tool()
async def log(ctx: Context) -> str:
    await ctx.session.send_log_message("info", "a word", logger="demo", related_request_id=ctx.request_id)
    return "logged"


@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Person)
    return f"accept {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool()
async def think(ctx: Context) -> str:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return f"{answer.model}: {answer.content.text}"


@server.tool()
async def where(ctx: Context) -> str:
    result = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in result.roots)


@server.tool()
async def bump(ctx: Context) -> str:
    global counter
    counter += 1
    if session := subscribed.get("demo://counter"):
        await session.send_resource_updated("demo://counter")
    return str(counter)


@server.resource("demo://text", mime_type="text/plain")
def text() -> str:
    return "Hello, resource!"


@server.resource("demo://counter", name="counter", mime_type="text/plain")
def read_counter() -> str:
    return str(counter)


@server.resource("demo://item/{id}", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)])


@low.set_logging_level()
async def set_level(level):
    """Everything is logged at one level, so there is nothing to leave out."""


@low.subscribe_resource()
async def subscribe(uri):
    subscribed[str(uri)] = low.request_context.session


@low.unsubscribe_resource()
async def unsubscribe(uri):
    subscribed.pop(str(uri), None)


if sys.argv[1:2] == ["--http"]:
    app = server.streamable_http_app()
    app.routes.extend(server.sse_app().routes)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
else:
    server.run()
