import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Batch from "../src/rl/env/Batch.ts"
import type { AutoReset, BatchEnv } from "../src/rl/env/BatchEnv.ts"
import * as Env from "../src/rl/env/Env.ts"
import * as EpisodeLog from "../src/rl/env/EpisodeLog.ts"
import { fromText } from "../src/rl/env/internal/plainData.ts"
import * as Normalise from "../src/rl/env/Normalise.ts"
import * as ApplePicker from "../src/rl/env/grid/ApplePicker.ts"
import { builtIn } from "../src/rl/env/Envs.ts"
import { box, discrete, sizeOf } from "../src/rl/env/Space.ts"
import * as Wrapper from "../src/rl/env/Wrapper.ts"
import { tries } from "../test/house/tries.ts"
import { prepared } from "../test/rl/env/prepared.ts"

/** A user's env with everything that is hard to carry on: randomness in its steps, and a state with odd numbers. */
const drunkard = Env.make({
  id: "drunkard",
  observationSpace: box(-100, 100, [2]),
  actionSpace: discrete(3),
  reset: (random) => ({
    at: random.between(-1, 1),
    trail: [-0],
    best: Number.NEGATIVE_INFINITY,
    beer: Uint8Array.of(3),
  }),
  observe: ({ at, trail }) => [at, trail.length],
  step: ({ at, trail, best, beer }, action, random) => {
    const next = at + (action - 1) * 0.1 + 0.3 * random.normal()
    const state = {
      at: next,
      trail: [...trail, next],
      best: Math.max(best, next),
      beer: beer.map((sips) => sips + random.integer(2)),
    }
    return { state, reward: next, terminated: Math.abs(next) > 1.5 }
  },
})

/** Pictures of 84 × 84 take long to compare; the same rules hold on a small one. */
const small = builtIn.filter(({ observationSpace }) => sizeOf(observationSpace) < 2000)
const envs: ReadonlyArray<Env.Env> = [...small, ApplePicker.make({ size: 10, apples: 5 }), drunkard]
prepared(small)

const anyEnv = fc
  .constantFrom(...envs)
  .chain((env) => fc.integer({ min: 1, max: 30 }).map((limit) => Wrapper.timeLimit(env, limit)))
const anyMode = fc.constantFrom<AutoReset>("same-step", "next-step", "disabled")
const seed = fc.nat({ max: 2 ** 31 })

/** Some action of env `index` in the `step`th step of its `episode`, without asking anybody. */
const choose = (envs: BatchEnv, episode: number, step: number, index: number, element: number): number => {
  const mixed = Math.imul(episode * 7919 + step * 104729 + index * 1299709 + element * 15485863 + 1, 0x9e3779b1) >>> 8
  return envs.actionSpace._tag === "Discrete" ? mixed % envs.actionSpace.n : ((mixed % 2001) / 1000 - 1) * 2.5
}

const act = (envs: BatchEnv, at: (index: number, element: number) => number): Float32Array => {
  const size = sizeOf(envs.actionSpace)
  return Float32Array.from({ length: envs.numEnvs * size }, (_, flat) => at(Math.floor(flat / size), flat % size))
}

/** One step with actions by its number, and all that can be seen of the batch then. */
const advance = (envs: BatchEnv, step: number, firstIndex = 0) => {
  if (envs.autoReset === "disabled") {
    const ended = Uint8Array.from(envs.terminated, (flag, index) => flag | envs.truncated[index])
    if (ended.includes(1)) envs.restart(ended)
  }
  envs.step(act(envs, (index, element) => choose(envs, 0, step, firstIndex + index, element)))
  return rowsOf(envs)
}

const rowsOf = (envs: BatchEnv) =>
  Array.from({ length: envs.numEnvs }, (_, index) => {
    const row = (all: Float32Array) =>
      Array.from(all.subarray(index * envs.observationSize, (index + 1) * envs.observationSize))
    const ended = (envs.terminated[index] | envs.truncated[index]) !== 0
    return {
      observation: row(envs.observations),
      reward: envs.rewards[index],
      terminated: envs.terminated[index],
      truncated: envs.truncated[index],
      final: ended ? row(envs.finalObservations) : [],
    }
  })

/** Returns the internal states of envs whose state is a list of numbers, or that batch such envs. */
const statesOf = (envs: BatchEnv): ReadonlyArray<ReadonlyArray<number>> => {
  const saved = envs.snapshot()
  const text = saved["states"]
  if (text instanceof Uint8Array) {
    const states = fromText(new TextDecoder().decode(text))
    return Array.isArray(states) ? states.map((state) => (Array.isArray(state) ? state : [])) : []
  }
  const columns = Object.entries(saved).filter(([key]) => key.startsWith("state."))
  return Array.from({ length: envs.numEnvs }, (_, index) =>
    columns.filter(([key]) => key !== "state.sines").map(([, column]) => column[index]),
  )
}

