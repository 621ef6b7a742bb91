// A server that version 2 of the TypeScript SDK protects with tokens of another authorization server.
// Usage: node auth_server.mjs PORT ISSUER

import http from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  oauthMetadataResponse,
  requireBearerAuth,
  requireScopes,
} from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const [port, issuer] = process.argv.slice(2);
const resource = new URL(`http://127.0.0.1:${port}/mcp`);
const oauthMetadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(oauthMetadata.jwks_uri));
const text = value => ({ content: [{ type: 'text', text: value }] });

const gate = requireBearerAuth({
  verifier: {
    async verifyAccessToken(token) {
      try {
        const { payload } = await jwtVerify(token, keys, { issuer, audience: resource.href });
        const { client_id: clientId, scope = '', exp: expiresAt } = payload;
        return { token, clientId, scopes: scope.split(' '), expiresAt, resource };
      } catch (error) {
        throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
      }
    },
  },
  requiredScopes: ['mcp:read'],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
});

function demo() {
  const server = new McpServer({ name: 'ts2', version: '1.0.0' });
  server.registerTool('whoami', {}, context => text(context.http.authInfo.scopes.join(' ')));
  server.registerTool('write', { scopeChallenge: requireScopes('mcp:read', 'mcp:write') }, () => text('written'));
  return server;
}

const handler = createMcpHandler(demo);
const metadata = { oauthMetadata, resourceServerUrl: resource, scopesSupported: ['mcp:read'], dangerouslyAllowInsecureIssuerUrl: true };
async function answer(request) {
  const document = oauthMetadataResponse(request, metadata);
  if (document) return document;
  const authInfo = await gate(request);
  return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
}
http.createServer(toNodeHandler({ fetch: answer })).listen(Number(port), '127.0.0.1');
