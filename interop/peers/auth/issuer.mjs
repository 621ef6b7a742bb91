// An authorization server: `oidc-provider`, with keys that can be replaced while it runs.
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import * as oidc from "oidc-provider";
import { exportJWK, generateKeyPair } from "jose";

export async function startIssuer(resource) {
  const keys = [];
  let serve;
  const server = createServer((request, response) => serve(request, response));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const requests = { keys: 0, metadata: 0, registrations: 0 };
  // Every answered token request. `life` is how long access tokens are valid, in seconds.
  const grants = [];
  const settings = { life: 120 };

  function apply() {
    const instance = provider(issuer, resource, keys, settings);
    instance.on("grant.success", ({ oidc: { params }, body }) => grants.push({ params, body }));
    instance.on("grant.error", ({ oidc: context }, error) => grants.push({ params: context?.params, error: error.error }));
    // Whatever scopes a client registers, it may ask for others later. SDKs register only those that they ask for first.
    instance.use(async (context, next) => {
      if (context.method === "POST" && context.path === "/reg") {
        const { scope, ...metadata } = await json(context.req);
        context.req.body = metadata;
      }
      await next();
    });
    const handle = instance.callback();
    serve = (request, response) => {
      if (request.url.startsWith("/jwks")) requests.keys += 1;
      if (request.url.startsWith("/.well-known/")) requests.metadata += 1;
      if (request.url.startsWith("/reg")) requests.registrations += 1;
      return handle(request, response);
    };
  }
  // A new key signs from now on. The old ones stay published.
  async function rotate(kid) {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    keys.unshift({ ...(await exportJWK(privateKey)), alg: "ES256", kid, use: "sig" });
    apply();
  }
  async function post(parameters, headers = {}) {
    const response = await fetch(`${issuer}/token`, { method: "POST", headers, body: new URLSearchParams(parameters) });
    return response.json();
  }
  async function token(parameters = {}) {
    const authorization = `Basic ${Buffer.from("machine:secret").toString("base64")}`;
    const answer = await post({ grant_type: "client_credentials", scope: "mcp:read", resource, ...parameters }, { authorization });
    if (!answer.access_token) throw new Error(JSON.stringify(answer));
    return answer.access_token;
  }
  await rotate("first");
  return { issuer, requests, grants, settings, rotate, token, post, close: () => server.close() };
}

function provider(issuer, resource, keys, settings) {
  const machine = {
    client_id: "machine", client_secret: "secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [],
    token_endpoint_auth_method: "client_secret_basic",
  };
  const info = (audience) => ({
    scope: "mcp:read mcp:write", audience, accessTokenFormat: "jwt", accessTokenTTL: settings.life, jwt: { sign: { alg: "ES256" } },
  });
  return new oidc.Provider(issuer, {
    jwks: { keys }, clients: [machine], clientDefaults: { id_token_signed_response_alg: "ES256" }, cookies: { keys: ["interop"] },
    scopes: ["openid", "offline_access", "mcp:read", "mcp:write"], pkce: { required: () => true }, rotateRefreshToken: true,
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    features: {
      devInteractions: { enabled: true }, clientCredentials: { enabled: true }, registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        // A client that does not send `resource` gets a token for nobody.
        enabled: true, defaultResource: () => `${resource}/default`, useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => info(asked),
      },
    },
  });
}
