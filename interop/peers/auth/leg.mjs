// The authorization leg: tokens of npm `jose` and of `oidc-provider` against our verification.
// Usage: node leg.mjs INTEROP_AUTH. Prints one JSON line per feature.
import { generateKeyPairSync } from "node:crypto";
import * as jose from "jose";
import { checkDpop } from "./dpop.mjs";
import { startIssuer } from "./issuer.mjs";
import { checkLogins } from "./logins.mjs";
import { checkOpaqueTokens } from "./opaque.mjs";
import { freePort, serve } from "./process.mjs";
import { ask, checkSignatures } from "./signing.mjs";

const ours = process.argv[2];
// Between two fetches for unknown keys our server waits this long.
const FETCH_INTERVAL = 30_000;

async function check(feature, run) {
  try {
    await run();
    console.log(JSON.stringify({ feature, status: "ok" }));
  } catch (error) {
    console.log(JSON.stringify({ feature, status: "fail", detail: String(error.stack ?? error).slice(0, 600) }));
  }
}

function equal(found, expected, about) {
  if (found !== expected) throw new Error(`${about}: expected ${expected}, got ${found}`);
}

// Two key pairs for an algorithm. RSA keys are slow to make, so all algorithms share them.
const rsa = new Map();
async function keyPairs(alg, modulusLength) {
  const make = () => (modulusLength ? generateKeyPairSync("rsa", { modulusLength }) : jose.generateKeyPair(alg, { extractable: true }));
  if (!modulusLength) return [await make(), await make()];
  if (!rsa.has(modulusLength)) rsa.set(modulusLength, [make(), make()]);
  return rsa.get(modulusLength);
}

// Tokens of every algorithm that `jose` signs: as they are, and altered in each part.
async function crossCheck() {
  const claims = { sub: "ada", text: "é 漢字 \u0000 \"quoted\"" };
  const requests = [], expected = [];
  const add = (about, keys, token, verdict) => (requests.push({ keys, token }), expected.push([about, verdict]));
  const kinds = ["ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519"];
  for (const alg of kinds) {
    for (const modulusLength of /^[RP]S/.test(alg) ? [2048, 3072, 4096] : [undefined]) {
      const [{ privateKey, publicKey }, second] = await keyPairs(alg, modulusLength);
      const jwk = await jose.exportJWK(publicKey);
      const keys = { keys: [{ ...jwk, kid: "k", alg, use: "sig" }] };
      const token = await new jose.SignJWT(claims).setProtectedHeader({ alg, kid: "k", typ: "at+jwt" }).sign(privateKey);
      const [header, payload, signature] = token.split(".");
      const about = `${alg} ${modulusLength ?? ""}`;
      add(about, keys, token, "accepted");
      const other = await jose.exportJWK(second.publicKey);
      add(`${about}: other key`, { keys: [{ ...other, kid: "k" }] }, token, "refused");
      add(`${about}: key for encryption`, { keys: [{ ...jwk, kid: "k", use: "enc" }] }, token, "refused");
      const forged = jose.base64url.encode(JSON.stringify({ ...claims, sub: "root" }));
      add(`${about}: other payload`, keys, `${header}.${forged}.${signature}`, "refused");
      const bytes = jose.base64url.decode(signature);
      for (const at of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
        const altered = Uint8Array.from(bytes);
        altered[at] ^= 1;
        add(`${about}: bit in byte ${at}`, keys, `${header}.${payload}.${jose.base64url.encode(altered)}`, "refused");
      }
      const critical = jose.base64url.encode(JSON.stringify({ alg, kid: "k", crit: ["exp"], exp: 1 }));
      add(`${about}: crit`, keys, `${critical}.${payload}.${signature}`, "refused");
    }
  }
  const secret = new TextEncoder().encode("0123456789abcdef0123456789abcdef");
  const hmac = await new jose.SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "k" }).sign(secret);
  add("HS256", { keys: [{ kty: "oct", k: jose.base64url.encode(secret), kid: "k" }] }, hmac, "refused");
  add("none", { keys: [] }, new jose.UnsecuredJWT(claims).encode(), "refused");
  const verdicts = await ask(ours, "verify", requests);
  for (const [index, [about, verdict]] of expected.entries()) {
    const found = verdicts[index];
    equal(found.startsWith("refused: ") ? "refused" : "accepted", verdict, `${about} (${found})`);
    if (verdict === "accepted") equal(JSON.parse(found).text, claims.text, about);
  }
}

