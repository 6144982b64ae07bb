// Makes the calls that arrive as lines of JSON on stdin, and writes each answer as a line.
import { createInterface } from "node:readline";

import { Reverie } from "../dist/index.js";

const clients = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  const { url, key, method, fields } = JSON.parse(line);
  const name = `${url} ${key}`;
  if (!clients.has(name)) clients.set(name, new Reverie({ url, key, maxAttempts: 1 }));
  let answer;
  try {
    answer = { data: await call(clients.get(name), method, fields) };
  } catch (error) {
    answer = { error: { code: error.code ?? error.name, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function call(client, method, fields) {
  const found = await client[method](fields);
  if (typeof found?.stream?.next !== "function") return found;
  const first = await found.stream.next();
  await found.stream.return();
  return { items: [{ data: first.value }] };
}

process.exit(0); // Streams that were left keep the process alive.
