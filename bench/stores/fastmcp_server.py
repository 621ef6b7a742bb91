"""fastmcp_server.py PORT REDIS_URL: the same task on FastMCP, with its worker in the same process (uvicorn + uvloop)."""
import os
import sys
import time

os.environ.setdefault("FASTMCP_LOG_LEVEL", "ERROR")
os.environ.setdefault("FASTMCP_SHOW_SERVER_BANNER", "false")
os.environ.setdefault("FASTMCP_CHECK_FOR_UPDATES", "off")

import uvicorn
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("bench")
# As many at once as the other server runs.
mcp.add_extension(TasksExtension(url=sys.argv[2], concurrency=64))


@mcp.tool(task=True, output_schema=None)
async def stamp() -> str:
    """When its first line ran, in microseconds."""
    return str(time.time_ns() // 1000)


app = mcp.http_app(path="/mcp", json_response=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
