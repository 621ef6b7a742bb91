// A server with the authorization server of version 1 of the TypeScript SDK. Usage: node auth_server.mjs PORT

import express from 'express';
import { DemoInMemoryAuthProvider } from '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const port = Number(process.argv[2]);
const issuerUrl = new URL(`http://127.0.0.1:${port}`);
const resource = new URL('/mcp', issuerUrl);
const provider = new DemoInMemoryAuthProvider(asked => asked?.href === resource.href);
const bearer = requireBearerAuth({
  verifier: provider,
  requiredScopes: ['mcp:read'],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
});

const app = express();
app.use(mcpAuthRouter({ provider, issuerUrl, resourceServerUrl: resource, scopesSupported: ['mcp:read'] }));
app.all('/mcp', bearer, async (request, response) => {
  const server = new McpServer({ name: 'ts1', version: '1.0.0' });
  server.registerTool('whoami', {}, extra => ({ content: [{ type: 'text', text: extra.authInfo.scopes.join(' ') }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response);
});
app.listen(port, '127.0.0.1');
