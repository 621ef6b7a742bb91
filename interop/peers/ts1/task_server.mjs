// The contract for tasks of interop/README.md, served by version 1 of the TypeScript SDK.
// Usage: node task_server.mjs [--http PORT]

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });

const taskStore = new InMemoryTaskStore();
const taskMessageQueue = new InMemoryTaskMessageQueue();

/** Asks the user. The SDK keeps the request until the client asks for the result of the task. */
async function ask(taskId, extra, message, properties) {
  const requestedSchema = { type: 'object', properties, required: Object.keys(properties) };
  const request = { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } };
  const answer = await extra.sendRequest(request, ElicitResultSchema, { relatedTask: { taskId } });
  return answer.content;
}

const NAME = { name: { type: 'string' } };
const CONFIRM = { confirm: { type: 'boolean' } };

function demo() {
  const capabilities = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  const server = new McpServer({ name: 'ts1', version: '1.0.0' }, { capabilities, taskStore, taskMessageQueue });

  /** `run` gives the result, which is a failure if it has `isError`. */
  function tool(name, taskSupport, inputSchema, run) {
    server.experimental.tasks.registerToolTask(name, { inputSchema, execution: { taskSupport } }, {
      async createTask(args, extra) {
        const task = await extra.taskStore.createTask({ ttl: extra.taskRequestedTtl, pollInterval: 100 });
        run(task.taskId, args, extra)
          .then(result => extra.taskStore.storeTaskResult(task.taskId, result.isError ? 'failed' : 'completed', result))
          // A cancelled task takes no result.
          .catch(error => console.error(error.message));
        return { task };
      },
      getTask: (_, extra) => extra.taskStore.getTask(extra.taskId),
      getTaskResult: (_, extra) => extra.taskStore.getTaskResult(extra.taskId),
    });
  }

  const compute = { seconds: z.number(), label: z.string().optional() };
  tool('slow_compute', 'optional', compute, async (_, { seconds, label }) => {
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    return text(`${label ?? 'unnamed'} took ${seconds} s`);
  });

  tool('failing_job', 'required', {}, async () => ({ ...text('the job failed, as it always does'), isError: true }));

  tool('confirm_delete', 'optional', { filename: z.string() }, async (taskId, { filename }, extra) => {
    const answer = await ask(taskId, extra, `Delete ${filename}?`, CONFIRM);
    return text(`${answer?.confirm ? 'deleted' : 'kept'} ${filename}`);
  });

  tool('multi_input', 'optional', {}, async (taskId, _, extra) => {
    const questions = [ask(taskId, extra, 'Your name?', NAME), ask(taskId, extra, 'Are you sure?', CONFIRM)];
    const [who, sure] = await Promise.all(questions);
    return text(`${who?.name} is ${sure?.confirm ? 'sure' : 'not sure'}`);
  });
  return server;
}

const sessions = new Map();

async function handle(request, response) {
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

const [flag, port] = process.argv.slice(2);
if (flag === '--http') {
  http.createServer(handle).listen(Number(port), '127.0.0.1');
} else {
  // The timers of tasks would keep the process alive.
  process.stdin.on('end', () => process.exit());
  await demo().connect(new StdioServerTransport());
}
