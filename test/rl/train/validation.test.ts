import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { Policy } from "../../../src/rl/learner/Learner.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { EnvError } from "../../../src/base/EnvError.ts"
import * as Breakout from "../../../src/rl/env/pixel/Breakout.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { input, reshape, argMax, slice } from "../../../src/tensor/graph/ops.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import { scalarsOf } from "../../../src/run/record/scalars.ts"
import { makeValidator, shares } from "../../../src/rl/train/validation/PolicyValidator.ts"
import { keep } from "./inMemory.ts"

/** Pays only in its last step; episodes are of 1 to 20 steps. */
const goal = Env.make({
  id: "goal",
  observationSpace: box(0, 100),
  actionSpace: discrete(2),
  reset: (random) => ({ left: 1 + random.integer(20), worth: 1 + random.integer(5) }),
  observe: ({ left }) => [left],
  step: ({ left, worth }) => ({
    state: { left: left - 1, worth },
    reward: left === 1 ? worth : 0,
    terminated: left === 1,
  }),
})

/** Always the first action, for as many lanes as there are. */
const constantPolicy = (numEnvs: number): Effect.Effect<Policy, never, Backend | Scope.Scope> =>
  Effect.gen(function* () {
    const { compile } = yield* Backend
    const observations = input("observations", [numEnvs, 1])
    const program = yield* Effect.orDie(
      compile({
        name: "constant",
        inputs: { observations },
        state: {},
        outputs: { actions: argMax(reshape(slice(observations, [0, 0], [numEnvs, 1]), [numEnvs, 1])) },
      }),
    )
    const seen = program.feeds.observations
    const { actions } = program.results
    if (!(seen instanceof Float32Array) || !(actions instanceof Int32Array)) return yield* Effect.die("kinds")
    return { program, observations: seen, noise: undefined, actions, refresh: Effect.void }
  })

