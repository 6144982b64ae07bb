import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Reverie, ReverieError } from "../dist/index.js";

/** Runs a gateway that gives scripted answers, and collects what it was asked. */
async function withGateway(answers, ask) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    const { status = 200, headers = {}, json } = answers.shift();
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(json));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  try {
    await ask(url, asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return asked;
}

test("a write carries the key, the user and an idempotency key", async () => {
  const asked = await withGateway([{ status: 201, json: { id: "m" } }], async (url) => {
    const reverie = new Reverie({ url, key: "rv_key", user: "Jürgen" });
    assert.deepEqual(await reverie.remember({ body: { content: "Use tabs", scope: "user/me" } }), {
      id: "m",
    });
  });
  assert.equal(asked[0].url, "/v1/remember");
  assert.equal(asked[0].headers.authorization, "Bearer rv_key");
  assert.equal(asked[0].headers["reverie-user"], "J%C3%BCrgen");
  assert.match(asked[0].headers["idempotency-key"], /^[0-9a-f-]{36}$/);
  assert.deepEqual(JSON.parse(asked[0].body), { content: "Use tabs", scope: "user/me" });
});

test("a call that is not answered is repeated with the same idempotency key", async () => {
  const busy = { status: 503, headers: { "Retry-After": "0" }, json: {} };
  const answers = [busy, busy, { status: 201, json: { id: "m" } }];
  const asked = await withGateway(answers, (url) =>
    new Reverie({ url, key: "k" }).remember({ body: { content: "x" } }),
  );
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map((one) => one.headers["idempotency-key"])).size, 1);
  assert.equal(new Set(asked.map((one) => one.body)).size, 1);
});

test("a moment to try again is no number of seconds, and the call is repeated", async () => {
  const headers = { "Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT" };
  const answers = [{ status: 429, headers, json: {} }, { status: 503, headers, json: {} }, { json: {} }];
  const asked = await withGateway(answers, (url) => new Reverie({ url, key: "k" }).health());
  assert.equal(asked.length, 3);
});

test("an answer that has begun may take longer than an attempt", async () => {
  const slow = (request) => {
    const body = new ReadableStream({
      start(stream) {
        const end = setTimeout(() => {
          stream.enqueue(new TextEncoder().encode('{"type":"header"}\n'));
          stream.close();
        }, 100);
        request.signal.addEventListener("abort", () => {
          clearTimeout(end);
          stream.error(request.signal.reason);
        });
      },
    });
    return Promise.resolve(new Response(body));
  };
  const reverie = new Reverie({ url: "http://gateway", key: "k", timeout: 10, fetch: slow });
  assert.equal(await reverie.export(), '{"type":"header"}\n');
});

test("an attempt that is not answered in time is made again", async () => {
  let attempts = 0;
  const silent = (request) =>
    new Promise((resolve, reject) => {
      attempts += 1;
      if (attempts === 2) resolve(new Response("text"));
      request.signal.addEventListener("abort", () => reject(request.signal.reason));
    });
  const reverie = new Reverie({ url: "http://gateway", key: "k", timeout: 10, fetch: silent });
  assert.equal(await reverie.export(), "text");
  assert.equal(attempts, 2);
});

test("reads after a write say which write they must see", async () => {
  const written = { json: { id: "m" }, headers: { "Reverie-Position": "0/FF" } };
  const older = { json: { id: "n" }, headers: { "Reverie-Position": "0/1" } };
  const answers = [written, older, { json: { memories: [] } }];
  const asked = await withGateway(answers, async (url) => {
    const reverie = new Reverie({ url, key: "k" });
    await reverie.remember({ body: { content: "x" } });
    await reverie.remember({ body: { content: "y" } });
    await reverie.recall({ body: { query: "x" } });
  });
  assert.equal(asked[2].headers["reverie-position"], "0/FF");
  assert.equal(asked[2].headers["idempotency-key"], undefined);
});

test("a refusal has the code, the status and the words of the gateway", async () => {
  const json = { code: "not_found", detail: "there is no memory x", status: 404, title: "Not found" };
  await withGateway([{ status: 404, json }], async (url) => {
    const asked = new Reverie({ url, key: "k" }).getMemory({ path: { id: "x" } });
    await assert.rejects(asked, (error) => {
      assert.ok(error instanceof ReverieError);
      assert.deepEqual([error.code, error.status, error.message], ["not_found", 404, json.detail]);
      return true;
    });
  });
});

test("no gateway is said in words that name the remedy", async () => {
  const reverie = new Reverie({ url: "http://127.0.0.1:9", key: "k", maxAttempts: 1 });
  await assert.rejects(reverie.health(), { code: "unavailable", message: /reverie up/ });
});
