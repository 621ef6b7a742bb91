// Clients of other implementations log in to our server, and our client logs in to their servers.
// Usage: node peers.mjs INTEROP_AUTH PEERS. Prints one JSON line per peer, side and feature.
//
// PEERS is a JSON array of `{peer, side, command}`, with the side `client`, `server`, `resource` or `issuer`. A client gets the URL of our
// server. A server gets a port, and serves `/mcp` and its own authorization server there. A resource gets a port and the issuer of its
// tokens. An issuer announces no PKCE.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startIssuer } from "./issuer.mjs";
import { freePort, serve } from "./process.mjs";
import { run } from "./user.mjs";

const [, , ours, given] = process.argv;
const peers = JSON.parse(given);
const of = (wanted) => peers.filter(({ side }) => side === wanted);
const folder = await mkdtemp(join(tmpdir(), "interop-peers-"));

function report({ peer, side }, feature, problem) {
  const line = { peer, side, feature, status: problem ? "fail" : "ok" };
  console.log(JSON.stringify(problem ? { ...line, detail: String(problem).slice(0, 600) } : line));
}

async function check(about, feature, step) {
  try {
    report(about, feature, await step());
  } catch (error) {
    report(about, feature, error.stack ?? error);
  }
}

// Their clients, all at one server of ours.
async function checkClients() {
  const port = await freePort();
  const resource = `http://127.0.0.1:${port}/mcp`;
  const issuer = await startIssuer(resource);
  const server = await serve([ours, "serve", String(port), issuer.issuer, resource], resource);
  for (const client of of("client")) {
    const { lines, visits, complaint } = await run([...client.command, resource]);
    const found = (feature) => lines.find((line) => line.feature === feature) ?? { detail: `not reached; ${complaint}` };
    const judge = (feature, text) => {
      const line = found(feature);
      report(client, feature, line.text?.startsWith(text) ? undefined : (line.detail ?? `the tool returned ${line.text}`));
    };
    judge("login", "ada by ");
    judge("step-up", "written");
    const resources = visits.map((visit) => visit.searchParams.get("resource"));
    report(client, "resource", resources.length > 0 && resources.every((sent) => sent === resource) ? undefined : `sent ${resources}`);
  }
  server.close();
  issuer.close();
}

// Our client at one server of theirs, with its own authorization server or with `oidc-provider`.
async function checkServer(peer) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const store = join(folder, peer.peer);
  const issuer = peer.side === "resource" ? await startIssuer(url) : undefined;
  async function client(...steps) {
    const { lines, visits, complaint } = await run([ours, "login", url, store, ...steps]);
    const failed = lines.find((line) => line.error);
    if (failed || lines.length < steps.filter((step) => !step.startsWith("--")).length)
      throw new Error(`${failed?.error ?? ""} ${complaint}`);
    return { last: lines.at(-1), visits };
  }
  let server;
  await check(peer, "login", async () => {
    server = await serve([...peer.command, String(port), ...(issuer ? [issuer.issuer] : [])], url);
    const { last, visits } = await client("call:whoami");
    return last.text === "mcp:read" && visits.length === 1 ? undefined : `${last.text}, ${visits.length} visits`;
  });
  await check(peer, "stored", async () => {
    const { last, visits } = await client("--stored", "call:whoami");
    return last.text === "mcp:read" && visits.length === 0 ? undefined : `${last.text}, ${visits.length} visits`;
  });
  if (issuer) {
    await check(peer, "step-up", async () => {
      const { last, visits } = await client("call:write");
      const asked = visits[0]?.searchParams.get("scope");
      return last.text === "written" && visits.length === 1 ? undefined : `${last.text}, ${visits.length} visits, asked for ${asked}`;
    });
    // The server checks tokens: it refuses those for others.
    await check(peer, "other audience", async () => {
      const answer = async (resource) => {
        const headers = { authorization: `Bearer ${await issuer.token({ resource })}`, "content-type": "application/json" };
        return (await fetch(url, { method: "POST", headers, body: "{}" })).status;
      };
      const [own, other] = [await answer(url), await answer(`${url}/other`)];
      return own !== 401 && other === 401 ? undefined : `${own} for its own token, ${other} for another`;
    });
  }
  await check(peer, "logout", async () => {
    const { last } = await client("--stored", "logout");
    return last.ended === "Revoked" ? undefined : last.ended;
  });
  server?.close();
  issuer?.close();
}

// An issuer that announces no PKCE: refused, unless the user allows it.
async function checkIssuer(peer) {
  const [port, issuerPort] = [await freePort(), await freePort()];
  const [url, issuer] = [`http://127.0.0.1:${port}/mcp`, `http://127.0.0.1:${issuerPort}`];
  const server = await serve([ours, "serve", String(port), issuer, url], url);
  const authorization = await serve([...peer.command, String(issuerPort)], issuer);
  const login = (...options) => run([ours, "login", url, join(folder, peer.peer), ...options, "login"]);
  await check(peer, "refused", async () => {
    const { lines, visits } = await login();
    return visits.length === 0 && lines[0]?.error?.includes("PKCE") ? undefined : JSON.stringify(lines);
  });
  await check(peer, "allowed", async () => {
    // Its registration accepts clients without a secret, but its token endpoint does not.
    const { lines, visits, complaint } = await login("--client", "app", "secret", "--allow", "unannounced-pkce");
    return visits.length === 1 && lines[0]?.issuer === issuer ? undefined : `${JSON.stringify(lines)} ${complaint}`;
  });
  server.close();
  authorization.close();
}

await checkClients();
for (const peer of [...of("server"), ...of("resource")]) await checkServer(peer);
for (const peer of of("issuer")) await checkIssuer(peer);
await rm(folder, { recursive: true });
process.exit(0);
