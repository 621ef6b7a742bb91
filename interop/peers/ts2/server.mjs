// The contract of interop/README.md, served by version 2 of the TypeScript SDK.
// Usage: node server.mjs [--http PORT]

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
  McpServer,
  ResourceTemplate,
  completable,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });
const contents = (uri, value) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: value }] });

// A modern request over HTTP has a server of its own, so what outlives a request is kept here.
const subscribed = new Set();
let counter = 0;
let cancelled = 0;
let handler;

function demo({ era }) {
  const server = new McpServer(
    { name: 'ts2', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );

  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, ({ message }) => text(message));

  server.registerTool(
    'add',
    {
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
  );

  server.registerTool('fail', {}, () => ({ ...text('it failed'), isError: true }));

  const slow = z.object({ steps: z.number(), hold: z.boolean().optional() });
  server.registerTool('slow', { inputSchema: slow }, async ({ steps, hold }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress++) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress, total: steps };
        await mcpReq.notify({ method: 'notifications/progress', params });
      }
    }
    if (hold) {
      await new Promise(resolve => mcpReq.signal.addEventListener('abort', resolve));
      cancelled += 1;
    }
    return text('done');
  });

  server.registerTool('cancelled', {}, () => text(String(cancelled)));

  server.registerTool('log', {}, async ({ mcpReq }) => {
    await mcpReq.log('info', 'a word', 'demo');
    return text('logged');
  });

  // Asking is written once, the modern way; legacy clients are asked by requests.
  server.registerTool('ask', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.person;
    if (answer) return text(answer.action === 'accept' ? `accept ${answer.content.name}` : answer.action);
    const person = inputRequired.elicit({
      message: 'Who are you?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    });
    return inputRequired({ inputRequests: { person } });
  });

  server.registerTool('think', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.thought;
    if (answer) return text(`${answer.model}: ${answer.content.text}`);
    const thought = inputRequired.createMessage({
      messages: [{ role: 'user', content: { type: 'text', text: 'What is six times seven?' } }],
      maxTokens: 100,
    });
    return inputRequired({ inputRequests: { thought } });
  });

  server.registerTool('where', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.roots;
    if (answer) return text(answer.roots.map(root => root.uri).join(' '));
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });

  server.registerTool('bump', {}, async () => {
    counter += 1;
    if (handler && era === 'modern') handler.notify.resourceUpdated('demo://counter');
    else if (era === 'modern' || subscribed.has('demo://counter')) {
      await server.server.sendResourceUpdated({ uri: 'demo://counter' });
    }
    return text(String(counter));
  });

  server.registerResource('text', 'demo://text', {}, uri => contents(uri, 'Hello, resource!'));
  server.registerResource('counter', 'demo://counter', {}, uri => contents(uri, String(counter)));
  const item = new ResourceTemplate('demo://item/{id}', { list: undefined });
  server.registerResource('item', item, {}, (uri, { id }) => contents(uri, `item ${id}`));
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      subscribed.add(params.uri);
      return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscribed.delete(params.uri);
      return {};
    });
  }

  const names = typed => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(typed));
  server.registerPrompt(
    'greet',
    { argsSchema: z.object({ name: completable(z.string(), names) }) },
    ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}!` } }] }),
  );
  return server;
}

const sessions = new Map();

/** Legacy requests belong to a session; a modern one stands for itself. */
async function handle(modern, request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
  if (!(await isLegacyRequest(await toWebRequest(request, body), body))) return modern(request, response, body);
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport),
    });
    await demo({ era: 'legacy' }).connect(transport);
  }
  await transport.handleRequest(request, response, body);
}

const [flag, port] = process.argv.slice(2);
if (flag === '--http') {
  handler = createMcpHandler(demo, { legacy: 'reject' });
  const modern = toNodeHandler(handler);
  http.createServer((request, response) => handle(modern, request, response)).listen(Number(port), '127.0.0.1');
} else {
  serveStdio(demo);
}
