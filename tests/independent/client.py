"""A client of its own, written from the specification and sharing nothing with the crates.

    client.py hello PROGRAM [ARGUMENT ...]
    client.py everything PROGRAM [ARGUMENT ...]

Starts the program once per conversation, talks to it in every revision, and checks every line it writes. Ends with the
number of checks, or with the first one that failed and the conversation that led to it. Needs nothing but Python 3.
"""

import base64
import json
import queue
import subprocess
import sys
import threading

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
KEY = "io.modelcontextprotocol/"
PATIENCE = 20  # seconds until silence counts as a failure

checks = 0


class Failure(Exception):
    pass


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        raise Failure(what)


def equal(actual, expected, what):
    check(json_type(actual) == json_type(expected) and actual == expected, f"{what}: expected {expected!r}, got {actual!r}")


def json_type(value):
    # In Python, True equals 1.
    return "bool" if isinstance(value, bool) else type(value).__name__


def is_id(value):
    return json_type(value) in ("int", "str")


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError(f"a member occurs twice in {names}")
    return dict(pairs)


def no_constants(name):
    raise ValueError(f"{name} is not JSON")


class Server:
    """The program, and everything said between it and us."""

    def __init__(self, command, revision, capabilities=None):
        self.revision = revision
        self.modern = revision == MODERN
        self.capabilities = capabilities or {}
        self.last_id = 0
        self.said = []
        self.inbox = []
        self.tokens = {}  # the progress token of each request that has one
        self.over = []  # the tokens of requests that are answered or cancelled
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.close()
            return
        self.process.kill()
        if isinstance(error, Failure):
            raise Failure("\n".join([f"in {self.revision}: {error}", *self.said[-30:]])) from None

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, frame):
        line = json.dumps(frame, ensure_ascii=False)
        self.said.append("> " + line)
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def take(self):
        """The next frame, checked as far as every frame can be."""
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure("the server keeps silent") from None
        check(line is not None, "the server closed its output")
        self.said.append("< " + line.decode(errors="replace").rstrip("\n"))
        check(line.endswith(b"\n"), "a line without its end")
        try:
            text = line.decode("utf-8")
            frame = json.loads(text, object_pairs_hook=no_duplicates, parse_constant=no_constants)
        except ValueError as error:
            raise Failure(f"no JSON: {error}") from None
        if isinstance(frame, list):
            equal(self.revision, "2025-03-26", "the only revision with batches")
            check(frame, "an empty batch")
            for item in frame:
                self.check_frame(item)
        else:
            self.check_frame(frame)
        return frame

    def check_frame(self, frame):
        equal(json_type(frame), "dict", "a frame")
        equal(frame.get("jsonrpc"), "2.0", "jsonrpc")
        if "method" in frame:
            check(set(frame) <= {"jsonrpc", "id", "method", "params"}, "strange members in a request or notification")
            equal(json_type(frame["method"]), "str", "method")
            equal(json_type(frame.get("params", {})), "dict", "params")
            if "id" in frame:
                check(not self.modern, "a modern server sends no requests")
                check(is_id(frame["id"]), "the id of a request is a string or an integer")
            if frame["method"] == "notifications/progress":
                token = frame["params"].get("progressToken")
                check(token in self.tokens.values(), "progress that was asked for")
                check(token not in self.over, "progress of a request that is not over")
            return
        check(("result" in frame) != ("error" in frame), "a response has a result or an error")
        check(set(frame) <= {"jsonrpc", "id", "result", "error"}, "strange members in a response")
        if "error" in frame:
            error = frame["error"]
            equal(json_type(error), "dict", "error")
            check(set(error) <= {"code", "message", "data"}, "strange members in an error")
            equal(json_type(error.get("code")), "int", "error.code")
            equal(json_type(error.get("message")), "str", "error.message")
        else:
            equal(json_type(frame["result"]), "dict", "result")
            self.check_result(frame["result"])
        check("id" in frame or "error" in frame, "a result without an id")
        check("id" not in frame or is_id(frame["id"]), "the id of a response is a string or an integer")

    def check_result(self, result):
        if self.modern:
            check(result.get("resultType") in ("complete", "input_required"), "every modern result has a resultType")
            info = result.get("_meta", {}).get(KEY + "serverInfo")
            equal(json_type(info), "dict", "serverInfo in every modern result")
            for name in ("name", "version"):
                equal(json_type(info.get(name)), "str", f"serverInfo.{name}")
        else:
            for name in ("resultType", "ttlMs", "cacheScope"):
                check(name not in result, f"{name} is not part of {self.revision}")

    def response(self, request_id):
        """The response to a request. What comes before it is kept."""
        while True:
            frame = self.take()
            if isinstance(frame, dict) and "method" not in frame and "id" in frame:
                equal(frame["id"], request_id, "the id of the response")
                if request_id in self.tokens:
                    self.over.append(self.tokens[request_id])
                return frame
            self.inbox.append(frame)

    def start(self, method, params=None, meta=None, request_id=None, capabilities=None):
        self.last_id += 1
        request_id = self.last_id if request_id is None else request_id
        params = dict(params or {})
        meta = dict(meta or {})
        if "progressToken" in meta:
            self.tokens[request_id] = meta["progressToken"]
        if self.modern:
            meta.setdefault(KEY + "protocolVersion", MODERN)
            meta.setdefault(KEY + "clientCapabilities", self.capabilities if capabilities is None else capabilities)
            meta.setdefault(KEY + "clientInfo", {"name": "independent", "version": "1"})
        if meta:
            params["_meta"] = meta
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params or self.modern:
            frame["params"] = params
        self.send(frame)
        return request_id

    def ask(self, method, params=None, **options):
        """Sends a request and returns its result."""
        frame = self.response(self.start(method, params, **options))
        check("result" in frame, f"{method} failed: {frame.get('error')}")
        return frame["result"]

    def refused(self, method, params, code, **options):
        """Sends a request and returns the error it has to end in."""
        frame = self.response(self.start(method, params, **options))
        check("error" in frame, f"{method} succeeded")
        equal(frame["error"]["code"], code, f"the code {method} is refused with")
        return frame["error"]

    def tell(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def told(self, method):
        """Takes what was told by this method, of what is kept."""
        found = [frame for frame in self.inbox if isinstance(frame, dict) and frame.get("method") == method]
        self.inbox = [frame for frame in self.inbox if frame not in found]
        return found

    def wait(self, method):
        """The next request or notification of this method. What comes before it is kept."""
        while True:
            found = self.told(method)
            if found:
                self.inbox = found[1:] + self.inbox
                return found[0]
            self.inbox.append(self.take())

    def open(self):
        """The handshake of the legacy revisions; what the modern one has instead."""
        if self.modern:
            result = self.ask("server/discover")
            check(MODERN in result["supportedVersions"], "a server supports what it answers")
            self.check_cacheable(result)
        else:
            info = {"name": "independent", "version": "1"}
            params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
            result = self.ask("initialize", params)
            equal(result.get("protocolVersion"), self.revision, "the version that is supported is the one agreed on")
            for name in ("name", "version"):
                equal(json_type(result["serverInfo"].get(name)), "str", f"serverInfo.{name}")
            self.tell("notifications/initialized")
        equal(json_type(result.get("capabilities")), "dict", "capabilities")
        for name, value in result["capabilities"].items():
            equal(json_type(value), "dict", f"capabilities.{name}")
        check("completions" not in result["capabilities"] or self.revision >= "2025-03-26", "completions came later")
        return result["capabilities"]

    def check_cacheable(self, result):
        equal(json_type(result.get("ttlMs")), "int", "ttlMs")
        check(result["ttlMs"] >= 0, "ttlMs is not negative")
        check(result.get("cacheScope") in ("public", "private"), "cacheScope is public or private")

    def list(self, method, member):
        """All pages of a list."""
        entries, params, seen = [], {}, set()
        while True:
            result = self.ask(method, params)
            if self.modern:
                self.check_cacheable(result)
            entries += result[member]
            if "nextCursor" not in result:
                return entries
            cursor = result["nextCursor"]
            equal(json_type(cursor), "str", "nextCursor")
            check(cursor not in seen, "a cursor comes back")
            seen.add(cursor)
            params = {"cursor": cursor}

    def alive(self):
        self.ask("server/discover" if self.modern else "ping")

    def call(self, name, arguments=None, **options):
        params = {"name": name, **({"arguments": arguments} if arguments is not None else {})}
        result = self.ask("tools/call", params, **options)
        if result.get("resultType", "complete") == "complete":
            self.check_called(result)
        return result

    def check_called(self, result):
        equal(json_type(result.get("content")), "list", "content")
        for block in result["content"]:
            self.check_block(block)
        check("structuredContent" not in result or self.revision >= "2025-06-18", "structuredContent came later")
        check(json_type(result.get("isError", False)) == "bool", "isError is a boolean")

    def check_block(self, block):
        since = {"text": "2024-11-05", "image": "2024-11-05", "resource": "2024-11-05", "audio": "2025-03-26",
                 "resource_link": "2025-06-18"}
        kind = block.get("type")
        check(kind in since and self.revision >= since[kind], f"content of type {kind} in {self.revision}")
        check("_meta" not in block or self.revision >= "2025-06-18", "_meta of content came later")
        if kind == "text":
            equal(json_type(block.get("text")), "str", "text")
        if kind in ("image", "audio"):
            base64.b64decode(block["data"], validate=True)
            equal(json_type(block.get("mimeType")), "str", "mimeType")

    def text(self, result):
        return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")

    def close(self):
        """Closes the input. Nothing that was not asked for may be left, and the program has to end well."""
        self.process.stdin.close()
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise Failure("the server outlives its input") from None
            if line is None:
                break
            raise Failure(f"said after everything was answered: {line!r}")
        equal(self.process.wait(PATIENCE), 0, "the exit code")
        equal(self.inbox, [], "what nobody asked for")


def tools(server):
    since = {"title": "2025-06-18", "outputSchema": "2025-06-18", "annotations": "2025-03-26", "_meta": "2025-06-18",
             "icons": "2025-11-25"}
    listed = server.list("tools/list", "tools")
    names = [tool["name"] for tool in listed]
    equal(len(names), len(set(names)), "tool names occur once")
    for tool in listed:
        equal(tool["inputSchema"].get("type"), "object", f"the input of {tool['name']}")
        for member in tool:
            known = member in ("name", "description", "inputSchema") or server.revision >= since.get(member, "never")
            check(known, f"{member} of a tool in {server.revision}")
    return names


def refusals(server):
    """What every server refuses, and how."""
    server.refused("bogus/method", {}, -32601)
    server.refused("tools/call", {"name": "no such tool"}, -32602)
    server.refused("tools/call", {"name": 5}, -32602)
    error = server.response(server.start("tools/call", {}, request_id="text \u00e9 \U0001faa2"))
    equal(error["error"]["code"], -32602, "a call without a name")
    server.tell("notifications/unheard-of", {"anything": [1, None]})
    server.tell("notifications/cancelled", {"requestId": "never sent"})
    server.alive()
    if server.modern:
        version = {KEY + "protocolVersion": "1900-01-01"}
        data = server.refused("tools/list", {}, -32022, meta=version)["data"]
        equal(data.get("requested"), "1900-01-01", "data.requested")
        check(MODERN in data["supported"], "data.supported")
        server.refused("ping", {}, -32601)
        # A request that does not describe itself, on a connection where others did.
        server.send({"jsonrpc": "2.0", "id": "bare", "method": "tools/list", "params": {}})
        equal(server.response("bare")["error"]["code"], -32602, "a request without _meta")


def hello(command):
    for revision in [*LEGACY, MODERN]:
        with Server(command, revision) as server:
            check("tools" in server.open(), "the tools are declared")
            equal(tools(server), ["add"], "the tools")
            result = server.call("add", {"a": 2**53, "b": -1})
            equal(server.text(result), str(2**53 - 1), "the sum")
            wrong = server.call("add", {"a": "one", "b": 2})
            equal(wrong.get("isError"), True, "arguments of the wrong type")
            refusals(server)
    # A version from nowhere is countered with the newest one.
    with Server(command, "2025-11-25") as server:
        params = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "i", "version": "1"}}
        equal(server.ask("initialize", params)["protocolVersion"], "2025-11-25", "the version offered instead")


