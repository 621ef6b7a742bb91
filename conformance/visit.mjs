// Plays the user of the authorization-server scenarios.
// visit.mjs port: prints a free port.
// visit.mjs register <issuer> <redirect URI>: registers a client and prints its id.
// visit.mjs allow <log of the suite>: waits for the URL in the log, allows the request, and follows the redirect.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const [, , action, ...words] = process.argv;

async function port() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  console.log(server.address().port);
  server.close();
}

async function register(issuer, redirectUri) {
  const body = JSON.stringify({
    client_name: "conformance suite",
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: "none",
  });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${issuer}/register`, { method: "POST", headers, body });
  if (response.status !== 201) throw new Error(`registration failed: ${response.status}`);
  console.log((await response.json()).client_id);
}

async function urlIn(log) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const url = readFileSync(log, "utf8").split("\n").find((line) => line.startsWith("http") && line.includes("/authorize?"));
    if (url) return url.trim();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the suite printed no URL within 30 s");
}

async function allow(log) {
  const url = await urlIn(log);
  const page = await (await fetch(url)).text();
  const request = /name="request" value="([^"]+)"/.exec(page)?.[1];
  if (!request) throw new Error(`no consent page: ${page}`);
  const body = new URLSearchParams({ request, user: "developer", decision: "allow" });
  const answer = await fetch(url.split("?")[0], { method: "POST", body, redirect: "manual" });
  if (answer.status !== 303) throw new Error(`the consent page answered with ${answer.status}`);
  await fetch(answer.headers.get("location"));
}

await { port, register, allow }[action](...words);
