// Our client logs in at `oidc-provider`, as a user and as a machine. Usage: see leg.mjs, which runs this.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./user.mjs";

// Tokens of this life are due for a refresh at once.
const SHORT_LIFE = 2;

function equal(found, expected, about) {
  if (found !== expected) throw new Error(`${about}: expected ${expected}, got ${found}`);
}

export async function checkLogins(check, ours, issuer, resource) {
  const folder = await mkdtemp(join(tmpdir(), "interop-auth-"));
  // Runs our client with the store `name`. Every step must succeed.
  async function client(name, ...steps) {
    const { lines, visits, complaint } = await run([ours, "login", resource, join(folder, name), ...steps]);
    const failed = lines.find((line) => line.error);
    if (failed || lines.length === 0) throw new Error(`${JSON.stringify(failed)} ${complaint}`);
    return { results: Object.fromEntries(lines.map((line) => [line.step, line])), visits };
  }
  const last = () => issuer.grants.at(-1);
  const refreshes = () => issuer.grants.filter(({ params }) => params?.grant_type === "refresh_token");
  // Sends a refresh token as someone who stole it would.
  const replay = ({ params, body }) =>
    issuer.post({ grant_type: "refresh_token", client_id: params.client_id, refresh_token: body.refresh_token, resource });
  const due = () => new Promise((done) => setTimeout(done, SHORT_LIFE * 1000));

  await check("code flow", async () => {
    const before = issuer.requests.registrations;
    const { results, visits } = await client("flow", "call:whoami", "account");
    const { client_id } = last().params;
    equal(results["call:whoami"].text, `ada by ${client_id} with mcp:read`, "the caller");
    equal(visits.length, 1, "visits");
    equal(visits[0].searchParams.get("code_challenge_method"), "S256", "code_challenge_method");
    equal(issuer.requests.registrations - before, 1, "registrations");
    equal(results.account.renewable, true, "renewable");
  });
  await check("resource indicators", async () => {
    const { visits } = await client("resource", "call:whoami");
    equal(visits[0].searchParams.get("resource"), resource, "`resource` of the authorization request");
    equal(last().params.resource, resource, "`resource` of the token request");
  });
  await check("step-up", async () => {
    const { results, visits } = await client("flow", "call:write");
    equal(results["call:write"].text, "written", "write");
    equal(visits.length, 1, "visits");
    const asked = visits[0].searchParams.get("scope").split(" ");
    equal(asked.includes("mcp:read") && asked.includes("mcp:write"), true, `scopes ${asked}`);
  });
  issuer.settings.life = SHORT_LIFE;
  await check("refresh rotation", async () => {
    await client("rotation", "call:whoami");
    const first = last();
    await due();
    equal((await client("rotation", "--stored", "call:whoami")).visits.length, 0, "visits");
    equal(last().params.grant_type, "refresh_token", "grant_type");
    equal(last().params.refresh_token, first.body.refresh_token, "the refresh token sent");
    equal(last().body.refresh_token === first.body.refresh_token, false, "the refresh token is the old one");
    await due();
    const count = refreshes().length;
    await Promise.all(Array.from({ length: 5 }, () => client("rotation", "--stored", "call:whoami")));
    equal(refreshes().length - count, 1, "refreshes of five processes");
    equal(last().error, undefined, "error");
  });
  await check("refresh token reuse", async () => {
    await client("reuse", "call:whoami");
    const stolen = last();
    await due();
    await client("reuse", "--stored", "call:whoami");
    equal((await replay(stolen)).error, "invalid_grant", "a spent refresh token");
    await due();
    const { results } = await client("reuse", "--stored", "call:whoami", "account");
    equal(last().error, "invalid_grant", "the refresh token of our client, after the theft");
    equal(results.account.renewable, false, "renewable");
    equal((await client("reuse", "login", "call:whoami")).visits.length, 1, "visits");
  });
  issuer.settings.life = 120;
  await check("logout", async () => {
    await client("logout", "call:whoami");
    const login = last();
    const { results } = await client("logout", "--stored", "logout", "account");
    equal(results.logout.ended, "Revoked", "logout");
    equal(results.account.renewable, null, "account");
    equal((await replay(login)).error, "invalid_grant", "the refresh token after logout");
  });
  await check("machine", async () => {
    const { results } = await client("machine", "--machine", "machine", "secret", "call:whoami", "call:write");
    equal(results["call:whoami"].text, "machine by machine with mcp:read", "the caller");
    equal(results["call:write"].text, "written", "step-up without a user");
    equal(last().params.resource, resource, "resource");
  });
  await rm(folder, { recursive: true });
}
