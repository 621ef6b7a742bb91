"""The contract of interop/README.md, served by version 2 of the Python SDK.

Usage: python server.py [--http PORT]
"""

import asyncio
import sys
import warnings
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    CreateMessageResult,
    EmptyResult,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

warnings.simplefilter("ignore")
server = MCPServer("py2", version="1", log_level="ERROR")
low = server._lowlevel_server
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
    raise ToolError("it failed")


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
    await ctx.log("info", "a word", logger_name="demo")
    return "logged"


# Asking is written once; the SDK asks as the revision has it.


async def who():
    return Elicit("Who are you?", Person)


@server.tool()
async def ask(answer: Annotated[ElicitationResult[Person], Resolve(who)]) -> str:
    return f"accept {answer.data.name}" if answer.action == "accept" else answer.action


async def thought():
    question = TextContent(type="text", text="What is six times seven?")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=100)


@server.tool()
async def think(answer: Annotated[CreateMessageResult, Resolve(thought)]) -> str:
    return f"{answer.model}: {answer.content.text}"


async def folders():
    return ListRoots()


@server.tool()
async def where(answer: Annotated[ListRootsResult, Resolve(folders)]) -> str:
    return " ".join(str(root.uri) for root in answer.roots)


@server.tool()
async def bump(ctx: Context) -> str:
    global counter
    counter += 1
    await ctx.notify_resource_updated("demo://counter")
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


async def set_level(ctx, params):
    """Everything is logged at one level, so there is nothing to leave out."""
    return EmptyResult()


async def subscribe(ctx, params):
    subscribed[str(params.uri)] = ctx.session
    return EmptyResult()


async def unsubscribe(ctx, params):
    subscribed.pop(str(params.uri), None)
    return EmptyResult()


low.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
low.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)

if sys.argv[1:2] == ["--http"]:
    app = server.streamable_http_app()
    app.routes.extend(server.sse_app().routes)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
else:
    server.run()
