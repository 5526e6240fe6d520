/** Runs a gateway as `effect gateway` does, with its files in memory. */
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import OpenAI from "openai"
import { listen } from "../../../../src/agents/gateway/listen-node.ts"
import { execute, type PreparedGateway } from "../../../../src/agents/gateway/run/execute.ts"
import { prepare } from "../../../../src/agents/gateway/run/prepare.ts"
import type { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import { runLog } from "../../../../src/run/record/runLog.ts"
import { scores } from "../../../../src/run/record/scores.ts"
import { Recorder } from "../../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"

export const text = new TextDecoder()

interface Options {
  readonly files?: Map<string, Uint8Array>
  readonly resume?: string
  readonly config?: object
  readonly key?: string
}

/** Runs a gateway to a scripted model while `use` does, then interrupts it. */
export const running = Effect.fnUntraced(function* <A, E>(
  { files = new Map(), resume, config = {}, key }: Options,
  use: (url: string) => Effect.Effect<A, E>,
) {
  const prepared = yield* prepare(
    { lmConfig: { model: "scripted:echo" }, aliases: [{ name: "quick", model: "scripted:echo" }], ...config },
    { source: "test", overrides: [] },
  )
  const listening = yield* Deferred.make<number>()
  const gateway: PreparedGateway = {
    ...prepared,
    key: key === undefined ? null : Redacted.make(key),
    listen: (app) => listen({ ...app, host: "127.0.0.1", port: 0 }),
    onListening: (port) => Effect.asVoid(Deferred.succeed(listening, port)),
  }
  const { layer } = RunStore.memory({ files, ...(resume === undefined ? {} : { resume }) })
  const program = execute(gateway).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(layer, Recorder.layer(runLog, scores))),
  )
  const fiber = yield* Effect.forkChild(program)
  // If the gateway cannot start, fail instead of waiting.
  const ended = Effect.andThen(Fiber.join(fiber), Effect.die("the gateway ended before it listened"))
  const used = yield* use(`http://127.0.0.1:${yield* Effect.raceFirst(Deferred.await(listening), ended)}`)
  yield* Fiber.interrupt(fiber)
  return { used, exit: yield* Fiber.await(fiber), files }
})

export const fileIn = (files: ReadonlyMap<string, Uint8Array>, end: string): string | undefined => {
  const found = [...files].find(([path]) => path.endsWith(end))
  return found === undefined ? undefined : text.decode(found[1])
}

export const rolloutsIn = (files: ReadonlyMap<string, Uint8Array>): ReadonlyArray<Rollout> =>
  (fileIn(files, "rollouts.jsonl") ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

/** Asks a question in a session, by the name `quick` of the model. */
export const ask = (url: string, id: string, apiKey = "none", content = "Hi there") =>
  Effect.tryPromise({
    try: () =>
      new OpenAI({ baseURL: `${url}/sessions/${id}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
        model: "quick",
        messages: [{ role: "user", content }],
      }),
    catch: (error) => error,
  })
