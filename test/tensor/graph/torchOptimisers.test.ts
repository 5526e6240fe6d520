import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { zeros } from "../../../src/tensor/graph/initialisers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { adam, clipGlobalNorm, muon, type Optimiser, sgd } from "../../../src/tensor/graph/optimisers.ts"
import { layout } from "../../../src/tensor/graph/Parameters.ts"
import { byStep, ScheduleConfig } from "../../../src/tensor/graph/schedules.ts"
import { sizeOf, type Tensor } from "../../../src/tensor/graph/Tensor.ts"

/** Steps and learning rates that PyTorch computed in float64; see the note in the file. */
const Numbers = Schema.Array(Schema.Finite)
const Fixture = Schema.Struct({
  note: Schema.String,
  shapes: Schema.Record(Schema.String, Schema.Array(Schema.Int)),
  start: Schema.Record(Schema.String, Numbers),
  gradients: Schema.Array(Schema.Record(Schema.String, Numbers)),
  optimisers: Schema.Record(
    Schema.String,
    Schema.Struct({
      settings: Schema.Struct({
        lr: Schema.Finite,
        weightDecay: Schema.Finite,
        betas: Schema.optionalKey(Schema.Tuple([Schema.Finite, Schema.Finite])),
        epsilon: Schema.optionalKey(Schema.Finite),
        momentum: Schema.optionalKey(Schema.Finite),
        nesterov: Schema.optionalKey(Schema.Boolean),
        maxNorm: Schema.optionalKey(Schema.Finite),
      }),
      steps: Schema.Array(Schema.Record(Schema.String, Numbers)),
    }),
  ),
  schedules: Schema.Record(
    Schema.String,
    Schema.Struct({
      config: ScheduleConfig,
      lr: Schema.Finite,
      maxSteps: Schema.NullOr(Schema.Int),
      rates: Numbers,
    }),
  ),
})
const file = fileURLToPath(new URL("../../fixtures/optimisers.json", import.meta.url))
const fixture = Schema.decodeUnknownSync(Fixture, { onExcessProperty: "error" })(JSON.parse(readFileSync(file, "utf8")))

type Settings = (typeof fixture.optimisers)[string]["settings"]

const parameters = layout(
  Object.fromEntries(Object.entries(fixture.shapes).map(([name, shape]) => [name, { shape, init: zeros }])),
)
const { size } = parameters
const flat = (named: Readonly<Record<string, ReadonlyArray<number>>>) => parameters.names.flatMap((name) => named[name])

const adamOf = ({ lr, weightDecay, betas = [NaN, NaN], epsilon = NaN }: Settings): Optimiser =>
  adam({ size, learningRate: lr, weightDecay, beta1: betas[0], beta2: betas[1], epsilon })
const muonOf = ({ lr, weightDecay, betas = [NaN, NaN], epsilon = NaN, momentum = NaN, nesterov = true }: Settings) =>
  muon({
    layout: parameters,
    learningRate: lr,
    weightDecay,
    momentum,
    nesterov,
    adam: { beta1: betas[0], beta2: betas[1], epsilon },
  })
const optimisers: Readonly<Record<string, (settings: Settings) => Optimiser>> = {
  adamw: adamOf,
  adamw_clipped: adamOf,
  sgd: ({ lr, weightDecay, momentum = NaN }) => sgd({ size, learningRate: lr, weightDecay, momentum }),
  muon: muonOf,
  muon_without_nesterov: muonOf,
}

describe("against PyTorch", () => {
  it("all optimisers of the file are tested", () =>
    assert.deepStrictEqual(Object.keys(fixture.optimisers).sort(), Object.keys(optimisers).sort()))

  for (const [name, { settings, steps }] of Object.entries(fixture.optimisers))
    it(`${name}: the parameters after each step`, () => {
      const theta = G.state("theta", [size])
      const gradient = G.input("gradient", [size])
      const clipped = settings.maxNorm === undefined ? gradient : clipGlobalNorm(gradient, settings.maxNorm)
      const { next, moments } = optimisers[name](settings).update(theta, clipped)
      const kept = Object.values(moments)
      let values = new Map<Tensor, ArrayLike<number>>([
        [theta, flat(fixture.start)],
        ...kept.map(({ tensor }) => [tensor, new Float64Array(sizeOf(tensor.shape))] as const),
      ])
      steps.forEach((expected, step) => {
        values.set(gradient, flat(fixture.gradients[step]))
        const [newTheta, ...rest] = evaluate([next, ...kept.map((moment) => moment.next)], values)
        values = new Map<Tensor, ArrayLike<number>>([
          [theta, newTheta],
          ...kept.map(({ tensor }, index) => [tensor, rest[index]] as const),
        ])
        // The graph holds its constants, such as 0.999, as float32.
        flat(expected).forEach((value, at) => assert.closeTo(newTheta[at], value, 2e-6, `step ${step}, element ${at}`))
      })
    })

  for (const [name, { config, lr, maxSteps, rates }] of Object.entries(fixture.schedules))
    it(`the schedule ${name}: the learning rate of each step`, () => {
      const rateOf = byStep(config, { learningRate: lr, maxSteps })
      rates.forEach((rate, step) => assert.closeTo(rateOf(step), rate, 1e-12, `step ${step}`))
    })
})
