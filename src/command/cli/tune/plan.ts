/** Plans the runs of a study's trials, and checks the whole search space before any run starts. It writes nothing. */
import { Effect, Option } from "effect"
import { camelCase, isPlain, type ConfigOrigin, type Override, sourceOf } from "../../../base/config/Config.ts"
import type { Limit } from "../../tune/asha.ts"
import { extremes, limitsFor } from "../../tune/study.ts"
import type { Params } from "../../tune/Space.ts"
import type { Study } from "../../tune/StudySettings.ts"
import { nameOf } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { overridesOf, settingValue } from "../run/overrides.ts"
import { type PlannedRun, plannedOf, settingFlags } from "../../sweep/plan.ts"
import type { SweptChoice } from "../../sweep/population.ts"
import { isSame } from "../../tune/Space.ts"
import type { LoadedTraining } from "../userCode/loadTraining.ts"
import type { TuneFlags } from "./flags.ts"

/** The training that a study varies, with its flags. */
export interface Tuned {
  readonly input: TuneFlags
  readonly training: LoadedTraining
}

/** Returns the text that `--set` parses as this value. */
const textOf = (value: unknown): string => {
  const json = JSON.stringify(value) ?? "null"
  if (typeof value !== "string" || !/^[A-Za-z][\w./-]*$/.test(value)) return json
  return isSame(settingValue(value), value) ? value : json
}

/** Converts the settings of a trial to the form that a sweep uses. */
export const choicesOf = (params: Params): ReadonlyArray<SweptChoice> =>
  Object.entries(params).map(([path, value]) => {
    const text = textOf(value)
    return { path, value, text, shown: text }
  })

/** The name of the setting that stops the runs of a trial early. */
const stopBelow = "stop_below"

/** Returns the name of a trial in paths and tables, which has four digits. */
const trialName = (trial: number): string => String(trial).padStart(4, "0")

const inputOf = ({ input }: Tuned) => ({ ...input, seed: Option.none<number>() })

/** Returns the config of the training without the study, and the name of its runs. */
export const planBase = Effect.fnUntraced(function* (tuned: Tuned) {
  const { input, training } = tuned
  const overrides = yield* overridesOf(inputOf(tuned), undefined)
  return yield* plannedOf(training, { overrides, source: input.file, name: nameOf(input), population: {} }, input)
})

/** Plans the runs of a trial, one for each of its seeds. Fails if its settings contradict each other. */
export const planTrial = Effect.fnUntraced(function* (
  tuned: Tuned,
  study: Study,
  trial: { readonly number: number; readonly params: Params; readonly limits: ReadonlyArray<Limit> },
) {
  const { input, training } = tuned
  const { number, params, limits } = trial
  const choices = [...choicesOf(params), ...(limits.length === 0 ? [] : choicesOf({ [stopBelow]: limits }))]
  const population = { trial: trialName(number) }
  const overrides = yield* overridesOf(inputOf(tuned), undefined, choices)
  const planned = yield* plannedOf(training, { overrides, source: input.file, name: nameOf(input), population }, input)
  const { identity, effective } = planned
  return Array.from({ length: study.settings.seeds }, (_, index): PlannedRun => {
    const seed = identity.seed + index
    return {
      configuration: number,
      choices,
      label: study.settings.seeds === 1 ? `trial ${number}` : `trial ${number} seed ${seed}`,
      population,
      identity: { ...identity, seed },
      effective: { ...effective, seed },
    }
  })
})

/**
 * Checks every parameter of a study against the config of the training, with its smallest and largest value, or with each of
 * its choices. An error names the line of the parameter, which comes from `origin`.
 */
export const checkSpace = Effect.fnUntraced(function* (tuned: Tuned, study: Study, origin: ConfigOrigin) {
  const { input, training } = tuned
  const placeOf = (path: string): string => sourceOf(origin, `parameters.${path}`)
  const base = yield* planBase(tuned)
  const taken = settingFlags(input)
  for (const { path } of study.space) {
    const wrong = (problem: string) => usageError(`${placeOf(path)}: parameters.${path}: ${problem}`)
    if (path === "seed") return yield* wrong("the seed can't be tuned; use seeds: N for several seeds in each trial")
    if (taken.includes(path.split(".").map(camelCase).join(".")))
      return yield* wrong("another flag sets this key as well; use only one of them")
  }
  const check = (params: Params, from: string) =>
    Effect.flatMap(
      overridesOf(
        inputOf(tuned),
        undefined,
        Object.entries(params).map(([path, value]): Override => ({ path, value, source: from })),
      ),
      (overrides) => plannedOf(training, { overrides, source: input.file, name: nameOf(input), population: {} }, input),
    )
  for (const { path, params } of extremes(study.space)) yield* check(params, placeOf(path))
  const { totalSteps } = base.effective
  if (study.settings.pruner.name !== "none") {
    if (typeof totalSteps !== "number")
      return yield* usageError(
        `${sourceOf(origin, "pruner")}: pruner: only trainings by reinforcement learning can be stopped early`,
      )
    const { stopBelow: own } = base.effective
    if ((Array.isArray(own) && own.length > 0) || study.space.some(({ path }) => path === stopBelow))
      return yield* usageError(
        `${sourceOf(origin, "pruner")}: pruner: it sets stop_below, which this training sets as well; use only one of them`,
      )
    yield* check({ [stopBelow]: [{ step: 1, return: 0 }] }, sourceOf(origin, "pruner"))
  }
  return base
})

/** Returns the limits that stop the runs of a trial early, which depend on the length of the training. */
export const limitsOfTrial = (study: Study, ended: Parameters<typeof limitsFor>[1], base: unknown) => {
  const totalSteps = isPlain(base) ? base.totalSteps : undefined
  return typeof totalSteps === "number" ? limitsFor(study, ended, totalSteps) : []
}
