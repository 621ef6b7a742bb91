// An authorization server: `oidc-provider`, with keys that can be replaced while it runs.
import { createServer } from "node:http";
import * as oidc from "oidc-provider";
import { exportJWK, generateKeyPair } from "jose";

export async function startIssuer(resource) {
  const keys = [];
  let serve;
  const server = createServer((request, response) => serve(request, response));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const requests = { keys: 0, metadata: 0 };

  function apply() {
    const handle = provider(issuer, resource, keys).callback();
    serve = (request, response) => {
      if (request.url.startsWith("/jwks")) requests.keys += 1;
      if (request.url.startsWith("/.well-known/")) requests.metadata += 1;
      return handle(request, response);
    };
  }
  // A new key signs from now on. The old ones stay published.
  async function rotate(kid) {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    keys.unshift({ ...(await exportJWK(privateKey)), alg: "ES256", kid, use: "sig" });
    apply();
  }
  async function token(parameters = {}) {
    const body = new URLSearchParams({ grant_type: "client_credentials", scope: "mcp:read", resource, ...parameters });
    const authorization = `Basic ${Buffer.from("machine:secret").toString("base64")}`;
    const response = await fetch(`${issuer}/token`, { method: "POST", headers: { authorization }, body });
    const answer = await response.json();
    if (!answer.access_token) throw new Error(JSON.stringify(answer));
    return answer.access_token;
  }
  await rotate("first");
  return { issuer, requests, rotate, token, close: () => server.close() };
}

function provider(issuer, resource, keys) {
  const machine = {
    client_id: "machine", client_secret: "secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [],
    token_endpoint_auth_method: "client_secret_basic", id_token_signed_response_alg: "ES256",
  };
  const info = (audience) => ({
    scope: "mcp:read mcp:write", audience, accessTokenFormat: "jwt", accessTokenTTL: 120, jwt: { sign: { alg: "ES256" } },
  });
  return new oidc.Provider(issuer, {
    jwks: { keys }, clients: [machine], scopes: ["mcp:read", "mcp:write"],
    features: {
      devInteractions: { enabled: false }, clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true, defaultResource: () => resource, useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => info(asked),
      },
    },
  });
}
