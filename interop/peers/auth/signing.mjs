// What our code signs, verified by `jose`: tokens, client assertions, DPoP proofs, thumbprints, and tokens of our authorization server.
import { spawn } from "node:child_process";
import { createHash, generateKeyPairSync } from "node:crypto";
import { createInterface } from "node:readline";
import * as jose from "jose";
import { freePort, serve } from "./process.mjs";
import { visit } from "./user.mjs";

const ALGORITHMS = ["ES256", "ES384", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const CURVES = { ES256: "P-256", ES384: "P-384" };
const ISSUER = "https://login.example.com", CLIENT = "nightly \"é\"", NONCE = "n-1", URL_OF_PROOF = "https://notes.example.com/mcp";

// Sends a JSON object per line to our program. Returns its answers.
export async function ask(ours, command, requests) {
  const program = spawn(ours, [command], { stdio: ["pipe", "pipe", "inherit"] });
  program.stdin.end(requests.map((request) => JSON.stringify(request) + "\n").join(""));
  const answers = [];
  for await (const line of createInterface({ input: program.stdout })) answers.push(line);
  if (answers.length !== requests.length) throw new Error(`${command}: ${answers.length} answers to ${requests.length} requests`);
  return answers;
}

function keyPair(alg) {
  if (CURVES[alg]) return generateKeyPairSync("ec", { namedCurve: CURVES[alg] });
  return alg === "EdDSA" ? generateKeyPairSync("ed25519") : generateKeyPairSync("rsa", { modulusLength: 2048 });
}

// Copies of a token with one thing changed in each. All must be refused.
function altered(token) {
  const [header, payload, signature] = token.split(".");
  const bytes = jose.base64url.decode(signature);
  const flipped = [0, Math.floor(bytes.length / 2), bytes.length - 1].map((at) => {
    const copy = Uint8Array.from(bytes);
    copy[at] ^= 1;
    return `${header}.${payload}.${jose.base64url.encode(copy)}`;
  });
  const claims = JSON.parse(new TextDecoder().decode(jose.base64url.decode(payload)));
  const forged = jose.base64url.encode(JSON.stringify({ ...claims, admin: true }));
  const short = jose.base64url.encode(bytes.subarray(1));
  const { alg, ...rest } = jose.decodeProtectedHeader(token);
  const none = jose.base64url.encode(JSON.stringify({ ...rest, alg: "none" }));
  return [...flipped, `${header}.${forged}.${signature}`, `${header}.${payload}.${short}`, `${header}.${payload}.`, `${none}.${payload}.${signature}`];
}

async function refuses(verification, about) {
  const accepted = await verification().then(() => true, () => false);
  if (accepted) throw new Error(`jose accepts ${about}`);
}

async function checkSigning(ours, equal) {
  const now = Math.floor(Date.now() / 1000);
  const about = { now, claims: { sub: "ada", text: "é 漢字 \u0000 \"quoted\"", iss: ISSUER, exp: now + 60 }, client: CLIENT, issuer: ISSUER, url: `${URL_OF_PROOF}?query`, nonce: NONCE };
  const pairs = ALGORITHMS.map((alg) => ({ alg, ...keyPair(alg) }));
  const requests = pairs.map(({ alg, privateKey }) => ({ ...about, alg, pem: privateKey.export({ type: "pkcs8", format: "pem" }) }));
  // Keys that we make ourselves: those of DPoP, and those of our authorization server.
  requests.push(...["ES256", "EdDSA"].map((alg) => ({ ...about, alg })));
  const signed = (await ask(ours, "sign", requests)).map((line) => (line.startsWith("refused") ? { line } : JSON.parse(line)));
  const refused = [];
  for (const [index, { token, assertion, proof, jwk, thumbprint, line }] of signed.entries()) {
    const { alg } = requests[index];
    if (line) throw new Error(`${alg}: ${line}`);
    if (jwk.d || jwk.p) throw new Error(`${alg}: the public key has private members`);
    const known = pairs[index]?.publicKey;
    equal(thumbprint, await jose.calculateJwkThumbprint(known ? await jose.exportJWK(known) : jwk), `${alg}: thumbprint`);
    const key = known ?? (await jose.importJWK(jwk, alg));
    const rules = { algorithms: [alg], issuer: ISSUER };
    const { payload } = await jose.jwtVerify(token, key, { ...rules, typ: "at+jwt" });
    equal(payload.text, about.claims.text, `${alg}: the token`);
    const forClient = { algorithms: [alg], issuer: CLIENT, subject: CLIENT, audience: ISSUER, typ: "JWT", maxTokenAge: 60, requiredClaims: ["jti", "exp"] };
    await jose.jwtVerify(assertion, key, forClient);
    const verified = await jose.jwtVerify(proof, jose.EmbeddedJWK, { algorithms: [alg], typ: "dpop+jwt", maxTokenAge: 60 });
    equal(await jose.calculateJwkThumbprint(verified.protectedHeader.jwk), thumbprint, `${alg}: key of the proof`);
    equal(verified.payload.htm, "POST", `${alg}: htm`);
    equal(verified.payload.htu, URL_OF_PROOF, `${alg}: htu`);
    equal(verified.payload.nonce, NONCE, `${alg}: nonce`);
    equal(verified.payload.ath, createHash("sha256").update(token).digest("base64url"), `${alg}: ath`);

    const other = keyPair(alg).publicKey;
    await refuses(() => jose.jwtVerify(token, other, rules), `${alg}: another key`);
    await refuses(() => jose.jwtVerify(assertion, key, { ...forClient, audience: `${ISSUER}/` }), `${alg}: another audience`);
    const keys = { keys: [{ ...jwk, kid: "k" }] }, otherKeys = { keys: [{ ...(await jose.exportJWK(other)), kid: "k" }] };
    refused.push({ keys: otherKeys, token });
    for (const [name, text] of Object.entries({ token, assertion, proof })) {
      for (const copy of altered(text)) {
        await refuses(() => jose.compactVerify(copy, key), `${alg}: an altered ${name}, ${copy}`);
        refused.push({ keys, token: copy });
      }
    }
  }
  for (const [index, verdict] of (await ask(ours, "verify", refused)).entries()) {
    equal(verdict.startsWith("refused: "), true, `our verdict on ${refused[index].token} (${verdict})`);
  }
}

// Keys as `jose` writes them, also with other members and other padding.
async function checkThumbprints(ours, equal) {
  const keys = [];
  for (const alg of ALGORITHMS) keys.push({ ...(await jose.exportJWK(keyPair(alg).publicKey)), alg, kid: "k", use: "sig", extra: [1] });
  const broken = keys.map(({ x, n, ...rest }) => rest);
  const found = await ask(ours, "thumbprint", [...keys, ...broken]);
  for (const [index, key] of keys.entries()) {
    equal(found[index], await jose.calculateJwkThumbprint(key), `thumbprint of a key for ${key.alg}`);
    await refuses(() => jose.calculateJwkThumbprint(broken[index]), `a key for ${key.alg} without its number`);
    equal(found[keys.length + index].startsWith("refused: "), true, `our thumbprint of a key without its number (${found[keys.length + index]})`);
  }
}

// A token of our authorization server.
async function checkIssuer(ours, equal) {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`, resource = `${base}/mcp`, redirect = "http://127.0.0.1:33418/callback";
  const server = await serve([ours, "dev", String(port)], resource);
  try {
    const metadata = await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json();
    const registration = { redirect_uris: [redirect], token_endpoint_auth_method: "none", client_name: "jose" };
    const headers = { "content-type": "application/json" };
    const registered = await (await fetch(metadata.registration_endpoint, { method: "POST", headers, body: JSON.stringify(registration) })).json();
    const verifier = jose.base64url.encode(crypto.getRandomValues(new Uint8Array(32)));
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const asked = { client_id: registered.client_id, redirect_uri: redirect, resource };
    const url = new URL(metadata.authorization_endpoint);
    url.search = new URLSearchParams({ ...asked, response_type: "code", code_challenge: challenge, code_challenge_method: "S256", scope: "mcp:read", state: "s" });
    const code = new URL(await visit(url)).searchParams.get("code");
    const body = new URLSearchParams({ ...asked, grant_type: "authorization_code", code, code_verifier: verifier });
    const { access_token: token, ...answer } = await (await fetch(metadata.token_endpoint, { method: "POST", body })).json();
    if (!token) throw new Error(JSON.stringify(answer));
    const keys = jose.createRemoteJWKSet(new URL(metadata.jwks_uri));
    const { payload } = await jose.jwtVerify(token, keys, { issuer: metadata.issuer, audience: resource, typ: "at+jwt" });
    equal(payload.scope, "mcp:read", "scope");
    for (const copy of altered(token)) await refuses(() => jose.jwtVerify(copy, keys), "an altered token");
    await refuses(() => jose.jwtVerify(token, keys, { audience: `${resource}/` }), "another audience");
  } finally {
    server.close();
  }
}

export async function checkSignatures({ check, equal, ours }) {
  await check("signatures of ours", () => checkSigning(ours, equal));
  await check("thumbprints", () => checkThumbprints(ours, equal));
  await check("tokens of our issuer", () => checkIssuer(ours, equal));
}
