// Servers as processes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

// Starts a server, and waits until it answers at `url`.
export async function serve([program, ...options], url) {
  const child = spawn(program, options, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said = (said + data).slice(-1000)));
  for (let attempt = 0; attempt < 600 && child.exitCode === null; attempt += 1) {
    try {
      await fetch(url, { method: "OPTIONS" });
      return { close: () => child.kill("SIGKILL") };
    } catch {
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  child.kill("SIGKILL");
  throw new Error(`${url} does not answer: ${said}`);
}
