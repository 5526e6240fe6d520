import { assert, describe, it } from "vitest"
import { oneByOne as Batch } from "../../../src/rl/env/Batch.ts"
import { check } from "../../../src/rl/env/check.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Envs from "../../../src/rl/env/Envs.ts"
import * as Space from "../../../src/rl/env/Space.ts"
import { prepared } from "./prepared.ts"
import type { Stream } from "../../../src/base/rng/Rng.ts"

interface State {
  readonly at: number
}

/** A walk that keeps all rules, but for what is given. */
const walk = (wrong: Partial<Env.EnvDefinition<State, Space.Discrete>>): Env.Env =>
  Env.make<State, Space.Discrete>({
    id: "walk",
    observationSpace: Space.box(0, 1),
    actionSpace: Space.discrete(2),
    maxSteps: 50,
    reset: (random) => ({ at: random.integer(3) }),
    observe: ({ at }) => [at / 10],
    step: ({ at }, action) => {
      const next = Math.max(0, at + (action === 1 ? 1 : -1))
      return { state: { at: next }, reward: next === 10 ? 1 : 0, terminated: next === 10 }
    },
    ...wrong,
  })

const rulesOf = (env: Env.Env): ReadonlyArray<string> => check(env).map(({ rule }) => rule)

prepared(Envs.builtIn)

describe("checkEnv", () => {
  it.each(Envs.builtIn.map((env) => [env.id, env] as const))("finds nothing wrong with %s", (_id, env) => {
    // Envs of images have long states, so play only a few steps.
    assert.deepStrictEqual(check(env, { episodes: 2, steps: 25 }), [])
  })

  it("finds no fault in a correct env", () => {
    assert.deepStrictEqual(check(walk({})), [])
  })

  it("runs where a source of randomness is missing", () => {
    Object.defineProperty(crypto, "randomUUID", { configurable: true, value: undefined })
    try {
      assert.deepStrictEqual(check(walk({})), [])
    } finally {
      Reflect.deleteProperty(crypto, "randomUUID")
    }
    assert.isFunction(crypto.randomUUID)
  })

  it("finds randomness other than the stream's, and restores the real functions", () => {
    const { random } = Math
    const { now } = Date
    assert.deepStrictEqual(rulesOf(walk({ reset: () => ({ at: Math.floor(Math.random() * 3) }) }))[0], "chance")
    const [fault] = check(walk({ observe: ({ at }) => [Math.min(at / 10, Date.now())] }))
    assert.deepStrictEqual(fault, {
      rule: "chance",
      message: "walk, episode 0: it used Date.now; draw from the stream in the arguments instead",
    })
    for (const now of [() => new Date().getTime(), () => Date().length]) {
      const [first] = check(walk({ observe: ({ at }) => [Math.min(at / 10, now())] }))
      assert.include(first.message, "it used the current Date")
    }
    // A day that is said is no chance.
    assert.deepStrictEqual(
      check(walk({ observe: ({ at }) => [Math.min(at / 10, new Date("2026-01-31").getTime())] })),
      [],
    )
    assert.strictEqual(Math.random, random)
    assert.strictEqual(Date.now, now)
  })

  it("finds memory outside the state", () => {
    let steps = 0
    const faults = rulesOf(walk({ step: ({ at }) => ({ state: { at }, reward: steps++, terminated: false }) }))
    assert.include(faults, "repeatable")
  })

  it("finds states that a step or an observation changes in place", () => {
    const step = (state: { at: number }) => {
      state.at = Math.min(9, state.at + 1)
      return { state: { at: state.at }, reward: 0, terminated: false }
    }
    assert.include(rulesOf(walk({ step })), "in place")
    const observe = (state: { at: number }) => [(state.at = Math.min(9, state.at + 1)) / 10]
    assert.include(rulesOf(walk({ observe })), "in place")
    const shared = { at: 0 }
    const sharing = () => ({ state: Object.assign(shared, { at: (shared.at + 1) % 10 }), reward: 0, terminated: false })
    assert.include(rulesOf(walk({ step: sharing })), "in place")
  })

  it("finds states that cannot be saved, or differ when restored", () => {
    const hidden = new WeakMap<State, number>()
    const begin = (random: Stream): State => {
      const state = { at: random.integer(3) }
      hidden.set(state, 1)
      return state
    }
    const step = (state: State) => {
      const next = { at: state.at }
      hidden.set(next, 1)
      return { state: next, reward: hidden.get(state) ?? 0, terminated: false }
    }
    assert.deepStrictEqual(rulesOf(walk({ reset: begin, step })), ["restored"])
    const odd = Env.make({
      id: "odd",
      observationSpace: Space.box(0, 1),
      actionSpace: Space.discrete(2),
      reset: () => ({ seen: new Set([1]) }),
      observe: () => [0],
      step: (state) => ({ state, reward: 0, terminated: true }),
    })
    assert.include(rulesOf(odd), "plain")
  })

  it("finds invalid observations, rewards and endings", () => {
    assert.deepStrictEqual(rulesOf(walk({ observe: ({ at }) => [at] })), ["observation"])
    assert.deepStrictEqual(rulesOf(walk({ observe: () => [0, 0] })), ["observation"])
    assert.deepStrictEqual(rulesOf(walk({ observe: () => [NaN] })), ["observation"])
    const step = (state: State) => ({ state, reward: NaN, terminated: false })
    assert.deepStrictEqual(rulesOf(walk({ step })), ["reward"])
  })

  it("finds a batch that differs, and functions that throw", () => {
    const other = walk({ step: (state) => ({ state, reward: 0.5, terminated: false }) })
    const [fault] = check(
      walk({ batch: (numEnvs, options) => Batch(other, numEnvs, { autoReset: options.autoReset }) }),
    )
    assert.strictEqual(fault?.rule, "batch")
    const thrown = check(
      walk({
        step: () => {
          throw new Error("no such place")
        },
      }),
    )
    assert.deepStrictEqual(thrown, [{ rule: "throws", message: "walk, episode 0: no such place" }])
  })
})
