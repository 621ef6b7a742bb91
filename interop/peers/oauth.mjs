// What the logins with both versions of the TypeScript SDK share.

import { createInterface } from 'node:readline';

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Keeps everything in memory, and lets the program that runs this one be the user. */
export class Provider {
  redirectUrl = 'http://127.0.0.1:33419/callback';
  clientMetadata = {
    client_name: 'interop',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  };
  state = () => 'a-state';
  clientInformation = () => this.client;
  saveClientInformation = client => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = tokens => void (this.kept = tokens);
  saveCodeVerifier = verifier => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  redirectToAuthorization = url => void (this.page = url);

  /** The parameters of the redirect. */
  async response() {
    console.log(JSON.stringify({ visit: this.page.href }));
    const { value } = await input.next();
    return new URL(value).searchParams;
  }
}

/** Connects and calls a tool, then one that needs another scope. `Unauthorized` means that the user has to log in. */
export async function run({ provider, Unauthorized, connect, finish }) {
  async function check(feature, step) {
    try {
      console.log(JSON.stringify({ feature, status: 'ok', text: await step() }));
    } catch (error) {
      console.log(JSON.stringify({ feature, status: 'fail', detail: String(error) }));
    }
  }
  const text = result => result.content[0].text;
  let call;
  await check('login', async () => {
    try {
      call = await connect();
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
      await finish(await provider.response());
      call = await connect();
    }
    return text(await call('whoami'));
  });
  await check('step-up', async () => {
    try {
      return text(await call('write'));
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
      await finish(await provider.response());
      return text(await call('write'));
    }
  });
  process.exit(0);
}
