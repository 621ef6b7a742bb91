// Checks the tasks of a server with version 1 of the TypeScript SDK: see the contract for tasks in interop/README.md.
// Usage: node task_client.mjs REVISION (URL | PROGRAM ARGUMENTS…). The revision is for the server to choose.

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const PATIENCE = 15_000;

const client = new Client({ name: 'ts1', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
  action: 'accept',
  content: params.message.includes('name') ? { name: 'Ada' } : { confirm: true },
}));
const { tasks } = client.experimental;

async function start(name, args = {}) {
  const call = { method: 'tools/call', params: { name, arguments: args } };
  return (await client.request(call, CreateTaskResultSchema, { task: { ttl: 600_000 } })).task;
}

const result = ({ taskId }) => tasks.getTaskResult(taskId, CallToolResultSchema);

/** Calls a tool as the SDK proposes: polls, and asks for the result when the task ended or has a question. */
async function stream(name, args = {}) {
  let last;
  const seen = [];
  for await (last of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: {} })) {
    seen.push(last.type);
  }
  assert.equal(seen[0], 'taskCreated');
  assert.equal(last.type, 'result', last.error?.message);
  return last.result;
}

const features = {
  async create() {
    const task = await start('slow_compute', { seconds: 600, label: 'a nap' });
    const found = await tasks.getTask(task.taskId);
    assert.equal(found.taskId, task.taskId);
    assert.equal(found.status, 'working');
  },
  async result() {
    const task = await start('slow_compute', { seconds: 0.5, label: 'a nap' });
    const first = await result(task);
    assert.equal(first.content[0].text, 'a nap took 0.5 s');
    assert.equal(first._meta['io.modelcontextprotocol/related-task'].taskId, task.taskId);
    assert.equal((await tasks.getTask(task.taskId)).status, 'completed');
    assert.equal((await result(task)).content[0].text, 'a nap took 0.5 s');
  },
  async call() {
    const called = await stream('slow_compute', { seconds: 0.5, label: 'a nap' });
    assert.equal(called.content[0].text, 'a nap took 0.5 s');
  },
  async error() {
    const task = await start('failing_job');
    const called = await result(task);
    assert.equal(called.isError, true);
    assert.match(called.content[0].text, /the job failed/);
    assert.equal((await tasks.getTask(task.taskId)).status, 'failed');
  },
  async failure() {
    const task = await start('protocol_error_job');
    await assert.rejects(result(task), error => error.code === -32603);
    assert.equal((await tasks.getTask(task.taskId)).status, 'failed');
  },
  async cancel() {
    const task = await start('slow_compute', { seconds: 600 });
    assert.equal((await tasks.cancelTask(task.taskId)).status, 'cancelled');
    assert.equal((await tasks.getTask(task.taskId)).status, 'cancelled');
    // Ended tasks cannot be cancelled.
    await assert.rejects(tasks.cancelTask(task.taskId), error => error.code === -32602);
  },
  async question() {
    assert.equal((await stream('confirm_delete', { filename: 'a.txt' })).content[0].text, 'deleted a.txt');
  },
  async questions() {
    assert.equal((await result(await start('multi_input'))).content[0].text, 'Ada is sure');
  },
  async unknown() {
    await assert.rejects(tasks.getTask('nothing'), error => error.code === -32602);
  },
  async tasks() {
    const { taskId } = await start('slow_compute', { seconds: 0 });
    const listed = [];
    let cursor;
    do {
      const page = await tasks.listTasks(cursor);
      listed.push(...page.tasks.map(task => task.taskId));
      cursor = page.nextCursor;
    } while (cursor);
    assert.ok(listed.includes(taskId));
  },
};

const [target, ...args] = process.argv.slice(3);
const way = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
// The SDK keeps the agreed revision to itself, but tells the transport.
let revision;
const tell = way.setProtocolVersion?.bind(way);
way.setProtocolVersion = version => {
  revision = version;
  tell?.(version);
};
await client.connect(way);

console.log(JSON.stringify({ revision }));
for (const [feature, check] of Object.entries(features)) {
  let late;
  const limit = new Promise((_, reject) => {
    late = setTimeout(() => reject(new Error(`nothing within ${PATIENCE} ms`)), PATIENCE);
  });
  try {
    await Promise.race([check(), limit]);
    console.log(JSON.stringify({ feature, status: 'ok' }));
  } catch (error) {
    console.log(JSON.stringify({ feature, status: 'fail', detail: String(error?.message ?? error) }));
  } finally {
    clearTimeout(late);
  }
}
await client.close();
