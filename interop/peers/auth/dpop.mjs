// Tokens that are bound to a key: our client and our server with `oidc-provider`, and proofs that `jose` signs.
import { spawn } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import * as jose from "jose";
import * as oidc from "oidc-provider";
import { freePort, serve } from "./process.mjs";

const features = (resource) => ({
  devInteractions: { enabled: false },
  clientCredentials: { enabled: true },
  dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
  resourceIndicators: {
    enabled: true, defaultResource: () => resource, useGrantedResource: () => true,
    getResourceServerInfo: (_, asked) => ({
      scope: "mcp:read", audience: asked, accessTokenFormat: "jwt", accessTokenTTL: 120, jwt: { sign: { alg: "ES256" } },
    }),
  },
});

// An authorization server that issues tokens only with a proof that has a nonce. Counts the answers of its token endpoint.
async function startIssuer(resource) {
  const { privateKey } = await jose.generateKeyPair("ES256", { extractable: true });
  const jwks = { keys: [{ ...(await jose.exportJWK(privateKey)), alg: "ES256", kid: "k", use: "sig" }] };
  const clients = [{
    client_id: "machine", client_secret: "secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [],
    token_endpoint_auth_method: "client_secret_basic", id_token_signed_response_alg: "ES256", dpop_bound_access_tokens: true,
  }];
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const handle = new oidc.Provider(issuer, { jwks, clients, scopes: ["mcp:read"], features: features(resource) }).callback();
  const answers = [];
  server.on("request", (request, response) => {
    if (request.url === "/token") response.on("finish", () => answers.push(response.statusCode));
    handle(request, response);
  });
  return { issuer, answers, close: () => server.close() };
}

async function sign(key, method, url, claims = {}) {
  const proof = new jose.SignJWT({ htm: method, htu: url, jti: randomUUID(), ...claims });
  return proof.setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: await jose.exportJWK(key.publicKey) }).setIssuedAt().sign(key.privateKey);
}

// A request that is repeated with the nonce if the server asks for one.
async function send(url, key, headers, body, claims = {}) {
  const once = async (nonce) =>
    fetch(url, { method: "POST", body, headers: { ...headers, dpop: await sign(key, "POST", url, { ...claims, nonce }) } });
  const first = await once();
  const nonce = first.headers.get("dpop-nonce");
  return first.ok || !nonce ? first : once(nonce);
}

function call(token, scheme) {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", _meta: meta } });
  const headers = {
    "content-type": "application/json", accept: "application/json, text/event-stream", authorization: `${scheme} ${token}`,
    "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "whoami",
  };
  return { headers, body };
}

async function output(program) {
  let text = "";
  program.stdout.on("data", (chunk) => (text += chunk));
  await once(program, "close");
  return text.trim();
}

// `check` and `equal` are those of the leg; `ours` is our program.
export async function checkDpop({ check, equal, ours }) {
  const resource = `http://127.0.0.1:${await freePort()}/mcp`;
  const issuer = await startIssuer(resource);
  let server;
  try {
    server = await serve([ours, "serve-dpop", new URL(resource).port, issuer.issuer, resource], resource);
    await check("dpop with nonces", async () => {
      const client = spawn(ours, ["call-dpop", resource, issuer.issuer], { stdio: ["ignore", "pipe", "inherit"] });
      equal(await output(client), "machine by machine with mcp:read", "the answer to our client");
      equal(issuer.answers.join(), "400,200", "answers of the token endpoint: first without a nonce, then with it");
    });
    await check("dpop proofs of jose", async () => {
      const key = await jose.generateKeyPair("ES256", { extractable: true });
      const form = new URLSearchParams({ grant_type: "client_credentials", scope: "mcp:read", resource }).toString();
      const authorization = `Basic ${Buffer.from("machine:secret").toString("base64")}`;
      const type = { "content-type": "application/x-www-form-urlencoded", authorization };
      const issued = await (await send(`${issuer.issuer}/token`, key, type, form)).json();
      equal(issued.token_type, "DPoP", JSON.stringify(issued));
      const token = issued.access_token;
      const ath = createHash("sha256").update(token).digest("base64url");
      const { headers, body } = call(token, "DPoP");
      equal((await send(resource, key, headers, body, { ath })).status, 200, "a bound token with its proof");
      const other = await jose.generateKeyPair("ES256", { extractable: true });
      equal((await send(resource, other, headers, body, { ath })).status, 401, "a proof of another key");
      equal((await send(resource, key, headers, body, { ath, htm: "GET" })).status, 401, "a proof for another method");
      equal((await send(resource, key, headers, body)).status, 401, "a proof without the token");
      const bearer = call(token, "Bearer");
      equal((await send(resource, key, bearer.headers, bearer.body, { ath })).status, 401, "a bound token as bearer token");
    });
  } finally {
    server?.close();
    issuer.close();
  }
}
