"""Logs in to a protected server with version 1 of the Python SDK. Usage: python login.py URL"""

import asyncio
import sys

import httpx
import oauth
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main(url):
    login = oauth.provider(url, lambda code, state=None, iss=None: (code, state))
    async with (
        httpx.AsyncClient(auth=login, timeout=30) as client,
        streamable_http_client(url, http_client=client) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        await oauth.check(session.call_tool)


asyncio.run(main(sys.argv[1]))
