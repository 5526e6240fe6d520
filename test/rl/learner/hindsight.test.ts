import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as BitFlip from "../../../src/rl/env/games/BitFlip.ts"
import * as GoalEnv from "../../../src/rl/env/GoalEnv.ts"
import { box, dict, discrete, sizeOf } from "../../../src/rl/env/Space.ts"
import type { Her } from "../../../src/rl/learner/replay/fields.ts"
import { hindsight } from "../../../src/rl/learner/replay/Hindsight.ts"
import { makeReplay } from "../../../src/rl/learner/replay/Replay.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { keep } from "../train/inMemory.ts"

const place = box(-Infinity, Infinity)
const numEnvs = 2
const gamma = 0.9
const maxSteps = 9

const rewardOf = (achieved: number, desired: number): number =>
  achieved === desired ? 5 : achieved < desired ? -1 : -2

/**
 * A walk whose place is another one in every step of every episode, so that a goal tells the step that achieved it. An episode
 * ends at its goal, by a fall, or by the limit of steps.
 */
const walk = GoalEnv.withGoals(
  Env.make({
    id: "walk",
    observationSpace: dict({ desired_goal: place, observation: box(-1, 1, [2]), achieved_goal: place }),
    actionSpace: discrete(2),
    maxSteps,
    reset: (random) => {
      const at = 100 * random.integer(100_000)
      return { at, goal: at + 3 + random.integer(20), fall: at + 3 + random.integer(20) }
    },
    observe: ({ at, goal }) => ({ observation: [0.5, -0.5], achieved_goal: [at], desired_goal: [goal] }),
    step: ({ at, goal, fall }) => ({
      state: { at: at + 1, goal, fall },
      reward: rewardOf(at + 1, goal),
      terminated: at + 1 === goal || at + 1 === fall,
    }),
  }),
  {
    computeReward: ([achieved]: ReadonlyArray<number>, [desired]: ReadonlyArray<number>) => rewardOf(achieved, desired),
    computeTerminated: ([achieved]: ReadonlyArray<number>, [desired]: ReadonlyArray<number>) => achieved === desired,
  },
)
const goals = GoalEnv.goalsOf(walk)
const width = sizeOf(walk.observationSpace)

interface Step {
  readonly at: number
  readonly goal: number
  readonly next: number
  readonly ending: "none" | "goal" | "fall" | "limit"
}

/** Plays steps into a buffer, and writes a diary of each env. */
const played = (steps: number, capacity: number, nsteps: number) => {
  const envs = Batch.make(walk, numEnvs)
  envs.reset(5)
  const options = { numEnvs, observationSize: width, actionSize: 1, capacity, gamma, nsteps, hindsight: true }
  const replay = makeReplay(options)
  replay.begin(envs)
  const diaries: ReadonlyArray<Array<Step>> = [[], []]
  /** Plays on, and adds the steps to other buffers, too. */
  const play = (more: number, others: ReadonlyArray<typeof replay> = []): void => {
    for (let step = 0; step < more; step++) {
      const before = envs.observations.slice()
      envs.step(new Int32Array(numEnvs))
      for (const [env, diary] of diaries.entries()) {
        const [goal, , , at] = before.subarray(env * width)
        const isOver = envs.terminated[env] + envs.truncated[env] > 0
        const next = (isOver ? envs.finalObservations : envs.observations)[env * width + 3]
        const ending =
          envs.terminated[env] === 1 ? (next === goal ? "goal" : "fall") : envs.truncated[env] === 1 ? "limit" : "none"
        diary.push({ at, goal, next, ending })
      }
      for (const buffer of [replay, ...others]) buffer.add(new Int32Array(numEnvs), envs)
    }
  }
  play(steps)
  return { replay, options, diaries, play }
}

const batchOf = (rows: number) => ({
  observations: new Float32Array(rows * width),
  actions: new Int32Array(rows),
  rewards: new Float32Array(rows),
  nextObservations: new Float32Array(rows * width),
  discounts: new Float32Array(rows),
})

const drawn = Effect.fnUntraced(function* (her: Her, nsteps: number, replay: ReturnType<typeof makeReplay>) {
  const rows = 2000
  const places = new Int32Array(rows)
  const batch = batchOf(rows)
  const { observationSpace, actionSpace } = walk
  const task = { observationSpace, actionSpace, numEnvs, totalSteps: 1, seed: 1, goals }
  const config = {
    nsteps,
    gamma,
    bufferSize: 1,
    batchSize: 1,
    learningStarts: 0,
    trainEvery: 1,
    gradientSteps: 1,
    orthogonal: true,
  }
  const relabel = yield* hindsight(her, replay, { name: "test", task, config })
  const random = stream(7, "draws")
  replay.draw(random, places)
  replay.gather(places, batch)
  relabel(random, places, batch)
  return { places, batch }
})

/** The steps of the diary that lie in the same episode as the step at `index`, from `oldest` on. */
const episodeAround = (diary: ReadonlyArray<Step>, index: number, oldest: number) => {
  let first = index
  while (first > oldest && diary[first - 1].ending === "none") first--
  let last = index
  while (last < diary.length - 1 && diary[last].ending === "none") last++
  return { first, last }
}

