/**
 * Implements `EnvPool` with Node's worker threads: a batch whose envs are split among threads. Observations, rewards,
 * flags and actions are in memory shared by all threads. For a step, this thread writes a command for each worker (a
 * thread that runs `worker-node.ts`), then blocks until each has answered or the time limit has passed.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads"
import { Effect, Layer, type Scope } from "effect"
import type { BatchEnv, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { EnvPool, placeOf, type PoolOptions } from "../EnvPool.ts"
import { wrongLength } from "../internal/episodes.ts"
import { sizeOf } from "../Space.ts"
import {
  bytesFor,
  command,
  condition,
  control,
  type PoolReply,
  type PoolRequest,
  type Start,
  viewsOf,
} from "./shared.ts"
import { merge, part } from "./snapshots.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { compileCacheVariable } from "../../../base/files/compile-cache-node.ts"
import { programBeside } from "../../../base/files/programBeside.ts"

/** A worker thread, and the part of the batch that it steps: `count` envs, starting with env `first`. */
interface Thread {
  readonly worker: Worker
  readonly port: MessagePort
  /** The integers in shared memory by which this pool and the thread signal each other, see `control`. */
  readonly words: Int32Array
  readonly first: number
  readonly count: number
  /** The number of commands sent so far. */
  sent: number
  /** The reason why the thread gets no more commands (it ended, or didn't answer in time); undefined while it works. */
  lost: string | undefined
  /** Resolves when the thread is ready for commands, or when it has failed to start. */
  readonly up: Promise<void>
}

const entry = programBeside(import.meta.url, "worker-node")

const describeThread = ({ first, count }: Thread): string =>
  count === 1 ? `the worker of env ${first}` : `the worker of envs ${first} to ${first + count - 1}`

const sendCommand = (thread: Thread, kind: number): void => {
  // A lost thread may still be busy with its last command, which a new one would overwrite.
  if (thread.lost !== undefined) return
  Atomics.store(thread.words, control.command, kind)
  thread.sent++
  Atomics.store(thread.words, control.sent, thread.sent)
  Atomics.notify(thread.words, control.sent)
}

/** Waits until a thread has finished its last command. Throws if it failed, has ended, or needs more than `seconds`. */
const waitForAnswer = (env: Env, thread: Thread, seconds: number): void => {
  const { words, sent } = thread
  if (thread.lost !== undefined) throw new EnvError({ env: env.id, message: thread.lost })
  const markLost = (how: string): never => {
    thread.lost = `${env.id}: ${describeThread(thread)} ${how}`
    throw new EnvError({ env: env.id, message: thread.lost })
  }
  const deadline = performance.now() + seconds * 1000
  // Most steps end soon, so spin briefly before sleeping.
  for (let look = 0; look < 2000 && Atomics.load(words, control.done) < sent; look++);
  while (Atomics.load(words, control.done) < sent) {
    const left = deadline - performance.now()
    if (left <= 0) markLost(`has not answered for ${seconds} seconds`)
    // The wait below returns at once if the count is no longer `seen`, so an answer in between is not missed.
    const seen = Atomics.load(words, control.done)
    if (seen >= sent) break
    if (Atomics.load(words, control.ended) !== 0) {
      // The thread may have answered before it ended.
      if (Atomics.load(words, control.done) >= sent) break
      markLost("has ended: the env ended its process")
    }
    // The thread may end just before this wait, and then nothing wakes us: so wait only briefly.
    Atomics.wait(words, control.done, seen, Math.min(left, 100))
  }
  if (Atomics.load(words, control.state) !== condition.well) throw failureOf(env, thread, receive(thread))
}

/** Returns the reply to the last command, an empty one if there is none; drops late replies to earlier commands. */
const receive = ({ port, sent }: Thread): PoolReply => {
  for (;;) {
    const reply: PoolReply | undefined = receiveMessageOnPort(port)?.message
    if (reply === undefined || reply.command === sent) return reply ?? { command: sent }
  }
}

const snapshotOf = (env: Env, thread: Thread): Snapshot => {
  const { snapshot } = receive(thread)
  if (snapshot !== undefined) return snapshot
  throw invalid(env.id, `${describeThread(thread)} gave no snapshot`)
}

/** Makes the error for a failed command. A thread counts its envs from 0, so `first` is added to the env's index. */
const failureOf = (env: Env, { first }: Thread, { failure }: PoolReply): EnvError => {
  if (failure === undefined) return invalid(env.id, "a worker failed")
  if (failure.index === undefined) return new EnvError(failure)
  const index = failure.index + first
  return new EnvError({ ...failure, index, message: failure.message.replace(`env ${failure.index},`, `env ${index},`) })
}