async function call(url, token, tool = "whoami") {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, _meta: meta } };
  const headers = {
    "content-type": "application/json", accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
    ...(token ? { authorization: `Bearer ${token}` } : {}),
  };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "", text: await response.text() };
}

await check("jose", crossCheck);
await checkSignatures({ check, equal, ours });
await checkDpop({ check, equal, ours });
await checkOpaqueTokens(check, ours, call);

const port = await freePort();
const resource = `http://127.0.0.1:${port}/mcp`;
const issuer = await startIssuer(resource);
const server = await serve([ours, "serve", String(port), issuer.issuer, resource], resource);
try {
  await check("metadata", async () => {
    const challenge = (await call(resource)).challenge;
    const url = /resource_metadata="([^"]+)"/.exec(challenge)?.[1];
    const document = await (await fetch(url)).json();
    equal(document.resource, resource, "resource");
    equal(document.authorization_servers.join(), issuer.issuer, "authorization_servers");
  });
  let first;
  await check("client credentials", async () => {
    first = await issuer.token();
    const answer = await call(resource, first);
    equal(answer.status, 200, answer.text);
    if (!answer.text.includes("machine by machine with mcp:read")) throw new Error(answer.text);
  });
  const started = Date.now();
  await check("scopes", async () => {
    const lacking = await call(resource, first, "write");
    equal(lacking.status, 403, lacking.text);
    if (!lacking.challenge.includes('error="insufficient_scope"')) throw new Error(lacking.challenge);
    const answer = await call(resource, await issuer.token({ scope: "mcp:read mcp:write" }), "write");
    equal(answer.status, 200, answer.text);
  });
  await check("audience", async () => {
    const answer = await call(resource, await issuer.token({ resource: `${resource}/other` }));
    equal(answer.status, 401, answer.text);
    if (!answer.challenge.includes('error="invalid_token"')) throw new Error(answer.challenge);
  });
  await check("one fetch", async () => {
    equal(issuer.requests.keys, 1, "requests for keys");
    equal(issuer.requests.metadata, 1, "requests for metadata");
  });
  await checkLogins(check, ours, issuer, resource);
  await check("rotation under load", async () => {
    let calls = 0, running = true, current = first;
    const failures = [];
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const answer = await call(resource, current);
        calls += 1;
        if (answer.status !== 200) failures.push(`${answer.status} ${answer.text}`);
      }
    });
    // Keys are not fetched twice within this time.
    await new Promise((done) => setTimeout(done, Math.max(0, FETCH_INTERVAL + 1000 - (Date.now() - started))));
    await issuer.rotate("second");
    const second = await issuer.token();
    equal(jose.decodeProtectedHeader(second).kid, "second", "kid");
    current = second;
    const [old, renewed] = await Promise.all([call(resource, first), call(resource, second)]);
    await new Promise((done) => setTimeout(done, 500));
    running = false;
    await Promise.all(load);
    equal(old.status, 200, "a token of the old key, which is still published");
    equal(renewed.status, 200, "a token of the new key");
    if (failures.length > 0) throw new Error(`${failures.length} of ${calls} calls failed: ${failures[0]}`);
    equal(issuer.requests.keys, 2, "requests for keys");
  });
} finally {
  server.close();
  issuer.close();
}
process.exit(0);