describe("hindsight experience replay", () => {
  for (const strategy of ["future", "final", "episode"] as const) {
    for (const [nsteps, capacity] of [
      [1, 400],
      [3, 400],
      [1, 60],
      [3, 60],
    ]) {
      it.effect(
        `computes goals, rewards and ends as a diary of the episodes does: ${strategy}, ${nsteps} steps, ${capacity}`,
        () =>
          Effect.gen(function* () {
            const steps = 150
            const { replay, diaries } = played(steps, capacity, nsteps)
            const { places, batch } = yield* drawn({ strategy, goals: 4 }, nsteps, replay)
            const perEnv = Math.ceil(capacity / numEnvs) + nsteps
            const oldest = Math.max(0, steps - perEnv + 1)
            let changed = 0
            const chosen = new Set<number>()
            for (const [row, drawnPlace] of places.entries()) {
              const diary = diaries[Math.floor(drawnPlace / perEnv)]
              const at = batch.observations[row * width + 3]
              const index = diary.findIndex((step) => step.at === at)
              assert.strictEqual(index % perEnv, drawnPlace % perEnv)
              const goal = batch.observations[row * width]
              const { first, last } = episodeAround(diary, index, oldest)
              if (goal !== diary[index].goal) {
                changed++
                const source = diary.findIndex(({ next }) => next === goal)
                chosen.add(source - index)
                if (strategy === "final") assert.strictEqual(source, last)
                else assert.isTrue(source >= (strategy === "future" ? index : first) && source <= last)
              }
              // The transition as the paper has it: the same steps, with the other goal in place of the episode's own.
              let total = 0
              let discount = 1
              let end = index
              for (; ; end++) {
                const { next, ending } = diary[end]
                total += discount * rewardOf(next, goal)
                discount *= gamma
                if (ending === "fall" || next === goal) discount = 0
                if (discount === 0 || ending !== "none" || end + 1 - index === nsteps) break
              }
              assert.closeTo(batch.rewards[row], total, 1e-5)
              assert.closeTo(batch.discounts[row], discount, 1e-6)
              assert.strictEqual(batch.nextObservations[row * width], goal)
              if (discount > 0) assert.strictEqual(batch.nextObservations[row * width + 3], diary[end].next)
            }
            // Four of five get another goal; a few of these get a goal that is equal to their own.
            assert.closeTo(changed / places.length, 0.8, 0.12)
            if (strategy !== "final") assert.isAbove(chosen.size, 5)
          }),
        { tags: (nsteps === 1) === (capacity === 400) ? [] : "slow" },
      )
    }
  }

  it.effect("draws the same after the buffer was saved and restored in the middle of episodes", () =>
    Effect.gen(function* () {
      for (const capacity of [400, 60]) {
        const { replay, options, play } = played(150, capacity, 1)
        const restored = makeReplay(options)
        restored.restore(structuredClone(replay.state()))
        for (const more of [0, 30]) {
          play(more, [restored])
          for (const strategy of ["future", "final", "episode"] as const) {
            const [before, after] = [
              yield* drawn({ strategy, goals: 4 }, 1, replay),
              yield* drawn({ strategy, goals: 4 }, 1, restored),
            ]
            assert.deepStrictEqual(after, before)
          }
        }
      }
    }),
  )

  const broken: Readonly<Record<string, readonly [Partial<GoalEnv.Goals>, RegExp]>> = {
    "gives no number": [
      { computeReward: () => NaN },
      /^walk: computeReward\(achieved \[\d+\], desired \[\d+\]\) returned NaN; expected a finite number$/,
    ],
    throws: [
      {
        computeReward: () => {
          throw new TypeError("no goals today")
        },
      },
      /^walk: computeReward\(achieved \[\d+\], desired \[\d+\]\) threw TypeError: no goals today$/,
    ],
    "throws at an end": [
      {
        computeTerminated: () => {
          throw new Error("no ends today")
        },
      },
      /^walk: computeTerminated\(achieved \[\d+\], desired \[\d+\]\) threw Error: no ends today$/,
    ],
  }
  for (const [what, [functions, message]] of Object.entries(broken)) {
    it.effect(`fails with the goals where a function of the env ${what}`, () =>
      Effect.gen(function* () {
        const env = GoalEnv.withGoals({ ...walk }, { computeReward: () => 0, ...functions })
        const algorithm = Dqn.make({ her: {}, hidden: [8], learningStarts: 32, batchSize: 16 })
        const error = yield* Effect.flip(keep({ env, algorithm, totalSteps: 200 }))
        assert.strictEqual(error._tag, "EnvError")
        assert.match(error.message, message)
      }),
    )
  }

  it.effect("needs an env with goals, whose observations and rewards are not normalised", () =>
    Effect.gen(function* () {
      const algorithm = Dqn.make({ her: {}, hidden: [8] })
      const failing = (input: Parameters<typeof keep>[0]) => Effect.map(Effect.flip(keep(input)), String)
      assert.include(
        yield* failing({ env: CartPole.env, algorithm, totalSteps: 100 }),
        "algorithm.her: expected null, as the env has no goals",
      )
      assert.include(
        yield* failing({ env: BitFlip.env, algorithm, totalSteps: 100, normalize: { rewards: true } }),
        "normalize.rewards: expected false with algorithm.her",
      )
    }),
  )
})
