import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { type Env, rowSpaceOf } from "../../../src/rl/env/Env.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import { make as moments } from "../../../src/rl/env/RunningMoments.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import { evaluate } from "../../../src/rl/export/DenseActor.ts"
import { denseActor } from "../../../src/rl/export/policyFiles.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type { Learner } from "../../../src/rl/learner/Learner.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { courier } from "../env/courier.ts"
import { policyCases } from "../export/policyCases.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

const hidden = [24]

/** The outputs besides the actions, by the algorithms whose policies have more or fewer than a distribution. */
const withValue = new Set("ppo a2c rnd curiosity daac trpo unreal randal alpha-zero vin gail".split(" "))
const inPlaceOfDistribution: Readonly<Record<string, ReadonlyArray<string>>> = {
  dqn: ["q_values"],
  ddqn: ["q_values"],
  td3: [],
  ddpg: [],
}
const outputsOf = (env: Env, { name }: Algorithm): ReadonlyArray<string> => [
  ...(inPlaceOfDistribution[name] ?? (env.actionSpace._tag === "Box" ? ["mean", "log_std"] : ["logits"])),
  ...(withValue.has(name) ? ["value"] : []),
]

/** One case of each kind of outputs, of memory and of mask stays quick. */
const quick = new Set("ddqn es ddpg sac iql bc daac".split(" "))
const quickKinds = new Set(["with noise that depends on the state", "with action masks", "with a shared memory"])

const cases: ReadonlyArray<readonly [env: Env, algorithm: Algorithm, kind?: string]> = [
  ...policyCases,
  [Pendulum.env, Ppo.make({ hidden }), "with real actions"],
  [Pendulum.env, Ppo.make({ hidden, sde: {} }), "with noise that depends on the state"],
  [courier(4), Ppo.make({ hidden }), "with action masks"],
  [
    CartPole.env,
    Ppo.make({ hidden: [8, 8], lstm: 8, lstmAfter: 1, criticMemory: "shared", nsteps: 8, minibatches: 1 }),
    "with a shared memory",
  ],
  [Catch.env, Ppo.make({ hidden }), "on images"],
  [Catch.env, Dqn.make({ hidden, lstm: 8 }), "on images, with a memory"],
]

const set = Effect.fnUntraced(function* (env: Env, algorithm: Algorithm) {
  const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
  const { actionSpace } = env
  const task = { model: env, observationSpace: rowSpaceOf(env), actionSpace, numEnvs: 2, totalSteps: 100, seed: 5 }
  return yield* learnerOf(configured, task)
})

const exported = (learner: Learner, preprocess?: Parameters<NonNullable<Learner["exportPolicy"]>>[0]) =>
  Effect.flatMap(learner.exportPolicy?.(preprocess) ?? Effect.die("no export"), (model) =>
    Effect.acquireRelease(
      Effect.promise(() => InferenceSession.create(model)),
      (session) => Effect.promise(() => session.release()),
    ),
  )

type Rows = ReadonlyArray<ReadonlyArray<number>>
type Results = Readonly<Record<string, Rows>>

/** Runs a model on rows. Returns the numbers of each output, row by row. */
const answers = (session: InferenceSession, inputs: Results): Effect.Effect<Results> =>
  Effect.promise(async () => {
    const feeds = Object.entries(inputs).map(
      ([name, rows]) =>
        [name, new Tensor("float32", Float32Array.from(rows.flat()), [rows.length, rows[0].length])] as const,
    )
    const count = inputs.observations.length
    const results = Object.entries(await session.run(Object.fromEntries(feeds))).map(([name, { data, dims }]) => {
      assert.strictEqual(dims[0], count, name)
      const width = data.length / count
      const numbers = Array.from(data, Number)
      return [name, Array.from({ length: count }, (_, row) => numbers.slice(row * width, (row + 1) * width))] as const
    })
    return Object.fromEntries(results)
  })

const closeTo = (actual: Rows, expected: Rows, name: string): void => {
  assert.strictEqual(actual.length, expected.length)
  for (const [row, numbers] of expected.entries())
    for (const [at, number] of numbers.entries())
      if (!(Math.abs(actual[row][at] - number) <= 1e-4 * Math.max(1, Math.abs(number))))
        assert.fail(`${name}, row ${row}: ${actual[row][at]}, not ${number}`)
}

const rowsOf = (env: Env, count: number): Rows => {
  const random = stream(8)
  const size = sizeOf(rowSpaceOf(env))
  // The last numbers of a row are the action mask, if the env has one: here all choices are allowed.
  const masks = size - sizeOf(env.observationSpace)
  const parts = env.observationSpace._tag === "Box" ? undefined : 0
  return Array.from({ length: count }, () =>
    Array.from({ length: size }, (_, at) => (at >= size - masks ? 1 : (parts ?? Math.fround(random.normal())))),
  )
}

