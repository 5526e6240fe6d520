import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Dagger from "../../../src/rl/algorithms/demonstrations/Dagger.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type { Learner, Position } from "../../../src/rl/learner/Learner.ts"
import * as Policy from "../../../src/rl/policy/Policy.ts"
import * as Layout from "../../../src/run/Layout.ts"
import { keep } from "../train/inMemory.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

/** A walk along a line of five places; the observation is the place. */
const line = Env.make({
  id: "line",
  observationSpace: box(0, 4, [1]),
  actionSpace: discrete(2),
  maxSteps: 6,
  reset: () => 0,
  observe: (place) => [place],
  step: (place, right) => ({
    state: Math.min(Math.max(place + (right === 1 ? 1 : -1), 0), 4),
    reward: 0,
    terminated: false,
  }),
})
/** Walks to the right, but turns back at the end. */
const expert = ([place]: ReadonlyArray<number>): number => (place < 4 ? 1 : 0)

const learnerFor = (algorithm: Algorithm, totalSteps = 1000) =>
  Effect.gen(function* () {
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = line
    return yield* learnerOf(configured, { observationSpace, actionSpace, numEnvs: 2, totalSteps, seed: 1 })
  })

/** The places and labels that a learner has gathered. */
const gathered = (learner: Learner) =>
  Effect.map(learner.state, ({ aggregate }) => ({
    places: Array.from(aggregate.observations.data),
    labels: Array.from(aggregate.actions.data),
  }))

const play = (learner: Learner, rollouts: number) =>
  Effect.gen(function* () {
    const envs = Batch.make(line, 2)
    envs.reset(1, "env")
    for (let iteration = 0; iteration < rollouts; iteration++) {
      const steps = yield* learner.rollout(envs, { iteration, step: iteration * 12 })
      assert.strictEqual(steps, 12)
    }
  })

const metricsAfter = (learner: Learner, position: Position) =>
  Effect.map(learner.update(position), () => learner.metrics())

const provided = <A, E, R>(effect: Effect.Effect<A, E, R>) => effect.pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("DAgger", () => {
  it.effect("with β = 1 plays as the expert, and labels each step once", () =>
    Effect.gen(function* () {
      const learner = yield* learnerFor(Dagger.make(expert, { nsteps: 6, betaEnd: 1 }))
      yield* play(learner, 2)
      // Two rollouts of six steps in each of two envs; the fifth place comes first, then the way back begins.
      const episode = [0, 1, 2, 3, 4, 3].flatMap((place) => [place, place])
      const { places, labels } = yield* gathered(learner)
      assert.deepStrictEqual(places, [...episode, ...episode])
      assert.deepStrictEqual(
        labels,
        places.map((place) => expert([place])),
      )
    }).pipe(provided),
  )

  it.effect("with β = 0 plays as the learner, and labels its steps by the expert", () =>
    Effect.gen(function* () {
      const learner = yield* learnerFor(Dagger.make(expert, { nsteps: 6, betaStart: 0 }))
      yield* play(learner, 4)
      const { places, labels } = yield* gathered(learner)
      assert.strictEqual(places.length, 48)
      // An expert that goes right is at the beginning only once in each of the eight episodes; a random walk comes back.
      assert.isAbove(places.filter((place) => place === 0).length, 10)
      assert.deepStrictEqual(
        labels,
        places.map((place) => expert([place])),
      )
    }).pipe(provided),
  )

  it.effect("plays the first rollout as the expert alone if β falls at once", () =>
    Effect.gen(function* () {
      const learner = yield* learnerFor(Dagger.make(expert, { nsteps: 6, betaFraction: 1e-6 }))
      yield* play(learner, 1)
      const { places } = yield* gathered(learner)
      assert.deepStrictEqual(
        places,
        [0, 1, 2, 3, 4, 3].flatMap((place) => [place, place]),
      )
      assert.strictEqual((yield* metricsAfter(learner, { iteration: 0, step: 0 }))["charts/beta"], 1)
      assert.strictEqual((yield* metricsAfter(learner, { iteration: 1, step: 12 }))["charts/beta"], 0)
    }).pipe(provided),
  )

  it.effect("learns from all labels so far, in `epochs` passes of each update", () =>
    Effect.gen(function* () {
      const learner = yield* learnerFor(
        Dagger.make(expert, { nsteps: 6, batchSize: 5, epochs: 60, learningRate: 0.03 }),
      )
      yield* play(learner, 3)
      yield* learner.update({ iteration: 2, step: 24 })
      const metrics = learner.metrics()
      assert.strictEqual(metrics["charts/labels"], 36)
      assert.closeTo(metrics["charts/beta"], 1 - 24 / 500, 1e-9)
      const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
      yield* policy.refresh
      for (const place of [0, 1, 2, 3, 4]) {
        policy.observations.set([place])
        yield* policy.program.run
        assert.strictEqual(policy.actions[0], expert([place]), `at ${place}`)
      }
    }).pipe(provided),
  )

  it.effect("asks the policy of another run, which labels as it acts", () =>
    Effect.gen(function* () {
      const lessons = { nsteps: 6, epochs: 20, learningRate: 0.03 }
      const { files } = yield* keep({ env: line, numEnvs: 2, algorithm: Dagger.make(expert, lessons), totalSteps: 60 })
      const saved = [...files].find(([path]) => path.endsWith(`/${Layout.inCheckpoint.policy}`))
      const teacher = yield* Policy.fromOnnx(saved?.[1] ?? assert.fail("the run saved no policy"))
      const learner = yield* learnerFor(Dagger.make(teacher, { nsteps: 6, betaEnd: 1 }))
      yield* play(learner, 2)
      const { places, labels } = yield* gathered(learner)
      const acted = yield* teacher.actAll(places.map((place) => [place]))
      assert.deepStrictEqual(
        labels,
        acted.map(({ action }) => action),
      )
      assert.sameMembers([...new Set(labels)], [0, 1])
    }).pipe(provided),
  )

  const problems: Readonly<Record<string, readonly [Parameters<typeof keep>[0], string]>> = {
    "the policy of an env with other actions": [
      {
        env: line,
        algorithm: Dagger.make({ actionSpace: discrete(3), actAll: () => Effect.succeed([]) }),
        totalSteps: 400,
      },
      "dagger: the expert has other actions than the env",
    ],
    "an expert that chooses what is no action": [
      { env: line, algorithm: Dagger.make(() => 2), totalSteps: 400 },
      "line: the expert: an action of line is a whole number from 0 to 1, found 2",
    ],
    "an expert that throws": [
      {
        env: line,
        algorithm: Dagger.make(() => {
          throw new RangeError("no idea")
        }),
        totalSteps: 400,
      },
      "line: the expert, the function that Dagger.make was given, threw RangeError: no idea",
    ],
    "normalised observations": [
      { env: line, algorithm: Dagger.make(expert), totalSteps: 400, normalize: { observations: true } },
      'normalize.observations: expected false with algorithm "dagger"',
    ],
    "normalised rewards": [
      { env: line, algorithm: Dagger.make(expert), totalSteps: 400, normalize: { rewards: true } },
      'normalize.rewards: expected false with algorithm "dagger"',
    ],
    "more labels than fit into memory": [
      { env: line, algorithm: Dagger.make(expert), totalSteps: 4e9 },
      "total_steps: 4000000000 labelled steps need 30 GiB of memory",
    ],
  }
  for (const [what, [input, message]] of Object.entries(problems)) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        assert.include((yield* Effect.flip(keep(input))).message, message)
      }),
    )
  }
})
