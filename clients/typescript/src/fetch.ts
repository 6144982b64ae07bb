import type { ReverieOptions } from "./index.js";

const POSITION_HEADER = "Reverie-Position";
const READING_POSTS = new Set(["/v1/recall"]);
const UNAVAILABLE = new Set([502, 503, 504]);
const MAX_RETRY_AFTER_SECONDS = 10;

/**
 * A `fetch` that repeats calls that were not answered, and that tells reads the position of the
 * last write, so that they see it whichever server answers.
 */
export function retryingFetch(options: ReverieOptions): typeof fetch {
  const send = options.fetch ?? fetch;
  const maxAttempts = options.maxAttempts ?? 4;
  const timeout = options.timeout ?? 30_000;
  let position: string | undefined;

  return async (input, init) => {
    const request = new Request(input, init);
    const isStream = request.headers.get("Accept") === "text/event-stream";
    const { pathname } = new URL(request.url);
    if (request.method === "GET" || READING_POSTS.has(pathname)) {
      if (position !== undefined) request.headers.set(POSITION_HEADER, position);
    } else if (!request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    for (let attempt = 1; ; attempt++) {
      const limit = new AbortController();
      // Until the answer begins: a large download may take longer.
      const timer = isStream ? undefined : setTimeout(() => limit.abort(timedOut()), timeout);
      const signal = AbortSignal.any([request.signal, limit.signal]);
      const isLast = attempt >= maxAttempts;
      try {
        const response = await send(new Request(request.clone(), { signal }));
        clearTimeout(timer);
        position = later(position, response.headers.get(POSITION_HEADER));
        const delay = retryDelay(response, attempt);
        if (isLast || delay === undefined) return response;
        await response.body?.cancel();
        await sleep(delay);
      } catch (error) {
        clearTimeout(timer);
        if (isLast || request.signal.aborted) throw error;
        await sleep(jitter(attempt));
      }
    }
  };
}

/** Milliseconds to wait before the call is repeated; undefined if it is not. */
function retryDelay(response: Response, attempt: number): number | undefined {
  const header = response.headers.get("Retry-After");
  // A date is no number of seconds: the pause is then that of any other answer.
  const seconds = Number(header) || 0;
  const isInFlight = response.status === 409 && header !== null;
  const isSoon = response.status === 429 && seconds <= MAX_RETRY_AFTER_SECONDS;
  if (!isInFlight && !isSoon && !UNAVAILABLE.has(response.status)) return undefined;
  return 1000 * Math.min(seconds, MAX_RETRY_AFTER_SECONDS) + jitter(attempt);
}

function timedOut(): DOMException {
  return new DOMException("the gateway did not answer in time", "TimeoutError");
}

function jitter(attempt: number): number {
  return Math.random() * Math.min(2000, 100 * 2 ** attempt);
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** The later of two positions in the log, such as `0/16B3748`. */
function later(one: string | undefined, other: string | null): string | undefined {
  if (other === null) return one;
  return one === undefined || offset(other) > offset(one) ? other : one;
}

function offset(position: string): bigint {
  const [high, low] = position.split("/");
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}