def content(server):
    text = "two\nlines, \u00e9 \U0001faa2 \u2028 \"quoted\" \\"
    equal(server.text(server.call("echo", {"message": text})), text, "what was said comes back")
    kinds = [block["type"] for block in server.call("mixed")["content"]]
    equal(len(kinds), 5, "blocks are replaced, not dropped")
    weather = server.call("weather", {"city": "Oslo"})
    equal(json.loads(server.text(weather)), {"city": "Oslo", "celsius": 21.5}, "the text of structured content")
    if server.revision >= "2025-06-18":
        equal(weather["structuredContent"], {"city": "Oslo", "celsius": 21.5}, "structured content")
    failed = server.call("fail")
    equal((failed.get("isError"), server.text(failed)), (True, "it did not work"), "a tool that fails")
    server.refused("tools/call", {"name": "refuse"}, -32602)
    server.refused("tools/call", {"name": "panic"}, -32603)


def progress(server):
    for token in ("a token", 7_000):
        server.call("progress", meta={"progressToken": token})
        told = [frame["params"] for frame in server.told("notifications/progress")]
        equal([step["progress"] for step in told], [1, 2, 3], "progress grows")
        for step in told:
            equal(step["progressToken"], token, "the token comes back as it was")
            check("message" not in step or server.revision >= "2025-03-26", "the message of progress came later")
    server.call("progress")
    equal(server.told("notifications/progress"), [], "no token, no progress")


