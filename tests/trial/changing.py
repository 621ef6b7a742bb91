"""A server on the Python SDK whose only tool is described by a file.

Usage: python changing.py FILE
"""

import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("changing")


def greet(name: str) -> str:
    return f"Hello, {name}!"


server.add_tool(greet, description=Path(sys.argv[1]).read_text())
server.run("stdio")
