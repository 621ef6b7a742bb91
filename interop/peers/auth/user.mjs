// A user with a browser: opens the page of an authorization request, logs in, and agrees.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

// More pages than any of the authorization servers shows.
const MAX_PAGES = 20;

// Returns the URL that the browser is redirected to.
export async function visit(url) {
  const end = new URL(url).searchParams.get("redirect_uri");
  const cookies = new Map();
  let at = new URL(url), body;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "), accept: "text/html" };
    const response = await fetch(at, { method: body ? "POST" : "GET", headers, body, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location?.startsWith(end)) return location;
    const text = await response.text();
    if (location) {
      at = new URL(location, at);
      body = undefined;
      continue;
    }
    const form = /<form[^>]*>/i.exec(text)?.[0];
    if (response.status !== 200 || !form) throw new Error(`${at} answered ${response.status}: ${text.slice(0, 500)}`);
    body = fields(text);
    at = new URL(/action="([^"]*)"/.exec(form)?.[1].replaceAll("&amp;", "&") ?? "", at);
  }
  throw new Error(`${url} has more than ${MAX_PAGES} pages`);
}

// The fields of the form, with what the user types, and its first button.
function fields(page) {
  const typed = new URLSearchParams();
  const button = /<button[^>]*>/i.exec(page)?.[0] ?? "";
  for (const input of [...page.matchAll(/<input[^>]*>/gi)].map(([tag]) => tag).concat(button)) {
    const attribute = (name) => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1];
    if (attribute("name")) typed.append(attribute("name"), attribute("value") || "ada");
  }
  return typed;
}

// Runs a program that prints one JSON object per line. For `{"visit": URL}` it gets the redirected URL on standard input.
export async function run([program, ...options], environment = {}) {
  const child = spawn(program, options, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...environment } });
  let complaint = "";
  child.stderr.on("data", (data) => (complaint = (complaint + data).slice(-1000)));
  const ended = new Promise((done) => child.on("close", done));
  const lines = [], visits = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith("{")) continue;
    const message = JSON.parse(line);
    if (!message.visit) {
      lines.push(message);
      continue;
    }
    visits.push(new URL(message.visit));
    const redirected = await visit(message.visit).catch((error) => {
      complaint += String(error);
      child.kill("SIGKILL");
    });
    if (redirected) child.stdin.write(`${redirected}\n`);
  }
  await ended;
  return { lines, visits, complaint };
}