def cancellation(server):
    slow = server.start("tools/call", {"name": "slow"}, meta={"progressToken": "slow"})
    server.wait("notifications/progress")
    server.over.append("slow")
    server.tell("notifications/cancelled", {"requestId": slow, "reason": "enough"})
    # A response to the cancelled request would be taken for the answer to this one.
    server.alive()


def logging(server):
    if server.modern:
        server.call("log")
        equal(server.told("notifications/message"), [], "no level, no messages")
        server.call("log", meta={KEY + "logLevel": "warning"})
    else:
        server.ask("logging/setLevel", {"level": "warning"})
        server.call("log")
    levels = [frame["params"]["level"] for frame in server.told("notifications/message")]
    equal(levels, ["warning", "error"], "messages below the level stay away")


def elicitation_over_requests(server):
    for answer, text in [
        ({"action": "accept", "content": {"sure": True}}, "deleted"),
        ({"action": "accept", "content": {"sure": False}}, "kept"),
        ({"action": "decline"}, "the user declined"),
        ({"action": "cancel"}, "the user cancelled"),
    ]:
        call = server.start("tools/call", {"name": "ask"})
        question = server.wait("elicitation/create")
        check_question(question["params"])
        server.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        result = server.response(call)["result"]
        server.check_called(result)
        equal(server.text(result), text, "what became of the answer")


