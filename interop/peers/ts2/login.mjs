// Logs in to a protected server with version 2 of the TypeScript SDK. Usage: node login.mjs URL

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { Provider, run } from './oauth.mjs';

const provider = new Provider();
let transport;
await run({
  provider,
  Unauthorized: UnauthorizedError,
  async connect() {
    transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), { authProvider: provider });
    const client = new Client({ name: 'ts2', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(transport);
    return name => client.callTool({ name });
  },
  finish: response => transport.finishAuth(response),
});
