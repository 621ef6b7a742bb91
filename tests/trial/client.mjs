// Calls every tool of a server with version 2 of the TypeScript SDK, and prints what happened as one line of JSON.
// Usage: node client.mjs PLAN (URL | PROGRAM ARGUMENTS…). PLAN: {"servers": […], "arguments": {tool: {…}}}

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [planText, target, ...args] = process.argv.slice(2);
const plan = JSON.parse(planText);
const asked = {};
let current = '';

// Accepts every form with the first value that its schema allows.
function answer(schema) {
  const value = (property) => {
    if (property.default !== undefined) return property.default;
    if (property.const !== undefined) return property.const;
    const choices = property.enum ?? (property.oneOf ?? property.anyOf)?.map((choice) => choice.const);
    if (choices) return choices[0];
    if (property.type === 'boolean') return true;
    if (property.type === 'integer' || property.type === 'number') return property.minimum ?? 1;
    if (property.type === 'array') return [];
    if (property.format === 'email') return 'ada@example.com';
    if (property.format === 'date') return '2026-01-01';
    if (property.format === 'date-time') return '2026-01-01T00:00:00Z';
    if (property.format === 'uri') return 'https://example.com/';
    return 'Ada';
  };
  return Object.fromEntries(Object.entries(schema?.properties ?? {}).map(([name, property]) => [name, value(property)]));
}

const client = new Client(
  { name: 'trial-typescript', version: '1.0.0' },
  { capabilities: { elicitation: {}, sampling: {}, roots: {} }, versionNegotiation: { mode: 'auto' } },
);
client.setRequestHandler('elicitation/create', ({ params }) => {
  (asked[current] ??= []).push(params.message);
  return { action: 'accept', content: answer(params.requestedSchema) };
});
client.setRequestHandler('roots/list', () => ({ roots: [] }));
client.setRequestHandler('sampling/createMessage', () => ({
  role: 'assistant',
  content: { type: 'text', text: '42' },
  model: 'deep-thought',
}));

const headers = process.env.TRIAL_TOKEN ? { Authorization: `Bearer ${process.env.TRIAL_TOKEN}` } : {};
const transport = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: 'inherit' });
await client.connect(transport);

let lists = 0;
async function list() {
  lists += 1;
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor }, { timeout: 120_000 });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return tools.map((tool) => tool.name);
}

const deadline = Date.now() + 300_000;
let tools = await list();
const isComplete = () => plan.servers.every((server) => tools.some((name) => name.startsWith(`${server}__`)));
while (!isComplete() && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  tools = await list();
}

const calls = {};
for (const name of tools) {
  current = name;
  try {
    const result = await client.callTool({ name, arguments: plan.arguments[name] ?? {} }, { timeout: 60_000 });
    const text = (result.content ?? []).map((part) => part.text ?? '').join('\n');
    calls[name] = { error: result.isError === true, text: text.slice(0, 2000) };
  } catch (error) {
    calls[name] = { error: true, text: String(error.message) };
  }
}
console.log(JSON.stringify({ tools, lists, calls, asked }));
await client.close();
process.exit(0);
