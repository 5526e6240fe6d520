import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import type { AutoReset, BatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { EnvPool, type PoolOptions } from "../../../../src/rl/env/EnvPool.ts"
import * as KeyDoor from "../../../../src/rl/env/grid/KeyDoor.ts"
import * as Breakout from "../../../../src/rl/env/pixel/Breakout.ts"
import * as Wrapper from "../../../../src/rl/env/Wrapper.ts"
import * as pool from "../../../../src/rl/env/pool/pool-node.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { keep } from "../../train/inMemory.ts"
import { resumable } from "../../train/resumable.ts"
import { blindPole, drunkard, hoarder, leaver, looper, thrower } from "./envs.ts"

const pooled = (env: Env, numEnvs: number, options: PoolOptions) =>
  Effect.flatMap(EnvPool, ({ make }) => make(env, numEnvs, options)).pipe(Effect.provide(pool.layer))

const actionsFor = (envs: BatchEnv, step: number): Int32Array => {
  const random = stream(9, step)
  const { actionSpace } = envs
  return Int32Array.from({ length: envs.numEnvs }, () =>
    random.integer(actionSpace._tag === "Discrete" ? actionSpace.n : 1),
  )
}

/** All that can be seen of a batch; final observations only where there are any. */
const seenOf = (envs: BatchEnv) => ({
  observations: Array.from(envs.observations),
  rewards: Array.from(envs.rewards),
  terminated: Array.from(envs.terminated),
  truncated: Array.from(envs.truncated),
  final: Array.from(envs.finalObservations).filter((_, at) => {
    const index = Math.floor(at / envs.observationSize)
    return (envs.terminated[index] | envs.truncated[index]) !== 0
  }),
})

const advance = (envs: BatchEnv, step: number) => {
  if (envs.autoReset === "disabled") {
    const ended = Uint8Array.from(envs.terminated, (flag, index) => flag | envs.truncated[index])
    if (ended.includes(1)) envs.restart(ended)
  }
  envs.step(actionsFor(envs, step))
  return seenOf(envs)
}

const modes: ReadonlyArray<AutoReset> = ["same-step", "next-step", "disabled"]
const corridor = Wrapper.timeLimit(KeyDoor.make({ size: 7, rooms: 3, layoutSeed: 2 }), 9)
const envs: ReadonlyArray<Env> = [Breakout.env, corridor, drunkard, blindPole]

describe("a pool of worker threads", () => {
  for (const env of envs) {
    it.effect(`${env.id}: equals the batch in process to the bit, in every mode, for any number of workers`, () =>
      Effect.gen(function* () {
        for (const [index, autoReset] of modes.entries()) {
          const workers = 1 + index
          const threads = yield* pooled(env, 5, { workers, autoReset, firstIndex: 2 })
          const here = Batch.make(env, 5, { autoReset, firstIndex: 2 })
          for (const batch of [threads, here]) batch.reset(4, "pool", 1)
          assert.deepEqual(seenOf(threads), seenOf(here))
          for (let step = 0; step < 40; step++) assert.deepEqual(advance(threads, step), advance(here, step))
        }
      }).pipe(Effect.scoped),
    )

    it.effect(`${env.id}: a snapshot of two workers continues with three, and with none`, () =>
      Effect.gen(function* () {
        const two = yield* pooled(env, 5, { workers: 2 })
        two.reset(1)
        for (let step = 0; step < 20; step++) advance(two, step)
        const saved = two.snapshot()
        const three = yield* pooled(env, 5, { workers: 3 })
        const none = Batch.make(env, 5)
        for (const batch of [three, none]) batch.restore(saved)
        for (let step = 20; step < 50; step++) {
          const expected = advance(two, step)
          assert.deepEqual(advance(three, step), expected)
          assert.deepEqual(advance(none, step), expected)
        }
        // And back.
        three.restore(none.snapshot())
        assert.deepEqual(advance(three, 50), advance(none, 50))
      }).pipe(Effect.scoped),
    )
  }

  it.effect("reports which env threw what where, as in process, with the env's own stack", () =>
    Effect.gen(function* () {
      const failing = (batch: BatchEnv) =>
        Effect.try({
          try: () => {
            batch.reset(1)
            for (let step = 0; step < 6; step++) batch.step(Int32Array.of(0, 0, 0, 0, step === 3 ? 1 : 0))
          },
          catch: (error) => error,
        }).pipe(Effect.flip)
      const there = yield* failing(yield* pooled(thrower, 5, { workers: 2 }))
      const here = yield* failing(Batch.make(thrower, 5))
      for (const key of ["message", "index", "episode", "step", "env"])
        assert.deepInclude(there, { [key]: Object(here)[key] })
      assert.include(String(Object(there).message), "thrower: env 4, episode 0, step 4: step threw RangeError")
      assert.include(String(Object(there).userStack), "theSensorIsOff")
    }).pipe(Effect.scoped),
  )

  const broken = (env: Env, timeoutSeconds: number) =>
    Effect.gen(function* () {
      const batch = yield* pooled(env, 4, { workers: 2, timeoutSeconds })
      batch.reset(1)
      return yield* Effect.try({
        try: () => {
          for (let step = 0; step < 6; step++) batch.step(Int32Array.of(0, 0, 0, 1))
        },
        catch: (error) => String(Object(error).message),
      }).pipe(Effect.flip)
    }).pipe(Effect.scoped)

  it.effect("reports that an env ended its thread", () =>
    Effect.gen(function* () {
      assert.match(yield* broken(leaver, 600), /leaver: the worker of envs 2 to 3 has ended/)
    }),
  )

  it.effect("gives up on an env that does not answer", () =>
    Effect.gen(function* () {
      assert.match(yield* broken(looper, 3), /looper: the worker of envs 2 to 3 has not answered for 3 seconds/)
    }),
  )

  it.effect("sends no more commands to a thread that did not answer", () =>
    Effect.gen(function* () {
      const batch = yield* pooled(looper, 2, { workers: 1, timeoutSeconds: 3 })
      batch.reset(1)
      for (let step = 0; step < 3; step++) batch.step(Int32Array.of(0, 0))
      for (const body of [() => batch.step(Int32Array.of(1, 1)), () => batch.snapshot(), () => batch.reset(2)])
        assert.throws(body, /looper: the worker of envs 0 to 1 has not answered for 3 seconds/)
    }).pipe(Effect.scoped),
  )

  it.effect("doesn't take a late answer for the answer to the next command", () =>
    Effect.gen(function* () {
      const batch = yield* pooled(hoarder, 2, { workers: 2 })
      batch.reset(1)
      batch.step(Int32Array.of(1, 0))
      // The first can't be saved; what the second says meanwhile is of no use any more.
      assert.throws(() => batch.snapshot(), /hoarder/)
      batch.reset(1)
      batch.step(Int32Array.of(0, 0))
      batch.step(Int32Array.of(0, 0))
      const here = Batch.make(hoarder, 2)
      here.reset(1)
      for (let step = 0; step < 2; step++) here.step(Int32Array.of(0, 0))
      assert.deepEqual(batch.snapshot(), here.snapshot())
    }).pipe(Effect.scoped),
  )

  it.effect("refuses an env that only this thread has, with a hint", () =>
    Effect.gen(function* () {
      const wrapped = Wrapper.timeLimit(drunkard, 5)
      const error = yield* Effect.flip(Effect.scoped(pooled(wrapped, 2, { workers: 1 })))
      assert.include(error.message, "export it from its module as EnvPool.located(env, import.meta.url)")
    }),
  )

  it.effect("is refused if the platform has no threads", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(keep({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 100, workers: 2 }))
      assert.include(error.message, "2 workers need threads, which this platform doesn't have")
    }),
  )
})

describe("a training with workers", () => {
  const input = {
    env: drunkard,
    numEnvs: 4,
    algorithm: Ppo.make({ nsteps: 16, hidden: [16] }),
    totalSteps: 1024,
    normalize: { observations: true },
  }
  const layer = Layer.merge(Wasm.layer, pool.layer)

  it.effect("has the digest and validations of one without, for 1, 2 and 4 workers", () =>
    Effect.gen(function* () {
      const withWorkers = (workers: number) =>
        keep({ ...input, workers, validation: { everySteps: 512, episodes: 10, workers } }, layer)
      const none = yield* withWorkers(0)
      for (const workers of [1, 2, 4]) {
        const { result } = yield* withWorkers(workers)
        assert.strictEqual(result.digest, none.result.digest)
        assert.deepEqual(result.validation, none.result.validation)
      }
    }),
  )

  it.effect("saved with two workers resumes without workers to the same end", () =>
    Effect.gen(function* () {
      const { whole, resumed } = yield* resumable({ ...input, workers: 2 }, 512, { workers: 0 }, layer)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )
})
