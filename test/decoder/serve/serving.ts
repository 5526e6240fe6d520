/** Serves an engine at a socket of this machine while a test runs, with a client of the `openai` package. */
import { Effect, Exit, Logger, Scope } from "effect"
import OpenAI from "openai"
import { Engine, type EngineService } from "../../../src/decoder/inference/Engine.ts"
import { type ListenOptions, serve } from "../../../src/decoder/serve/server-node.ts"
import { chat, type FakeEngine, fakeEngine } from "./fakeEngine.ts"

export interface Serving<E> {
  readonly client: OpenAI
  readonly engine: E
  /** The messages in the server's log. */
  readonly logged: ReadonlyArray<string>
  /** The server's address, without a path. */
  readonly url: string
  /** Sends a body as JSON, and returns the status and the decoded answer. */
  readonly post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  /** Stops the server, and waits until its answers are complete. */
  readonly stop: () => Promise<void>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // The tests look into answers of any shape.
  readonly body: ReturnType<typeof JSON.parse>
}

export const servingEngine = async <E extends EngineService>(
  engine: E,
  options: Partial<ListenOptions>,
  test: (serving: Serving<E>) => Promise<void>,
): Promise<void> => {
  const scope = Effect.runSync(Scope.make())
  const logged: Array<string> = []
  const { port } = await Effect.runPromise(
    serve({ chat, host: "127.0.0.1", port: 0, ...options }).pipe(
      Effect.provideService(Engine, engine),
      Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])),
      Scope.provide(scope),
    ),
  )
  const url = `http://127.0.0.1:${port}`
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const post: Serving<E>["post"] = async (path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
  }
  try {
    await test({
      client: new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 }),
      engine,
      logged,
      url,
      post,
      stop,
    })
  } finally {
    await stop()
  }
}

export const serving = (
  options: Partial<ListenOptions> & Parameters<typeof fakeEngine>[0],
  test: (serving: Serving<FakeEngine>) => Promise<void>,
): Promise<void> => servingEngine(fakeEngine(options), options, test)
