// Takes a server through the contract of interop/README.md with version 1 of the TypeScript SDK.
// Usage: node client.mjs REVISION (URL | PROGRAM ARGUMENTS…). The revision is for the server to choose.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Inbox, run } from './features.mjs';

const client = new Client(
  { name: 'ts1', version: '1.0.0' },
  { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
);
client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///tmp' }] }));
client.setRequestHandler(CreateMessageRequestSchema, () => ({
  role: 'assistant',
  content: { type: 'text', text: '42' },
  model: 'deep-thought',
}));

const [logged, updated] = [new Inbox(), new Inbox()];
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => logged.push(params.data));
client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.push(params.uri));

function transport(target, ...args) {
  if (!target.startsWith('http')) return new StdioClientTransport({ command: target, args });
  const url = new URL(target);
  return url.pathname === '/sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}

// The SDK keeps the agreed revision to itself, but tells the transport.
let revision;
const way = transport(...process.argv.slice(3));
const tell = way.setProtocolVersion?.bind(way);
way.setProtocolVersion = version => {
  revision = version;
  tell?.(version);
};
await client.connect(way);

await run({
  client,
  revision,
  logged,
  updated,
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  wantLogs: () => client.setLoggingLevel('info'),
  async subscribe(uri) {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
