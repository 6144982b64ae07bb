import type { Problem } from "./generated/types.gen.js";

/** A refusal by the gateway, or no answer from it (`code` is `unavailable`). */
export class ReverieError extends Error {
  override readonly name = "ReverieError";

  constructor(
    message: string,
    /** The stable code of the problem, as `not_found` or `conflict`. */
    readonly code: string,
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** The whole problem document (RFC 9457), if the gateway sent one. */
    readonly problem?: Problem,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  static from(error: unknown, response?: Response, request?: Request): ReverieError {
    if (error instanceof ReverieError) return error;
    if (response && isProblem(error)) {
      return new ReverieError(error.detail, error.code, response.status, error);
    }
    const where = request ? new URL(request.url).origin : "the gateway";
    if (response) {
      const code = response.status >= 500 ? "unavailable" : "malformed";
      return new ReverieError(
        `${where} answered ${response.status} without a problem document`,
        code,
        response.status,
      );
    }
    return new ReverieError(
      `the gateway at ${where} does not answer: does \`reverie up\` run?`,
      "unavailable",
      0,
      undefined,
      { cause: error },
    );
  }
}

function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "detail" in value;
}
