import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { limitsOf, rungsOf, stopOf } from "../src/command/tune/asha.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { importances } from "../src/command/tune/importance.ts"
import type { Parameter, Params, SearchSpace } from "../src/command/tune/Space.ts"
import { knownAt, suggest } from "../src/command/tune/study.ts"
import { parseTrials, trialsText } from "../src/command/tune/StudyFile.ts"
import type { Study, StudySettings } from "../src/command/tune/StudySettings.ts"
import { bestOf, type Trial } from "../src/command/tune/Trial.ts"

const settings: StudySettings = {
  metric: "validation",
  direction: "maximize",
  trials: 40,
  seed: 1,
  seeds: 1,
  parallel: 4,
  sampler: { name: "tpe", startup: 10, candidates: 24, gamma: 0.1, priorWeight: 1, multivariate: false },
  pruner: { name: "none", minSteps: null, reduction: 3, warmup: 5 },
  parameters: {},
}

const number = fc
  .record({
    low: fc.integer({ min: -50, max: 50 }),
    range: fc.integer({ min: 1, max: 100 }),
    scale: fc.constantFrom(1e-6, 0.1, 1, 1000),
    kind: fc.constantFrom("uniform", "log", "int", "logInt", "step"),
  })
  .map(({ low, range, scale, kind }): Omit<Extract<Parameter, { _tag: "Number" }>, "path" | "when"> => {
    const isInt = kind === "int" || kind === "logInt"
    const isLog = kind === "log" || kind === "logInt"
    const unit = isInt ? 1 : scale
    const from = (isLog ? Math.abs(low) + 1 : low) * unit
    const step = isInt ? 1 : kind === "step" ? (range * unit) / 7.5 : null
    return { _tag: "Number", low: from, high: from + range * unit, isLog, step }
  })
const choice = fc
  .uniqueArray(fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null)), {
    minLength: 2,
    maxLength: 4,
    selector: (value) => JSON.stringify(value),
  })
  .map((values): Omit<Extract<Parameter, { _tag: "Choice" }>, "path" | "when"> => ({ _tag: "Choice", values }))

