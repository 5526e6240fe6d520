/** Serves tasks or an env by OpenEnv's protocol, and talks to the server as a client. */
import { WebSocket } from "@effect/platform-node/NodeWS"
import { Effect, Schema, type Scope } from "effect"
import * as EnvTool from "../../../src/agents/task/EnvTool.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { servedTasks } from "../../../src/agents/openenv/ServedTasks.ts"
import { type EnvServerOptions, listen } from "../../../src/agents/openenv/listen-node.ts"
import type { EnvError } from "../../../src/base/EnvError.ts"
import type { ServedEnv } from "../../../src/spread/openenv/ServedEnv.ts"

const Message = Schema.Struct({ message: Schema.String })

const tools = EnvTool.all<number>([
  EnvTool.make({
    name: "echo",
    description: "Repeats a message.",
    parameters: Message,
    run: (calls, { message }) => ({ state: calls + 1, content: message }),
  }),
  EnvTool.make({
    name: "count",
    description: "Counts the calls so far.",
    parameters: Schema.Struct({}),
    run: (calls) => ({ state: calls, content: { calls } }),
  }),
])

/** A task that repeats what it is told, and ends at "end". The open episodes are counted. */
const echoTask = (number: number, open: Set<object>, withTools: boolean): TextEnv.TextEnv =>
  TextEnv.make<number>({
    id: `echo-${number}`,
    type: "echo",
    maxSteps: 4,
    begin: (random) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const episode = {}
            open.add(episode)
            return episode
          }),
          (episode) => Effect.sync(() => open.delete(episode)),
        ),
        () => ({ state: 0, observation: `Task ${number}, ${random.uint32()}.` }),
      ),
    ...(withTools && tools),
    step: (calls, action) =>
      action === "throw"
        ? Effect.die(new Error("broken"))
        : {
            state: calls,
            observation: action === "end" ? null : action,
            feedback: { score: action === "end" ? 1 : 0, target: null, message: action === "end" ? "Over." : "" },
            terminated: action === "end",
          },
  })

/** Makes three echo tasks an env that can be served. */
export const echo = (open: Set<object> = new Set(), withTools = true): Effect.Effect<ServedEnv, EnvError> =>
  servedTasks(
    TaskSet.of(
      "echo",
      [0, 1, 2].map((number) => echoTask(number, open, withTools)),
    ),
  )

export interface Client {
  readonly send: (message: unknown) => void
  /** Returns the next message; its code, if the connection was closed instead. */
  readonly next: () => Promise<unknown>
  readonly ask: (message: unknown) => Effect.Effect<unknown>
  readonly hangUp: () => void
  /** Stops reading what the server sends, or goes on. */
  readonly pause: () => void
  readonly resume: () => void
}

/** Opens a WebSocket until the scope closes. */
export const connect = (
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Effect.Effect<Client, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<WebSocket, Error>((resume) => {
      const socket = new WebSocket(url.replace("http", "ws"), { headers })
      socket.on("open", () => resume(Effect.succeed(socket)))
      socket.on("error", (error: Error) => resume(Effect.fail(error)))
    }),
    (socket) => Effect.sync(() => socket.terminate()),
  ).pipe(
    Effect.map((socket) => {
      const come: Array<unknown> = []
      const waiting: Array<(message: unknown) => void> = []
      const receive = (message: unknown): void => {
        const first = waiting.shift()
        if (first === undefined) come.push(message)
        else first(message)
      }
      socket.on("message", (data: Uint8Array) => receive(JSON.parse(new TextDecoder().decode(data))))
      socket.on("close", (code: number) => receive({ closed: code }))
      const next = () =>
        come.length > 0 ? Promise.resolve(come.shift()) : new Promise<unknown>((resolve) => waiting.push(resolve))
      const send = (message: unknown): void =>
        socket.send(typeof message === "string" || message instanceof Uint8Array ? message : JSON.stringify(message))
      const ask = (message: unknown) =>
        Effect.promise(() => {
          send(message)
          return next()
        })
      const hangUp = () => socket.terminate()
      return { send, next, ask, hangUp, pause: () => socket.pause(), resume: () => socket.resume() }
    }),
  )

/** Serves until the scope closes, and returns the address. */
export const served = (env: ServedEnv, options: Partial<EnvServerOptions> = {}) =>
  Effect.map(listen(env, options), (port) => `http://127.0.0.1:${port}`)

/** Sends a request, and returns the status and the JSON of the answer. */
export const request = (url: string, init: RequestInit = {}): Effect.Effect<readonly [number, unknown]> =>
  Effect.promise(async () => {
    const response = await fetch(url, init)
    return [response.status, await response.json()] as const
  })

export const post = (url: string, body: unknown) =>
  request(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
