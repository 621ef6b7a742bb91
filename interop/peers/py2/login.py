"""Logs in to a protected server with version 2 of the Python SDK. Usage: python login.py URL"""

import asyncio
import sys

import httpx2
import oauth
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client


async def main(url):
    login = oauth.provider(url, AuthorizationCodeResult)
    async with httpx2.AsyncClient(auth=login, timeout=30) as http_client:
        async with Client(streamable_http_client(url, http_client=http_client), mode="auto") as client:
            await oauth.check(client.call_tool)


asyncio.run(main(sys.argv[1]))
