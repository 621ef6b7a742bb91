// What each feature of the contract has to do, from the side of a TypeScript client of either version.
// Prints one line of JSON per feature, as `interop-client` does.

import assert from 'node:assert/strict';

const PATIENCE = 10_000;
const TOOLS = ['add', 'ask', 'bump', 'cancelled', 'echo', 'fail', 'log', 'slow', 'think', 'where'];

/** What arrives without being asked for, one after the other. */
export class Inbox {
  #waiting = [];
  #come = [];

  push(value) {
    const next = this.#waiting.shift();
    if (next) next(value);
    else this.#come.push(value);
  }

  next() {
    if (this.#come.length > 0) return Promise.resolve(this.#come.shift());
    return new Promise(resolve => this.#waiting.push(resolve));
  }
}

/**
 * `client` is connected; the rest is where the two versions differ: `revision`, `logged` and `updated` (an Inbox each),
 * `call(name, arguments, options)`, `wantLogs()`, and `subscribe(uri)`, which gives what takes it back.
 */
export async function run({ client, revision, logged, updated, call, wantLogs, subscribe }) {
  const text = async (name, args = {}) => {
    const result = await call(name, args);
    assert.ok(!result.isError, result.content[0]?.text);
    return result.content[0].text;
  };
  const reads = async (uri, expected) => {
    const { contents } = await client.readResource({ uri });
    assert.deepEqual(contents.map(content => content.text), [expected]);
  };

  const features = {
    async list() {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(tool => tool.name).sort(), TOOLS);
    },
    async call() {
      assert.equal(await text('echo', { message: 'hé, 世界' }), 'hé, 世界');
    },
    // Revisions before 2025-06-18 have the same as text.
    async structured() {
      const result = await call('add', { a: 2, b: 3 });
      const found = revision >= '2025-06-18' ? result.structuredContent : JSON.parse(result.content[0].text);
      assert.deepEqual(found, { sum: 5 });
    },
    async error() {
      const result = await call('fail', {});
      assert.equal(result.isError, true);
      assert.match(result.content[0].text, /it failed/);
      await assert.rejects(client.readResource({ uri: 'demo://nothing' }), error => error.code < 0);
    },
    async progress() {
      const heard = [];
      const onprogress = ({ progress, total }) => heard.push([progress, total]);
      const result = await call('slow', { steps: 3 }, { onprogress });
      assert.equal(result.content[0].text, 'done');
      assert.deepEqual(heard, [[1, 3], [2, 3], [3, 3]].slice(0, heard.length));
      assert.equal(heard.length, 3, `only ${heard.length} of 3 steps were heard of`);
    },
    async cancel() {
      const before = Number(await text('cancelled'));
      const abort = new AbortController();
      const options = { signal: abort.signal, onprogress: () => abort.abort() };
      await assert.rejects(call('slow', { steps: 1, hold: true }, options));
      // The server has the time limit of this feature to notice.
      while (Number(await text('cancelled')) !== before + 1) await new Promise(resolve => setTimeout(resolve, 20));
    },
    async log() {
      await wantLogs();
      assert.equal(await text('log'), 'logged');
      assert.deepEqual(await logged.next(), 'a word');
    },
    async resources() {
      const { resources } = await client.listResources();
      assert.deepEqual(resources.map(resource => resource.uri).sort(), ['demo://counter', 'demo://text']);
      await reads('demo://text', 'Hello, resource!');
    },
    async templates() {
      const { resourceTemplates } = await client.listResourceTemplates();
      assert.deepEqual(resourceTemplates.map(template => template.uriTemplate), ['demo://item/{id}']);
      await reads('demo://item/7', 'item 7');
    },
    async subscribe() {
      const end = await subscribe('demo://counter');
      const counter = await text('bump');
      assert.equal(await updated.next(), 'demo://counter');
      await reads('demo://counter', counter);
      await end();
    },
    async prompts() {
      const { prompts } = await client.listPrompts();
      assert.deepEqual(prompts.map(prompt => prompt.name), ['greet']);
      const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
      assert.deepEqual(messages.map(message => message.content.text), ['Hello, Ada!']);
    },
    async completion() {
      const ref = { type: 'ref/prompt', name: 'greet' };
      const { completion } = await client.complete({ ref, argument: { name: 'name', value: 'A' } });
      assert.deepEqual(completion.values, ['Ada', 'Alan']);
    },
    async sampling() {
      assert.equal(await text('think'), 'deep-thought: 42');
    },
    async elicitation() {
      assert.equal(await text('ask'), 'accept Ada');
    },
    async roots() {
      assert.equal(await text('where'), 'file:///tmp');
    },
  };

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
}