const startThread = (start: Start) =>
  Effect.acquireRelease(
    Effect.sync((): Thread => {
      const { port1, port2 } = new MessageChannel()
      const worker = new Worker(entry, {
        workerData: { start, port: port2 },
        transferList: [port2],
        env: { ...process.env, ...compileCacheVariable() },
      })
      port1.unref()
      const words = new Int32Array(start.control)
      // The first command is to make the envs.
      Atomics.store(words, control.sent, 1)
      // If the thread dies, for example out of memory, it cannot report that itself.
      for (const end of ["error", "exit"]) worker.on(end, () => void Atomics.store(words, control.ended, 1))
      const up = new Promise<void>((resolve) => {
        for (const event of ["message", "error", "exit"]) worker.once(event, () => resolve())
      })
      return { worker, port: port1, words, first: start.first, count: start.count, sent: 1, lost: undefined, up }
    }),
    ({ worker }) => Effect.promise(() => worker.terminate()),
  )

/** Waits until a new thread has made its envs. This doesn't block: threads start only while the event loop turns. */
const untilReady = (env: Env, thread: Thread): Effect.Effect<void, EnvError> =>
  Effect.promise(() => thread.up).pipe(
    Effect.andThen(attempt(() => waitForAnswer(env, thread, 1), EnvError)),
    // From now on the thread doesn't keep the process alive.
    Effect.andThen(Effect.sync(() => thread.worker.unref())),
  )

const make = Effect.fnUntraced(function* (
  env: Env,
  numEnvs: number,
  options: PoolOptions,
): Effect.fn.Return<BatchEnv, EnvError, Scope.Scope> {
  const { autoReset = "same-step", firstIndex = 0, timeoutSeconds = 60 } = options
  const place = placeOf(env)
  if (place === undefined) {
    const problem = "workers can't find it; export it from its module as EnvPool.located(env, import.meta.url)"
    return yield* invalid(env.id, problem)
  }
  // The rows of a game with several agents stay together.
  const together = env.agents?.length ?? 1
  const workers = Math.min(Math.max(1, options.workers), Math.ceil(numEnvs / together))
  const memory = new SharedArrayBuffer(bytesFor(env, numEnvs))
  const bounds = Array.from({ length: workers + 1 }, (_, index) =>
    index === workers ? numEnvs : Math.floor((index * numEnvs) / workers / together) * together,
  )
  const threads = yield* Effect.forEach(bounds.slice(1), (end, index) =>
    startThread({
      place,
      total: numEnvs,
      first: bounds[index],
      count: end - bounds[index],
      autoReset,
      firstIndex,
      memory,
      control: new SharedArrayBuffer(4 * control.words),
    }),
  )
  yield* Effect.forEach(threads, (thread) => untilReady(env, thread), { concurrency: "unbounded" })

  const { actions, ...arrays } = viewsOf(memory, env, numEnvs, 0, numEnvs)
  const actionSize = sizeOf(env.actionSpace)

  /** Waits until all threads have answered, then throws the error of the first thread that failed, if any. */
  const settle = (): void => {
    let failure: unknown
    for (const thread of threads) {
      try {
        waitForAnswer(env, thread, timeoutSeconds)
      } catch (error) {
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
  }
  const ask = (request: (thread: Thread) => PoolRequest): void => {
    for (const thread of threads) {
      if (thread.lost === undefined) thread.port.postMessage(request(thread))
      sendCommand(thread, command.message)
    }
    settle()
  }

  return {
    id: env.id,
    numEnvs,
    autoReset,
    observationSpace: rowSpaceOf(env),
    actionSpace: env.actionSpace,
    observationSize: sizeOf(rowSpaceOf(env)),
    actionSize,
    ...arrays,
    reset: (seed, ...path) => ask(() => ({ kind: "reset", seed, path })),
    restart: (mask) => ask(({ first, count }) => ({ kind: "restart", mask: mask.slice(first, first + count) })),
    step: (batchActions) => {
      if (batchActions.length !== actions.length) throw wrongLength(env.id, numEnvs, actionSize, batchActions)
      actions.set(batchActions)
      for (const thread of threads) sendCommand(thread, command.step)
      settle()
    },
    snapshot: () => {
      ask(() => ({ kind: "snapshot" }))
      return merge(threads.map((thread) => snapshotOf(env, thread)))
    },
    restore: (snapshot) =>
      ask(({ first, count }) => ({ kind: "restore", snapshot: part(snapshot, first, count, numEnvs) })),
  }
})

/** Provides the `EnvPool` whose batches are stepped by Node's worker threads. */
export const layer: Layer.Layer<never> = Layer.succeed(EnvPool, { make })
