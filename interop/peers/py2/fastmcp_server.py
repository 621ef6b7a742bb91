"""A server with the authorization server of `fastmcp`. Usage: python fastmcp_server.py PORT"""

import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token

port = int(sys.argv[1])
scopes = ["mcp:read"]
provider = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    required_scopes=scopes,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=scopes, default_scopes=scopes),
    revocation_options=RevocationOptions(enabled=True),
)
server = FastMCP("fastmcp", auth=provider)


@server.tool
def whoami() -> str:
    return " ".join(get_access_token().scopes)


uvicorn.run(server.http_app(path="/mcp"), host="127.0.0.1", port=port, log_level="error")
