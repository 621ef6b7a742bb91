// Another site on this machine: a page with links, a page to visit, and a model.
import { createServer } from "node:http";

const HTML = { "Content-Type": "text/html; charset=utf-8" };

/** Opens the site. `visits` and `prompts` are what it was asked for. */
export async function openSite() {
  const [visits, prompts] = [[], []];
  const server = createServer(async (request, reply) => {
    let body = "";
    for await (const part of request) body += part;
    const { pathname, searchParams } = new URL(request.url, "http://site");
    if (pathname === "/v1/chat/completions") {
      prompts.push(JSON.parse(body));
      reply.writeHead(200, { "Content-Type": "application/json" });
      reply.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "tiny", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "The model says Oslo." } }], usage: { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 } }));
    } else if (pathname === "/login") {
      visits.push(request.url);
      reply.writeHead(200, HTML).end("<title>login</title>signed in");
    } else if (pathname === "/link") {
      reply.writeHead(200, HTML).end(`<title>other</title><a id="link" href="${encodeURI(searchParams.get("to")).replaceAll('"', "&quot;")}">here</a>`);
    } else reply.writeHead(200, HTML).end("<title>other</title>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, visits, prompts, close: () => server.closeAllConnections() ?? server.close() };
}