def elicitation_over_results(server):
    for answer, text in [
        ({"action": "accept", "content": {"sure": True}}, "deleted"),
        ({"action": "decline"}, "the user declined"),
    ]:
        required = server.call("ask")
        equal(required["resultType"], "input_required", "the result of a call that asks")
        equal(json_type(required["requestState"]), "str", "requestState")
        ((key, question),) = required["inputRequests"].items()
        equal(question["method"], "elicitation/create", "the question")
        check_question(question["params"])
        retry = {"name": "ask", "inputResponses": {key: answer}, "requestState": required["requestState"]}
        result = server.ask("tools/call", retry)
        equal((result["resultType"], server.text(result)), ("complete", text), "what became of the answer")
    # The state is the server's own, bound to the call it was made for.
    state = server.call("ask")["requestState"]
    forged = {"name": "ask", "inputResponses": {}, "requestState": state[:-2] + ("AA" if state[-2:] != "AA" else "BB")}
    server.refused("tools/call", forged, -32602)
    server.refused("tools/call", {"name": "ask_again", "inputResponses": {}, "requestState": state}, -32602)
    data = server.refused("tools/call", {"name": "ask"}, -32021, capabilities={})["data"]
    check("elicitation" in data["requiredCapabilities"], "what the client would have to declare")


def check_question(params):
    equal(json_type(params.get("message")), "str", "message")
    schema = params["requestedSchema"]
    equal(schema["type"], "object", "the type of a form")
    equal(schema["properties"]["sure"]["type"], "boolean", "the type of a field")
    equal(schema["required"], ["sure"], "the required fields")