describe("a batch", () => {
  it("of the env's own equals the env's pure functions to the bit", () => {
    fc.assert(
      fc.property(anyEnv, anyMode, fc.integer({ min: 1, max: 5 }), seed, (env, autoReset, numEnvs, seed) => {
        const own = Batch.make(env, numEnvs, { autoReset })
        const pure = Batch.oneByOne(env, numEnvs, { autoReset })
        for (const envs of [own, pure]) envs.reset(seed, "law", 1)
        assert.deepEqual(rowsOf(own), rowsOf(pure))
        for (let step = 0; step < 40; step++) assert.deepEqual(advance(own, step), advance(pure, step))
        assert.deepEqual(statesOf(own), statesOf(pure))
      }),
      { numRuns: tries(150) },
    )
  })

  it("of N envs equals N batches of one", () => {
    fc.assert(
      fc.property(anyEnv, anyMode, fc.integer({ min: 2, max: 5 }), seed, (env, autoReset, numEnvs, seed) => {
        const together = Batch.make(env, numEnvs, { autoReset })
        const alone = Array.from({ length: numEnvs }, (_, firstIndex) => Batch.make(env, 1, { autoReset, firstIndex }))
        together.reset(seed, "law")
        for (const one of alone) one.reset(seed, "law")
        for (let step = 0; step < 40; step++) {
          assert.deepEqual(
            advance(together, step),
            alone.flatMap((one, index) => advance(one, step, index)),
          )
        }
      }),
      { numRuns: tries(60) },
    )
  })

  it("continues from a snapshot as if it had never stopped, also in another batch", () => {
    const wrapped = fc.constantFrom(
      (envs: BatchEnv): BatchEnv => envs,
      (envs: BatchEnv): BatchEnv => EpisodeLog.record(Normalise.rewards(Normalise.observations(envs))),
      (envs: BatchEnv): BatchEnv => Normalise.observations(EpisodeLog.record(envs)),
    )
    const stacked = anyEnv.chain((env) =>
      fc.constantFrom<Env.Env>(
        env,
        Wrapper.frameStack(env, 3),
        Wrapper.stickyActions(env),
        Wrapper.scaleReward(env, 0.5),
      ),
    )
    fc.assert(
      fc.property(stacked, anyMode, wrapped, fc.nat({ max: 35 }), seed, (env, autoReset, wrap, when, seed) => {
        const envs = wrap(Batch.make(env, 3, { autoReset }))
        envs.reset(seed, "law")
        for (let step = 0; step < when; step++) advance(envs, step)
        const saved = envs.snapshot()
        const seen = rowsOf(envs)
        const rest = () => Array.from({ length: 20 }, (_, step) => advance(envs, when + step))
        const first = rest()
        envs.restore(saved)
        assert.deepEqual(rowsOf(envs), seen)
        assert.deepEqual(rest(), first)
        const other = wrap(Batch.make(env, 3, { autoReset }))
        other.restore(saved)
        assert.deepEqual(
          Array.from({ length: 20 }, (_, step) => advance(other, when + step)),
          first,
        )
      }),
      { numRuns: tries(100) },
    )
  })

  it("plays the same episodes in every auto-reset mode", () => {
    /** Returns the steps of env 0 by episode, when each action depends on the episode and the step alone. */
    const episodes = (env: Env.Env, autoReset: AutoReset, seed: number) => {
      const envs = Batch.make(env, 1, { autoReset })
      envs.reset(seed)
      const lived: Array<Array<unknown>> = [[]]
      let [episode, step, ended] = [0, 0, false]
      for (let count = 0; count < 60; count++) {
        if (ended && autoReset === "disabled") envs.restart(Uint8Array.of(1))
        if (ended && autoReset === "next-step") envs.step(act(envs, () => 0))
        const before = Array.from(envs.observations)
        envs.step(act(envs, (index, element) => choose(envs, episode, step, index, element)))
        const [row] = rowsOf(envs)
        ended = row.final.length > 0
        lived[episode].push([before, row.reward, row.terminated, row.truncated, row.final])
        step = ended ? 0 : step + 1
        if (ended) {
          episode++
          lived.push([])
        }
      }
      return lived
    }
    fc.assert(
      fc.property(anyEnv, seed, (env, seed) => {
        const expected = episodes(env, "same-step", seed)
        assert.deepEqual(episodes(env, "next-step", seed), expected)
        assert.deepEqual(episodes(env, "disabled", seed), expected)
      }),
      { numRuns: tries(60) },
    )
  })

  it("never plays longer than its time limit", () => {
    fc.assert(
      fc.property(anyEnv, anyMode, seed, (env, autoReset, seed) => {
        const envs = EpisodeLog.record(Batch.make(env, 2, { autoReset }))
        envs.reset(seed)
        for (let step = 0; step < 80; step++) advance(envs, step)
        const { lengths, truncated, length } = envs.episodes
        const limit = env.maxSteps ?? Infinity
        assert.isTrue(length > 0)
        for (let at = 0; at < length; at++) {
          assert.isAtMost(lengths[at], limit)
          assert.strictEqual(truncated[at] === 1, lengths[at] === limit)
        }
      }),
      { numRuns: tries(60) },
    )
  })
})
