import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { Effect } from "effect"
import * as Batch from "../Batch.ts"
import type { BatchEnv } from "../BatchEnv.ts"
import type { Env } from "../Env.ts"
import { EnvError } from "../EnvError.ts"
import { type Place, placeOf } from "../EnvPool.ts"
import { fromConfig } from "../fromConfig.ts"
import {
  type Arrays,
  command,
  condition,
  control,
  type Failure,
  type Reply,
  type Request,
  type Start,
  viewsOf,
} from "./shared.ts"

/** The code of a thread of a pool. It makes its envs, then waits for commands in shared memory, and never returns. */

const { start, port }: { readonly start: Start; readonly port: MessagePort } = workerData
const words = new Int32Array(start.control)

const answer = (state: number): void => {
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

const find = async ({ id, module, config }: Place): Promise<Env> => {
  if (module === undefined) return Effect.runSync(fromConfig(config, { source: "worker" }))
  const exported: unknown = await import(module)
  const values = typeof exported === "object" && exported !== null ? Object.values(exported) : []
  // A module such as `CartPole` is exported as a namespace, so its env is one level deeper.
  const env = values
    .flatMap((value) =>
      typeof value === "object" && value !== null && !isEnv(value) ? [value, ...Object.values(value)] : [value],
    )
    .find((value) => isEnv(value) && value.id === id && placeOf(value) !== undefined)
  if (isEnv(env)) return env
  const message = `${id}: ${module} exports no env of that id that was made by EnvPool.located(…, import.meta.url)`
  throw new EnvError({ env: id, message })
}

const failureOf = (error: unknown): Failure => {
  if (!(error instanceof EnvError)) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    const stack = error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {}
    return { env: start.place.id, message: `${start.place.id}: ${text}`, ...stack }
  }
  const { env, message, index, episode, step, userStack } = error
  return {
    env,
    message,
    ...(index === undefined ? {} : { index }),
    ...(episode === undefined ? {} : { episode }),
    ...(step === undefined ? {} : { step }),
    ...(userStack === undefined ? {} : { userStack }),
  }
}

/** Replies to the current command. */
const reply = (content: Omit<Reply, "command">): void => {
  const message: Reply = { command: Atomics.load(words, control.done) + 1, ...content }
  port.postMessage(message)
}

const fail = (error: unknown): void => {
  reply({ failure: failureOf(error) })
  answer(condition.failed)
}

/** Copies results to shared memory if the batch could not write them there, because a wrapper has its own arrays. */
const publish = (batch: BatchEnv, arrays: Arrays): void => {
  if (batch.observations !== arrays.observations) arrays.observations.set(batch.observations)
  if (batch.finalObservations !== arrays.finalObservations) arrays.finalObservations.set(batch.finalObservations)
  if (batch.rewards !== arrays.rewards) arrays.rewards.set(batch.rewards)
  if (batch.terminated !== arrays.terminated) arrays.terminated.set(batch.terminated)
  if (batch.truncated !== arrays.truncated) arrays.truncated.set(batch.truncated)
}

const obey = (batch: BatchEnv, arrays: Arrays): void => {
  if (Atomics.load(words, control.command) === command.step) {
    batch.step(arrays.actions)
    return
  }
  const request: Request = receiveMessageOnPort(port)?.message
  switch (request.kind) {
    case "reset":
      batch.reset(request.seed, ...request.path)
      return
    case "restart":
      batch.restart(request.mask)
      return
    case "restore":
      batch.restore(request.snapshot)
      return
    case "snapshot":
      reply({ snapshot: batch.snapshot() })
  }
}

const serve = (batch: BatchEnv, arrays: Arrays): never => {
  for (let done = 1; ; done++) {
    // The next command often comes at once, so spin briefly before sleeping.
    for (let look = 0; look < 2000 && Atomics.load(words, control.sent) === done; look++);
    while (Atomics.load(words, control.sent) === done) Atomics.wait(words, control.sent, done)
    try {
      obey(batch, arrays)
      publish(batch, arrays)
      answer(condition.well)
    } catch (error) {
      fail(error)
    }
  }
}

try {
  const { total, first, count, autoReset, firstIndex } = start
  const env = await find(start.place)
  const arrays = viewsOf(start.memory, env, total, first, count)
  const batch = Batch.make(env, count, { autoReset, firstIndex: firstIndex + first, arrays })
  // Making the envs was the first command.
  answer(condition.well)
  parentPort?.postMessage("ready")
  serve(batch, arrays)
} catch (error) {
  fail(error)
  parentPort?.postMessage("failed")
}