def resources(server):
    uris = [resource["uri"] for resource in server.list("resources/list", "resources")]
    check("test://text" in uris and "test://binary" in uris, "the resources")
    templates = server.list("resources/templates/list", "resourceTemplates")
    equal([template["uriTemplate"] for template in templates], ["test://users/{id}"], "the templates")
    (text,) = server.ask("resources/read", {"uri": "test://text"})["contents"]
    equal((text["uri"], text["text"], text["mimeType"]), ("test://text", "hello", "text/plain"), "a text")
    (binary,) = server.ask("resources/read", {"uri": "test://binary"})["contents"]
    equal(base64.b64decode(binary["blob"], validate=True), bytes([0, 255, 1]), "bytes")
    (user,) = server.ask("resources/read", {"uri": "test://users/7"})["contents"]
    equal((user["uri"], json.loads(user["text"])), ("test://users/7", {"id": 7}), "a resource of a template")
    missing = server.refused("resources/read", {"uri": "test://missing"}, -32602 if server.modern else -32002)
    equal(missing["data"]["uri"], "test://missing", "the error names the resource")


def prompts(server):
    names = [prompt["name"] for prompt in server.list("prompts/list", "prompts")]
    check("greet" in names, "the prompts")
    result = server.ask("prompts/get", {"name": "greet", "arguments": {"name": "Ann", "style": "funny"}})
    (message,) = result["messages"]
    equal(message["role"], "user", "the role")
    equal(message["content"], {"type": "text", "text": "Greet Ann in a funny way."}, "the prompt")
    for message in server.ask("prompts/get", {"name": "rich"})["messages"]:
        server.check_block(message["content"])
    server.refused("prompts/get", {"name": "greet"}, -32602)
    server.refused("prompts/get", {"name": "no such prompt"}, -32602)
    argument = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "style", "value": "f"}}
    equal(server.ask("completion/complete", argument)["completion"]["values"], ["formal", "friendly", "funny"], "styles")
    if server.revision >= "2025-06-18":
        argument["context"] = {"arguments": {"name": "Dr. Who"}}
        equal(server.ask("completion/complete", argument)["completion"]["values"], ["formal"], "styles in context")


def subscriptions(server):
    uri = {"uri": "test://text"}
    if server.modern:
        wanted = {"notifications": {"resourceSubscriptions": ["test://text"], "toolsListChanged": True}}
        stream = server.start("subscriptions/listen", wanted)
        acknowledged = server.wait("notifications/subscriptions/acknowledged")
        equal(acknowledged["params"]["notifications"], wanted["notifications"], "what will be told")
        equal(acknowledged["params"]["_meta"][KEY + "subscriptionId"], stream, "the subscription")
    else:
        server.ask("resources/subscribe", uri)
    server.call("touch", uri)
    updated = server.wait("notifications/resources/updated")["params"]
    equal(updated["uri"], "test://text", "what has changed")
    server.call("grow")
    changed = server.wait("notifications/tools/list_changed")
    check("grown" in tools(server), "the list has changed")
    if server.modern:
        for params in (updated, changed["params"]):
            equal(params["_meta"][KEY + "subscriptionId"], stream, "the subscription")
        server.tell("notifications/cancelled", {"requestId": stream})
    else:
        server.ask("resources/unsubscribe", uri)
    server.call("touch", uri)
    server.alive()
    equal(server.told("notifications/resources/updated"), [], "nobody listens any more")


def batches(server):
    batch = [
        {"jsonrpc": "2.0", "id": "one", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
        {"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": {"name": "nothing"}},
    ]
    server.send(batch)
    answer = server.take()
    if server.revision == "2025-03-26":
        equal(sorted(item["id"] for item in answer), ["one", "two"], "the answers to a batch")
    else:
        equal((answer["error"]["code"], "id" in answer), (-32600, False), "a batch where there are none")
    server.alive()


def everything(command):
    for revision in [*LEGACY, MODERN]:
        capabilities = {"elicitation": {}} if revision >= "2025-06-18" else {}
        with Server(command, revision, capabilities) as server:
            declared = server.open()
            check({"tools", "resources", "prompts"} <= set(declared), "what there is, is declared")
            check("echo" in tools(server), "the tools")
            for part in (refusals, content, progress, cancellation, logging, resources, prompts, batches):
                part(server)
            if server.modern:
                elicitation_over_results(server)
            elif revision >= "2025-06-18":
                elicitation_over_requests(server)
            else:
                asked = server.call("ask")
                equal(asked.get("isError"), True, "a client that cannot be asked")
            subscriptions(server)


def main(profile, *command):
    try:
        {"hello": hello, "everything": everything}[profile](list(command))
    except Failure as failure:
        print(failure)
        return 1
    print(f"{checks} checks hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
