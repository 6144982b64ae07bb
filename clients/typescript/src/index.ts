import { ReverieError } from "./errors.js";
import { retryingFetch } from "./fetch.js";
import { createClient, createConfig } from "./generated/client/index.js";
import { Operations } from "./generated/sdk.gen.js";

export { ReverieError } from "./errors.js";
export type * from "./generated/types.gen.js";

export interface ReverieOptions {
  /** The address of the gateway, as `http://127.0.0.1:3456`. */
  url: string;
  /** The key that `reverie key create` printed. */
  key: string;
  /** Who uses this machine. It names the user's own memory, and grants nothing. */
  user?: string;
  /** Milliseconds until an attempt is answered; 30,000 by default. Streams are not limited. */
  timeout?: number;
  /** The most attempts of a call; 4 by default. */
  maxAttempts?: number;
  /** Another `fetch`, as for tests. */
  fetch?: typeof fetch;
}

/**
 * A client of one gateway. Each operation is a method that takes `path`, `query` and `body`, and
 * resolves to the answer. It throws `ReverieError` if the gateway refuses or does not answer.
 *
 * A call is repeated if the gateway does not answer. Calls that change something send an
 * `Idempotency-Key`, so that effects happen once.
 */
export class Reverie extends Operations {
  constructor(options: ReverieOptions) {
    const client = createClient(
      createConfig({
        baseUrl: options.url.replace(/\/+$/, ""),
        auth: options.key,
        throwOnError: true,
        headers: options.user ? { "Reverie-User": encodeURIComponent(options.user) } : {},
        fetch: retryingFetch(options),
        bodySerializer: (body: unknown) =>
          typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body),
      }),
    );
    client.interceptors.error.use((error, response, request) =>
      ReverieError.from(error, response, request),
    );
    super({ client });
  }

  /** Exports all that the key may read: the text of JSON lines, or else a `Blob` of a tar file. */
  override export<ThrowOnError extends boolean = true>(
    options?: Parameters<Operations["export"]>[0],
  ) {
    const isText = (options?.query?.format ?? "jsonl") === "jsonl";
    return super.export<ThrowOnError>({ parseAs: isText ? "text" : "blob", ...options } as never);
  }
}
