import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layout } from "../../../../src/tensor/graph/Parameters.ts"
import { experience, type FeatureHooks } from "../../../../src/rl/learner/rollout/Experience.ts"
import { makeRollout } from "../../../../src/rl/learner/rollout/Rollout.ts"
import { withMemory } from "../../../../src/rl/learner/rollout/features.ts"
import type { Actor } from "../../../../src/rl/model/Actor.ts"
import { Backend, type Program } from "../../../../src/tensor/backend/Backend.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as Env from "../../../../src/rl/env/Env.ts"
import { box, discrete } from "../../../../src/rl/env/Space.ts"

/** Counts its steps. Its reset decides whether it is truncated after 3 steps or terminates after 5. */
const counter = Env.make({
  id: "counter",
  observationSpace: box(0, 100),
  actionSpace: discrete(2),
  reset: (random) => ({ at: 0, cut: random.integer(2) === 1 }),
  observe: ({ at }) => [at],
  step: ({ at, cut }) => ({
    state: { at: at + 1, cut },
    reward: at,
    terminated: !cut && at === 4,
    truncated: cut && at === 2,
  }),
})

const numEnvs = 5
const steps = 12

/** Its value is 100 × memory + observation, and its memory is the number of steps that the episode has had. */
const remembering = (): Program => {
  const feeds = {
    observations: new Float32Array(numEnvs),
    noise: new Float32Array(numEnvs),
    memory: new Float32Array(numEnvs),
    fresh: new Float32Array(numEnvs),
  }
  const results = {
    actions: new Int32Array(numEnvs),
    envActions: new Int32Array(numEnvs),
    values: new Float32Array(numEnvs),
    bonusValues: new Float32Array(numEnvs),
    nextMemory: new Float32Array(numEnvs),
  }
  const runSync = (): void => {
    for (let env = 0; env < numEnvs; env++) {
      const memory = feeds.fresh[env] === 1 ? 0 : feeds.memory[env]
      results.values[env] = 100 * memory + feeds.observations[env]
      results.bonusValues[env] = -results.values[env]
      results.nextMemory[env] = memory + 1
    }
  }
  const none = Effect.die("not needed here")
  return {
    name: "counting",
    device: "none",
    feeds,
    results,
    runSync,
    iterations: () => 1,
    run: none,
    read: () => none,
    write: () => none,
  }
}

const actor: Actor<"values" | "bonusValues"> = {
  parameters: {},
  noiseSize: 1,
  memorySize: 1,
  keeps: ["values", "bonusValues"],
  act: ({ observations }) => ({ actions: observations, kept: { values: observations, bonusValues: observations } }),
  greedy: ({ observations }) => ({ actions: observations }),
}

describe("a rollout", () => {
  it("values the final observation of a truncated episode with the memory of that episode", () => {
    const envs = Batch.make(counter, numEnvs)
    envs.reset(3)
    const act = remembering()
    const task = { ...counter, numEnvs, seed: 1, totalSteps: 1000 }
    const plain = experience({ name: "counting", task, actor, steps, returns: () => {} })
    const remembered = withMemory({ ...plain, sequence: 4 })
    assert.strictEqual(remembered.sequence, 4)
    const hooks: Array<FeatureHooks> = []
    const rollout = makeRollout(remembered, act, {}, hooks)
    const parts = { ...remembered, parameters: layout({}), fixed: layout({}), act, updates: [] }
    for (const start of remembered.features) {
      const compile = () => Effect.die("not needed here")
      const none = Layer.succeed(Backend, { name: "none", compile, compileAll: compile })
      hooks.push(Effect.runSync(start({ ...parts, rollout }).pipe(Effect.scoped, Effect.provide(none))))
    }
    let cuts = 0
    for (let iteration = 0; iteration < 3; iteration++) {
      for (const program of rollout.collect(envs, iteration)) program.runSync?.()
      const { values } = rollout.columns
      for (let row = 0; row < steps * numEnvs; row++) {
        // Memory and observation count the same steps.
        assert.strictEqual(values[row] % 101, 0)
        if (rollout.truncated[row] === 0) continue
        cuts++
        assert.strictEqual(rollout.atTruncation.values[row], 303)
        assert.strictEqual(rollout.atTruncation.bonusValues[row], -303)
      }
      for (const last of rollout.last.values) assert.strictEqual(last % 101, 0)
    }
    assert.isAbove(cuts, numEnvs)
    assert.isAbove(rollout.terminated.indexOf(1), -1)
  })
})