/** Spaces whose later parameters may depend on the first choice. */
const space = fc
  .array(fc.record({ parameter: fc.oneof(number, choice), isConditional: fc.boolean() }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((all): SearchSpace => {
    const first = all.findIndex(({ parameter }) => parameter._tag === "Choice")
    const gate = all[first]?.parameter
    return all.map(({ parameter, isConditional }, index) => ({
      ...parameter,
      path: `section.p${index}`,
      when:
        isConditional && index > first && gate?._tag === "Choice"
          ? [{ path: `section.p${first}`, values: [gate.values[0]] }]
          : [],
    }))
  })

/** Tells whether the space has these settings, written without the code that suggests them. */
const isIn = (space: SearchSpace, params: Params): boolean =>
  Object.keys(params).every((path) => space.some((one) => one.path === path)) &&
  space.every((parameter) => {
    const value = params[parameter.path]
    const isWanted = parameter.when.every(({ path, values }) => values.includes(params[path]))
    if (!isWanted) return value === undefined
    if (parameter._tag === "Choice") return parameter.values.includes(value)
    if (typeof value !== "number" || value < parameter.low || value > parameter.high) return false
    if (parameter.step === null) return true
    const steps = (value - parameter.low) / parameter.step
    return Math.abs(steps - Math.round(steps)) < 1e-6
  })

/** Plays a study with trials that end as `outcome` says. */
const play = (
  study: Study,
  outcome: (params: Params, trial: number) => Pick<Trial, "state" | "value">,
  begun: ReadonlyArray<Trial> = [],
): ReadonlyArray<Trial> => {
  const trials = [...begun]
  for (let trial = begun.length; trial < study.settings.trials; trial++) {
    const known = knownAt(trial, study.settings.parallel)
    const pending = trials.slice(known).map(({ params }) => params)
    const params = suggest(study, trial, { ended: trials.slice(0, known), pending })
    const { state, value } = outcome(params, trial)
    const curve = value === null ? [] : [{ step: 100, value }]
    trials.push({ trial, state, value, reason: null, params, runs: [], curve })
  }
  return trials
}

/** Ends trials at random, but the same way again. */
const anyOutcome =
  (seed: number) =>
  (_: Params, trial: number): Pick<Trial, "state" | "value"> => {
    const random = stream(seed, "outcome", trial)
    const state = (["finished", "finished", "pruned", "failed"] as const)[random.integer(4)]
    return { state, value: state === "failed" ? null : random.normal() }
  }

const sampler = fc.record({
  name: fc.constantFrom("tpe" as const, "random" as const),
  startup: fc.integer({ min: 1, max: 12 }),
  candidates: fc.integer({ min: 1, max: 24 }),
  gamma: fc.constantFrom(0.1, 0.25, 1),
  priorWeight: fc.constantFrom(0.1, 1, 3),
  multivariate: fc.boolean(),
})

const study = fc
  .record({
    space,
    sampler,
    seed: fc.integer(),
    parallel: fc.integer({ min: 1, max: 6 }),
    direction: fc.constantFrom("maximize" as const, "minimize" as const),
  })
  .map(({ space, ...other }): Study => ({ space, settings: { ...settings, trials: 24, ...other } }))

describe("the suggestions of a study", () => {
  it("are in its space, whatever the trials before gave", () => {
    fc.assert(
      fc.property(study, fc.integer(), (study, seed) => {
        for (const { params } of play(study, anyOutcome(seed))) {
          assert.isTrue(isIn(study.space, params), JSON.stringify(params))
        }
      }),
    )
  })

  it("are the same after the study is read from its file at any point", () => {
    fc.assert(
      fc.property(study, fc.integer(), fc.nat(24), (study, seed, cut) => {
        const whole = play(study, anyOutcome(seed))
        const saved = trialsText(whole.slice(0, cut))
        const read = parseTrials(`${saved}{"trial":${cut},"sta`)
        assert.strictEqual(read.length, cut)
        assert.strictEqual(trialsText(play(study, anyOutcome(seed), read)), trialsText(whole))
      }),
    )
  })

  it("don't depend on the results of trials that may still run", () => {
    fc.assert(
      fc.property(study, fc.integer(), fc.nat(23), (study, seed, last) => {
        const whole = play(study, anyOutcome(seed))
        const known = knownAt(last, study.settings.parallel)
        const others = play(study, anyOutcome(seed + 1), whole.slice(0, known))
        for (let trial = known; trial <= last; trial++) {
          const seen = knownAt(trial, study.settings.parallel)
          if (seen <= known) assert.deepStrictEqual(others[trial].params, whole[trial].params)
        }
      }),
    )
  })
})

const quadratic: SearchSpace = [
  { _tag: "Number", path: "x", low: -5, high: 5, isLog: false, step: null, when: [] },
  { _tag: "Number", path: "rate", low: 1e-5, high: 1, isLog: true, step: null, when: [] },
  { _tag: "Number", path: "count", low: 1, high: 20, isLog: false, step: 1, when: [] },
  { _tag: "Choice", path: "kind", values: ["a", "b", "c"], when: [] },
]
const valueOf = (params: Params): number => {
  const [x, rate, count] = [params.x, params.rate, params.count].map(Number)
  return -((x - 2) ** 2) - (Math.log10(rate) + 3) ** 2 - ((count - 15) / 5) ** 2 - (params.kind === "b" ? 0 : 2)
}

describe("TPE", () => {
  for (const multivariate of [false, true])
    it(
      `finds a better value of a quadratic than random search with as many trials (multivariate: ${multivariate})`,
      { tags: multivariate ? [] : "slow" },
      () => {
        const best = (name: "tpe" | "random", seed: number): number => {
          const sampler = { ...settings.sampler, name, multivariate }
          const trials = play({ space: quadratic, settings: { ...settings, trials: 60, seed, sampler } }, (params) => ({
            state: "finished",
            value: valueOf(params),
          }))
          return bestOf(trials, "maximize")?.value ?? -Infinity
        }
        const seeds = Array.from({ length: 12 }, (_, seed) => seed)
        const pairs = seeds.map((seed) => ({ tpe: best("tpe", seed), random: best("random", seed) }))
        const wins = pairs.filter(({ tpe, random }) => tpe > random).length
        const mean = (name: "tpe" | "random"): number => pairs.reduce((sum, pair) => sum + pair[name], 0) / pairs.length
        assert.isAtLeast(wins, 9)
        assert.isAbove(mean("tpe"), mean("random") / 2)
      },
    )
})

describe("the importance of a parameter", () => {
  it("is the largest for the one that decides, and the shares add up to 1", () => {
    for (const seed of [1, 2, 3]) {
      const trials = play(
        {
          space: quadratic,
          settings: { ...settings, trials: 60, seed, sampler: { ...settings.sampler, name: "random" } },
        },
        ({ rate }) => ({ state: "finished", value: -((Math.log10(Number(rate)) + 3) ** 2) }),
      )
      const shares = importances(quadratic, trials, "maximize")
      assert.strictEqual(shares[0].path, "rate")
      assert.isAbove(shares[0].share, 0.5)
      assert.closeTo(shares.reduce((sum, { share }) => sum + share, 0), 1, 1e-9) // prettier-ignore
    }
  })
})

describe("ASHA", () => {
  const options = fc.record({
    minSteps: fc.integer({ min: 1, max: 50 }),
    reduction: fc.integer({ min: 2, max: 5 }),
    warmup: fc.integer({ min: 1, max: 8 }),
  })
  const curve = fc
    .array(fc.integer({ min: -20, max: 20 }), { minLength: 1, maxLength: 20 })
    .map((values) => values.map((value, index) => ({ step: 10 * (index + 1), value })))

  it("lets a trial go on beyond a rung only if it is among the best of those that have reached it", () => {
    fc.assert(
      fc.property(options, fc.array(curve, { maxLength: 20 }), curve, (options, curves, own) => {
        const ended = curves.map((curve) => ({ curve }))
        const stop = stopOf(own, limitsOf(ended, options, 200))
        // The same by counting, rung by rung.
        let expected: number | undefined
        for (const rung of rungsOf(options, 200)) {
          const at = (curve: typeof own) => curve.find(({ step }) => step >= rung)
          const [mine, others] = [at(own), curves.flatMap((curve) => at(curve)?.value ?? [])]
          if (mine === undefined) break
          const better = others.filter((value) => value > mine.value).length
          const places = Math.max(1, Math.floor((others.length + 1) / options.reduction))
          if (others.length >= Math.max(options.warmup, places) && better >= places) {
            expected = mine.step
            break
          }
        }
        assert.strictEqual(stop?.point.step, expected)
      }),
    )
  })
})
