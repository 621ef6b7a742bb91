// Opaque tokens and logins on another device, with an `oidc-provider` of their own.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import * as oidc from "oidc-provider";
import { exportJWK, generateKeyPair } from "jose";
import { freePort, serve } from "./process.mjs";

// An authorization server whose access tokens only it can read.
async function startOpaqueIssuer(resource) {
  let serve;
  const server = createServer((request, response) => serve(request, response));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), alg: "ES256", kid: "k", use: "sig" };
  const secret = {
    client_secret: "secret", token_endpoint_auth_method: "client_secret_basic", redirect_uris: [], response_types: [],
  };
  const info = (audience) => ({ scope: "mcp:read mcp:write", audience, accessTokenFormat: "opaque", accessTokenTTL: 120 });
  const enabled = true;
  const provider = new oidc.Provider(issuer, {
    jwks: { keys: [key] }, cookies: { keys: ["interop"] },
    clients: [
      { client_id: "machine", grant_types: ["client_credentials"], ...secret },
      { client_id: "rs", grant_types: [], ...secret },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" }, scopes: ["openid", "offline_access", "mcp:read", "mcp:write"],
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    features: {
      devInteractions: { enabled }, clientCredentials: { enabled }, registration: { enabled }, revocation: { enabled },
      deviceFlow: { enabled }, introspection: { enabled, allowedPolicy: () => true },
      resourceIndicators: {
        enabled, defaultResource: () => resource, useGrantedResource: () => true, getResourceServerInfo: (_, asked) => info(asked),
      },
    },
  });
  let questions = 0;
  const handle = provider.callback();
  serve = (request, response) => {
    if (request.url.startsWith("/token/introspection")) questions += 1;
    return handle(request, response);
  };
  const post = async (path, parameters) => {
    const authorization = `Basic ${Buffer.from("machine:secret").toString("base64")}`;
    return fetch(issuer + path, { method: "POST", headers: { authorization }, body: new URLSearchParams(parameters) });
  };
  const token = async (asked = resource) => {
    const body = { grant_type: "client_credentials", scope: "mcp:read", resource: asked };
    return (await (await post("/token", body)).json()).access_token;
  };
  const revoke = (revoked) => post("/token/revocation", { token: revoked });
  return { issuer, token, revoke, questions: () => questions, close: () => server.close() };
}

// A browser without scripts: it keeps cookies, follows redirects, and submits the forms of `oidc-provider`.
async function enterCode(page, code) {
  const cookies = new Map();
  const open = async (url, body) => {
    for (let hops = 0; hops < 10; hops += 1) {
      const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
      const response = await fetch(url, { method: body ? "POST" : "GET", headers: { cookie }, body, redirect: "manual" });
      for (const line of response.headers.getSetCookie()) {
        const [name, value] = line.split(";")[0].split(/=(.*)/s);
        cookies.set(name, value);
      }
      const location = response.headers.get("location");
      if (!location) return { url, text: await response.text() };
      [url, body] = [new URL(location, url).href, undefined];
    }
    throw new Error("too many redirects");
  };
  let at = await open(page);
  for (let forms = 0; forms < 6; forms += 1) {
    const form = /<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/.exec(at.text);
    if (!form) return at.text;
    const fields = new URLSearchParams();
    for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
      const name = /name="([^"]*)"/.exec(input)?.[1];
      const known = { login: "ada", password: "x", user_code: code };
      if (name) fields.set(name, known[name] ?? /value="([^"]*)"/.exec(input)?.[1] ?? "");
    }
    at = await open(new URL(form[1].replaceAll("&amp;", "&"), at.url).href, fields);
  }
  throw new Error(`the forms do not end: ${at.text.slice(0, 300)}`);
}

function equal(found, expected, about) {
  if (found !== expected) throw new Error(`${about}: expected ${expected}, got ${found}`);
}

// Runs the features "introspection" and "device flow". `call` sends a call to our server.
export async function checkOpaqueTokens(check, ours, call) {
  const port = await freePort();
  const resource = `http://127.0.0.1:${port}/mcp`;
  const issuer = await startOpaqueIssuer(resource);
  const server = await serve([ours, "introspect", String(port), issuer.issuer, resource], resource);
  try {
    await check("introspection", async () => {
      const token = await issuer.token();
      equal(token.split(".").length, 1, "parts of the token");
      for (let calls = 0; calls < 3; calls += 1) {
        const answer = await call(resource, token);
        equal(answer.status, 200, answer.text);
      }
      equal(issuer.questions(), 1, "questions about one token");
      equal((await call(resource, await issuer.token(`${resource}/other`))).status, 401, "a token for another audience");
      equal((await call(resource, "unknown")).status, 401, "an unknown token");
      const revoked = await issuer.token();
      await issuer.revoke(revoked);
      equal((await call(resource, revoked)).status, 401, "a revoked token");
    });
    await check("device flow", async () => {
      const program = spawn(ours, ["device", resource], { stdio: ["ignore", "pipe", "inherit"] });
      const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
      const { page, code } = JSON.parse((await lines.next()).value);
      const end = await enterCode(page, code);
      const answer = (await lines.next()).value;
      if (!answer?.startsWith("ada by ")) throw new Error(`${answer}; the last page was ${end.slice(0, 300)}`);
    });
  } finally {
    server.close();
    issuer.close();
  }
}
