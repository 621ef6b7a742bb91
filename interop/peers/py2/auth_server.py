"""A server with the authorization server of version 2 of the Python SDK. Usage: python auth_server.py PORT"""

import sys

import memory_provider
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.mcpserver import MCPServer

port = int(sys.argv[1])
server = MCPServer(
    "py2",
    auth=memory_provider.settings(port),
    auth_server_provider=memory_provider.MemoryProvider(),
    log_level="ERROR",
)


@server.tool()
def whoami() -> str:
    return " ".join(get_access_token().scopes)


uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")