const outcomeOf = (envs: ReadonlyArray<Env.Env>, episodes: number, maxSteps = 1000) =>
  Effect.gen(function* () {
    const backend = yield* Backend
    const batches = shares(episodes, envs.length).map(({ first, count }, index) => ({
      envId: envs[index].id,
      first,
      envs: Batch.make(envs[index], count, { firstIndex: first }),
    }))
    const policyFor = (numEnvs: number) => Effect.provideService(constantPolicy(numEnvs), Backend, backend)
    const validator = yield* makeValidator(batches, policyFor, { maxSteps, sampled: false, agents: [] })
    return yield* validator.validate(3, 0)
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("shares", () => {
  it("gives each env as many episodes, and what is left to the last ones", () => {
    const counts = (episodes: number, envs: number) => shares(episodes, envs).map(({ count }) => count)
    assert.deepEqual(counts(7, 3), [2, 2, 3])
    assert.deepEqual(counts(50, 8), [6, 6, 6, 6, 6, 6, 7, 7])
    assert.deepEqual(counts(4, 4), [1, 1, 1, 1])
    for (const [episodes, envs] of [
      [50, 8],
      [7, 3],
      [9, 1],
    ]) {
      let next = 0
      for (const { first, count } of shares(episodes, envs)) {
        assert.strictEqual(first, next)
        next += count
      }
      assert.strictEqual(next, episodes)
    }
  })
})

describe("a validation", () => {
  it.effect("counts the reward of the last step, in exactly as many episodes as were asked for", () =>
    Effect.gen(function* () {
      const { episodes } = yield* outcomeOf([goal], 50)
      assert.strictEqual(episodes.length, 50)
      assert.isTrue(episodes.every((episode) => episode.return >= 1 && episode.terminated))
      assert.isAbove(new Set(episodes.map(({ length }) => length)).size, 10)
    }),
  )

  it.effect("has the same outcome to the last bit, however many envs share the episodes", () =>
    Effect.gen(function* () {
      const alone = yield* outcomeOf([goal], 50)
      for (const envs of [2, 3, 8, 50]) {
        assert.deepEqual(
          yield* outcomeOf(
            Array.from({ length: envs }, () => goal),
            50,
          ),
          alone,
        )
      }
    }),
  )

  it.effect("cuts an episode off at the cap, as truncated, with what it has got by then", () =>
    Effect.gen(function* () {
      const { episodes } = yield* outcomeOf([goal], 50, 5)
      for (const { length, truncated, terminated, return: total } of episodes) {
        assert.isAtMost(length, 5)
        assert.strictEqual(truncated, !terminated)
        if (truncated) assert.strictEqual(total, 0)
      }
    }),
  )

  it.effect("by a list of envs changes nothing about a training but who validates", () =>
    Effect.gen(function* () {
      const base = { env: CartPole.env, algorithm: Ppo.make({ nsteps: 32 }), totalSteps: 1024 }
      const one = yield* keep({ ...base, validation: { everySteps: 512, episodes: 7 } })
      const three = yield* keep({
        ...base,
        validation: { everySteps: 512, episodes: 7, envs: [CartPole.env, CartPole.env, "CartPole-v1"] },
      })
      assert.strictEqual(three.result.digest, one.result.digest)
      assert.deepEqual(three.result.validation, one.result.validation)
    }),
  )

  it.effect("names the env of each episode, and gives the score on each env", () =>
    Effect.gen(function* () {
      const renamed = { ...Wrapper.timeLimit(CartPole.env, 5), id: "short" }
      const base = { env: CartPole.env, algorithm: A2c.make(), totalSteps: 400 }
      const { events } = yield* keep({
        ...base,
        validation: { everySteps: 400, episodes: 3, envs: [renamed, CartPole.env] },
      })
      const ended = events.find(({ _tag }) => _tag === "ValidationEnded")
      if (ended?._tag !== "ValidationEnded") return assert.fail("no validation")
      assert.deepEqual(
        ended.episodes.map(({ env }) => env),
        ["short", "CartPole-v1", "CartPole-v1"],
      )
      const { values = {} } = scalarsOf(ended) ?? {}
      assert.strictEqual(values["validation/score/short"], 5)
      assert.strictEqual(
        values["validation/score/CartPole-v1"],
        (ended.episodes[1].return + ended.episodes[2].return) / 2,
      )
    }),
  )

  it.effect("by sampled actions is as repeatable, and another than by the best ones", () =>
    Effect.gen(function* () {
      const base = { env: CartPole.env, algorithm: Ppo.make({ nsteps: 32 }), totalSteps: 1024 }
      const scoresOf = (sampled: boolean, envs: ReadonlyArray<Env.Env>) =>
        Effect.map(keep({ ...base, validation: { everySteps: 1024, episodes: 8, sampled, envs } }), ({ events }) =>
          events.flatMap((event) => (event._tag === "ValidationEnded" ? [event.episodes] : [])),
        )
      const sampled = yield* scoresOf(true, [])
      assert.deepEqual(yield* scoresOf(true, [CartPole.env, CartPole.env]), sampled)
      assert.notDeepEqual(yield* scoresOf(false, []), sampled)
    }),
  )

  it.effect("that fails is counted in the result, and the training goes on", () =>
    Effect.gen(function* () {
      const broken = {
        ...Wrapper.timeLimit(CartPole.env, 100),
        id: "broken",
        batch: () => undefined,
        observe: () => {
          throw new EnvError({ env: "broken", message: "broken: the sensor is off" })
        },
      }
      const { result, events } = yield* keep({
        env: CartPole.env,
        algorithm: A2c.make(),
        totalSteps: 1000,
        validation: { everySteps: 400, episodes: 2, envs: [broken] },
      })
      assert.strictEqual(result.failedValidations, 3)
      assert.strictEqual(result.validation, null)
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
      assert.match(warnings[0], /validation at step 400 failed: broken: .*the sensor is off/)
    }),
  )

  it.effect("with more envs than episodes, or with envs of another kind, is refused by name and number", () =>
    Effect.gen(function* () {
      const base = { env: CartPole.env, algorithm: A2c.make(), totalSteps: 1000 }
      const envs = [CartPole.env, CartPole.env, CartPole.env]
      const few = yield* Effect.flip(keep({ ...base, validation: { everySteps: 500, episodes: 2, envs } }))
      assert.include(
        few.message,
        "validation.episodes: expected at least one episode for each of the 3 validation envs, found 2",
      )
      const off = yield* keep({ ...base, validation: { everySteps: 0, episodes: 2, envs } })
      assert.strictEqual(off.result.validation, null)
      const other = yield* Effect.flip(
        keep({ ...base, validation: { everySteps: 500, episodes: 2, envs: [Breakout.env] } }),
      )
      assert.include(other.message, "validation.envs: MinAtar/Breakout-v1 has other observations or actions")
    }),
  )
})
