/** Runs in the threads that `pool-node.ts` starts: makes a thread's envs, then executes the pool's commands. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { Effect, Schema, Scope } from "effect"
import * as Batch from "../Batch.ts"
import type { BatchEnv } from "../BatchEnv.ts"
import type { Env } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { type EnvSource, placeOf } from "../EnvPool.ts"
import { fromConfig } from "../fromConfig.ts"
import {
  type PoolArrays,
  command,
  condition,
  control,
  type PoolReply,
  type PoolRequest,
  type Start,
  viewsOf,
} from "./shared.ts"

const { start, port }: { readonly start: Start; readonly port: MessagePort } = workerData
const words = new Int32Array(start.control)

/** Tells the pool that the current command is finished, and with which result: a value of `condition`. */
const finishCommand = (state: number): void => {
  Atomics.store(words, control.state, state)
  Atomics.add(words, control.done, 1)
  Atomics.notify(words, control.done)
}

// The pool blocks its event loop while it waits, so it learns of this thread's end only through shared memory.
process.on("exit", () => {
  Atomics.store(words, control.ended, 1)
  Atomics.notify(words, control.done)
})

const isEnv = (value: unknown): value is Env =>
  typeof value === "object" && value !== null && "id" in value && "observe" in value && "step" in value

const findEnv = async ({ id, module, config }: EnvSource): Promise<Env> => {
  if (module === undefined) return Effect.runSync(fromConfig(config, { source: "worker" }))
  const exported: unknown = await import(module)
  const values = typeof exported === "object" && exported !== null ? Object.values(exported) : []
  // An export can be a namespace such as `CartPole`, which contains an env, so look one level deeper, too.
  const env = values
    .flatMap((value) =>
      typeof value === "object" && value !== null && !isEnv(value) ? [value, ...Object.values(value)] : [value],
    )
    .find((value) => isEnv(value) && value.id === id && placeOf(value) !== undefined)
  if (isEnv(env)) return env
  throw invalid(id, `${module} exports no env of that id that was made by EnvPool.located(…, import.meta.url)`)
}

const failureOf = (error: unknown): EnvError => {
  if (error instanceof EnvError) return error
  const { id } = start.place
  if (!(error instanceof Error)) return invalid(id, String(error))
  const { name, message, stack } = error
  return new EnvError({
    env: id,
    message: `${id}: ${name}: ${message}`,
    ...(stack !== undefined && { userStack: stack }),
  })
}

/** Sends the pool an error or a snapshot as the reply to the current command. Call it before `finishCommand`. */
const reply = (content: Omit<PoolReply, "command">): void => {
  const message: PoolReply = { command: Atomics.load(words, control.done) + 1, ...content }
  port.postMessage(message)
}

const fail = (error: unknown): void => {
  reply({ failure: Schema.encodeSync(EnvError)(failureOf(error)) })
  finishCommand(condition.failed)
}

const results = ["observations", "finalObservations", "rewards", "terminated", "truncated", "diverged"] as const

/** Copies results to shared memory if the batch could not write them there, because a wrapper has its own arrays. */
const publish = (batch: BatchEnv, arrays: PoolArrays): void => {
  for (const key of results) {
    const [own, shared] = [batch[key], arrays[key]]
    if (own !== undefined && own !== shared) shared?.set(own)
  }
}

const execute = (batch: BatchEnv, arrays: PoolArrays): void => {
  if (Atomics.load(words, control.command) === command.step) return batch.step(arrays.actions)
  const request: PoolRequest = receiveMessageOnPort(port)?.message
  if (request.kind === "reset") batch.reset(request.seed, ...request.path)
  else if (request.kind === "restart") batch.restart(request.mask)
  else if (request.kind === "restore") batch.restore(request.snapshot)
  else reply({ snapshot: batch.snapshot() })
}

const serve = (batch: BatchEnv, arrays: PoolArrays): never => {
  for (let done = 1; ; done++) {
    // The next command often comes at once, so spin briefly before sleeping.
    for (let look = 0; look < 2000 && Atomics.load(words, control.sent) === done; look++);
    while (Atomics.load(words, control.sent) === done) Atomics.wait(words, control.sent, done)
    try {
      execute(batch, arrays)
      publish(batch, arrays)
      finishCommand(condition.well)
    } catch (error) {
      fail(error)
    }
  }
}

try {
  const { total, first, count, autoReset, firstIndex } = start
  const env = await findEnv(start.place)
  const arrays = viewsOf(start.memory, env, total, first, count)
  // The end of this thread closes what the env has loaded.
  await Effect.runPromise(Scope.provide(env.prepare ?? Effect.void, Scope.makeUnsafe()))
  const batch = Batch.make(env, count, { autoReset, firstIndex: firstIndex + first, arrays })
  // The pool counts making the envs as the first command, so report that it is finished.
  finishCommand(condition.well)
  parentPort?.postMessage("ready")
  serve(batch, arrays)
} catch (error) {
  fail(error)
  parentPort?.postMessage("failed")
}
