// The contract of interop/README.md, served by version 1 of the TypeScript SDK.
// Usage: node server.mjs [--http PORT]

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });
const contents = (uri, value) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: value }] });

function demo() {
  const server = new McpServer(
    { name: 'ts1', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );
  const subscribed = new Set();
  let counter = 0;
  let cancelled = 0;

  server.registerTool('echo', { inputSchema: { message: z.string() } }, ({ message }) => text(message));

  server.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
  );

  server.registerTool('fail', {}, () => ({ ...text('it failed'), isError: true }));

  const slow = { steps: z.number(), hold: z.boolean().optional() };
  server.registerTool('slow', { inputSchema: slow }, async ({ steps, hold }, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress++) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress, total: steps };
        await extra.sendNotification({ method: 'notifications/progress', params });
      }
    }
    if (hold) {
      await new Promise(resolve => extra.signal.addEventListener('abort', resolve));
      cancelled += 1;
    }
    return text('done');
  });

  server.registerTool('cancelled', {}, () => text(String(cancelled)));

  server.registerTool('log', {}, async () => {
    await server.sendLoggingMessage({ level: 'info', logger: 'demo', data: 'a word' });
    return text('logged');
  });

  server.registerTool('ask', {}, async extra => {
    const answer = await server.server.elicitInput(
      {
        message: 'Who are you?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
      { relatedRequestId: extra.requestId },
    );
    return text(answer.action === 'accept' ? `accept ${answer.content.name}` : answer.action);
  });

  server.registerTool('think', {}, async extra => {
    const answer = await server.server.createMessage(
      {
        messages: [{ role: 'user', content: { type: 'text', text: 'What is six times seven?' } }],
        maxTokens: 100,
      },
      { relatedRequestId: extra.requestId },
    );
    return text(`${answer.model}: ${answer.content.text}`);
  });

  server.registerTool('where', {}, async extra => {
    const { roots } = await server.server.listRoots({}, { relatedRequestId: extra.requestId });
    return text(roots.map(root => root.uri).join(' '));
  });

  server.registerTool('bump', {}, async () => {
    counter += 1;
    if (subscribed.has('demo://counter')) await server.server.sendResourceUpdated({ uri: 'demo://counter' });
    return text(String(counter));
  });

  server.registerResource('text', 'demo://text', {}, uri => contents(uri, 'Hello, resource!'));
  server.registerResource('counter', 'demo://counter', {}, uri => contents(uri, String(counter)));
  const item = new ResourceTemplate('demo://item/{id}', { list: undefined });
  server.registerResource('item', item, {}, (uri, { id }) => contents(uri, `item ${id}`));
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });

  const names = typed => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(typed));
  server.registerPrompt('greet', { argsSchema: { name: completable(z.string(), names) } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}!` } }],
  }));
  return server;
}

const sessions = new Map();

/** Streamable HTTP at /mcp, and the two endpoints of 2024-11-05 at /sse and /messages. */
async function handle(request, response) {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/sse' && request.method !== 'GET') {
    response.writeHead(405).end();
  } else if (url.pathname === '/sse') {
    const transport = new SSEServerTransport('/messages', response);
    sessions.set(transport.sessionId, transport);
    await demo().connect(transport);
  } else if (url.pathname === '/messages') {
    await sessions.get(url.searchParams.get('sessionId')).handlePostMessage(request, response);
  } else {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, transport),
      });
      await demo().connect(transport);
    }
    await transport.handleRequest(request, response);
  }
}

const [flag, port] = process.argv.slice(2);
if (flag === '--http') http.createServer(handle).listen(Number(port), '127.0.0.1');
else await demo().connect(new StdioServerTransport());