describe("the ONNX model of a policy takes any number of rows, and says more than actions", () => {
  for (const [index, [env, algorithm, kind = `(${index})`]] of cases.entries()) {
    it.effect(
      `of ${algorithm.name} in ${env.id} ${kind}`,
      () =>
        Effect.gen(function* () {
          const learner = yield* set(env, algorithm)
          const session = yield* exported(learner)
          const remembers = session.inputNames.includes("memory")
          const names = ["actions", ...(remembers ? ["nextMemory"] : []), ...outputsOf(env, algorithm)]
          assert.deepEqual(session.outputNames, names)
          for (const value of [...session.inputMetadata, ...session.outputMetadata])
            assert.strictEqual(value.isTensor && value.shape[0], "batch", value.name)
          const memorySize = session.inputMetadata.flatMap((each) =>
            each.name === "memory" && each.isTensor ? [Number(each.shape[1])] : [],
          )
          // The second call begins with the memory of the first one.
          const observations = rowsOf(env, 14)
          const calls = [observations.slice(0, 7), observations.slice(7)]
          let memory: Rows = calls[0].map(() => memorySize.flatMap((size) => new Array<number>(size).fill(0)))
          const policy = yield* learner.policy?.(7) ?? Effect.die("no policy")
          yield* policy.refresh
          for (const rows of calls) {
            const of = (from: number, to: number) =>
              answers(session, {
                observations: rows.slice(from, to),
                ...(remembers ? { memory: memory.slice(from, to) } : {}),
              })
            const all = yield* of(0, 7)
            const parts = [[0, 3], ...rows.map((_, row) => [row, row + 1])]
            for (const [from, to] of parts)
              for (const [output, numbers] of Object.entries(yield* of(from, to)))
                closeTo(numbers, all[output].slice(from, to), output)
            policy.observations.set(rows.flat())
            yield* policy.program.run
            const width = policy.actions.length / 7
            const acted = rows.map((_, row) => Array.from(policy.actions.slice(row * width, (row + 1) * width)))
            closeTo(all.actions, acted, "actions")
            const scores = all.logits ?? all.q_values
            if (scores !== undefined)
              assert.deepEqual(
                scores.map((row) => row.indexOf(Math.max(...row))),
                all.actions.flat(),
              )
            if (remembers) memory = all.nextMemory
          }
        }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
      { tags: quick.has(algorithm.name) || quickKinds.has(kind) ? [] : "slow" },
    )
  }

  it.effect("with the numbers of the network: the critic's value, logits, and the Gaussian of real numbers", () =>
    Effect.gen(function* () {
      for (const [env, outputs] of [
        [CartPole.env, "logits"],
        [Pendulum.env, "mean"],
      ] as const) {
        const learner = yield* set(env, Ppo.make({ hidden, activation: "tanh", logStdInit: -0.5 }))
        const weights = yield* learner.weights
        const size = sizeOf(env.observationSpace)
        const tower = (name: string) =>
          denseActor(
            {
              layers: [
                { names: [`${name}.0`], activation: "tanh" },
                { names: [`${name}.1`], activation: "identity" },
              ],
            },
            weights,
            size,
          )
        const rows = rowsOf(env, 7)
        const all = yield* answers(yield* exported(learner), { observations: rows })
        const computed = (name: string) =>
          rows.map((row) => Array.from(evaluate({ ...tower(name) }, Float32Array.from(row))))
        closeTo(all.value, computed("critic"), "value")
        closeTo(all[outputs], computed("actor"), outputs)
        assert.isAbove(new Set(all.value.flat()).size, 1)
        const deviations = rows.map(() => [-0.5])
        if (outputs === "mean") closeTo(all.log_std, deviations, "log_std")
      }
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("with the weights and the statistics of the moment, at each export", () =>
    Effect.gen(function* () {
      const learner = yield* set(Pendulum.env, Ppo.make({ hidden }))
      const rows = rowsOf(Pendulum.env, 7)
      const statistics = moments(3)
      const weights = yield* learner.weights
      let last: Results = {}
      for (const scale of [1, 3]) {
        const scaled = Record.map(weights, ({ shape, data }) => ({ shape, data: data.map((each) => each * scale) }))
        yield* learner.start?.(scaled) ?? Effect.die("no start")
        statistics.update(Float32Array.of(scale, 5, -20, 3, 6, 20, 2, 9, 60 * scale))
        const seen = rows.map((row) =>
          row.map((number, at) => {
            const away = (number - statistics.mean[at]) / Math.sqrt(statistics.variance[at] + 1e-8)
            return Math.min(Math.max(away, -10), 10)
          }),
        )
        const expected = yield* answers(yield* exported(learner), { observations: seen })
        const actual = yield* answers(yield* exported(learner, Normalise.asGraph(statistics)), { observations: rows })
        for (const name of Object.keys(expected)) closeTo(actual[name], expected[name], name)
        assert.notDeepEqual(actual, last)
        last = actual
      }
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})
