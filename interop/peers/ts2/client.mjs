// Takes a server through the contract of interop/README.md with version 2 of the TypeScript SDK.
// Usage: node client.mjs REVISION (URL | PROGRAM ARGUMENTS…). A legacy revision is for the server to choose; `any` is for
// both to find.

import { Client, LOG_LEVEL_META_KEY, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Inbox, run } from './features.mjs';

const [wanted, target, ...args] = process.argv.slice(2);
const modes = { any: 'auto', '2026-07-28': { pin: wanted } };

const client = new Client(
  { name: 'ts2', version: '1.0.0' },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    versionNegotiation: { mode: modes[wanted] ?? 'legacy' },
  },
);
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///tmp' }] }));
client.setRequestHandler('sampling/createMessage', () => ({
  role: 'assistant',
  content: { type: 'text', text: '42' },
  model: 'deep-thought',
}));

const [logged, updated] = [new Inbox(), new Inbox()];
client.setNotificationHandler('notifications/message', ({ params }) => logged.push(params.data));
client.setNotificationHandler('notifications/resources/updated', ({ params }) => updated.push(params.uri));

function transport() {
  if (!target.startsWith('http')) return new StdioClientTransport({ command: target, args });
  const url = new URL(target);
  return url.pathname === '/sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}
await client.connect(transport());
const revision = client.getNegotiatedProtocolVersion();
const isModern = revision >= '2026-07-28';

// Modern requests say one by one that they want logs.
let _meta;
await run({
  client,
  revision,
  logged,
  updated,
  call: (name, args, options) => client.callTool({ name, arguments: args, _meta }, options),
  async wantLogs() {
    if (isModern) _meta = { [LOG_LEVEL_META_KEY]: 'info' };
    else await client.setLoggingLevel('info');
  },
  async subscribe(uri) {
    if (isModern) {
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      return () => subscription.close();
    }
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
