// Logs in to a protected server with version 1 of the TypeScript SDK. Usage: node login.mjs URL

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Provider, run } from './oauth.mjs';

const provider = new Provider();
let transport;
await run({
  provider,
  Unauthorized: UnauthorizedError,
  async connect() {
    transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), { authProvider: provider });
    const client = new Client({ name: 'ts1', version: '1.0.0' });
    await client.connect(transport);
    return name => client.callTool({ name });
  },
  finish: response => transport.finishAuth(response.get('code')),
});
