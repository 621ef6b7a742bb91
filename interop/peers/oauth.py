"""What the logins with both versions of the Python SDK share."""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientMetadata


class MemoryStorage(TokenStorage):
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def provider(url, result):
    """A login whose user is the program that runs this one. `result` builds what the callback handler returns."""
    redirect_uri = "http://127.0.0.1:33419/callback"

    async def open_page(page):
        print(json.dumps({"visit": page}), flush=True)

    async def response():
        line = await asyncio.to_thread(sys.stdin.readline)
        query = parse_qs(urlsplit(line.strip()).query)
        return result(**{name: query[name][0] for name in ("code", "state", "iss") if name in query})

    metadata = OAuthClientMetadata(
        client_name="interop",
        redirect_uris=[redirect_uri],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
        application_type="native",
    )
    return OAuthClientProvider(url, metadata, MemoryStorage(), open_page, response)


async def check(call):
    """Calls a tool, then one that needs another scope. The SDK logs in by itself."""
    for feature, tool in (("login", "whoami"), ("step-up", "write")):
        try:
            result = await call(tool)
            line = {"feature": feature, "status": "ok", "text": result.content[0].text}
        except Exception as error:
            line = {"feature": feature, "status": "fail", "detail": repr(error)}
        print(json.dumps(line), flush=True)
