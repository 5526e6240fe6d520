/** Plans the runs of a sweep for sweep.ts, and checks their settings, without starting them. It writes nothing. */
import { Deferred, Effect, Layer, Option } from "effect"
import { platform } from "../../node.ts"
import * as reference from "../../tensor/backend/reference.ts"
import { camelCase, type Plain } from "../../base/config/Config.ts"
import { bounds } from "../../base/config/bounds.ts"
import { shortened } from "../../base/text/text.ts"
import { derivedName, type RunIdentity, toPath } from "../../run/identifier.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import { Recorder } from "../../run/record/Recorder.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import { nameOf } from "../cli/flags.ts"
import type { RunFlags } from "../cli/run/flags.ts"
import { watchModules } from "../../spread/cluster/sent/loadedModules-node.ts"
import { loadTraining, type LoadedTraining } from "../cli/userCode/loadTraining.ts"
import { overridesOf } from "../cli/run/overrides.ts"
import { usageError } from "../cli/output/output.ts"
import { type SweptChoice, choicesOf, parsePopulation, populationOf, shortNames } from "./population.ts"

/** One run of a sweep. Its settings are checked, but neither env nor algorithm is created yet. */
export interface PlannedRun {
  /** The index of the combination of swept settings; runs that differ only in their seed have the same index. */
  readonly configuration: number
  readonly choices: ReadonlyArray<SweptChoice>
  /** The run's name on the terminal, such as `algorithm=ppo seed 1`. */
  readonly label: string
  /** The swept settings in the run's identifier, except env and algorithm. */
  readonly population: Readonly<Record<string, string>>
  readonly identity: RunIdentity
  /** The config that the run would save in `config.yaml`. */
  readonly effective: Plain
}

/** Returns all runs that the flags describe, ordered by configuration. Fails if any run has a wrong setting. */
export const planSweep = Effect.fnUntraced(function* (input: RunFlags) {
  const variables = yield* parsePopulation([...input.population, ...input.more])
  const conflict = variables.find(({ path }) => settingFlags(input).includes(inCamelCase(path)))
  if (conflict !== undefined) {
    return yield* usageError(`--population ${conflict.path}: another flag sets this key as well; use only one of them`)
  }
  const seeds = Option.isSome(input.seeds) ? yield* parseSeeds(input.seeds.value) : undefined
  const count = variables.reduce((product, { values }) => product * values.length, seeds?.length ?? 1)
  if (count > mostRuns)
    return yield* usageError(`--population: expected at most ${mostRuns} runs of one sweep, found ${count}`)
  if (Option.isSome(input.cluster)) watchModules()
  const training = yield* loadTraining(input.file)
  const names = shortNames(variables)
  const runs: Array<PlannedRun> = []
  for (const [configuration, choices] of choicesOf(variables).entries()) {
    const population = populationOf(variables, choices)
    const seed = seeds === undefined ? input.seed : Option.some(seeds[0])
    const overrides = yield* overridesOf({ ...input, seed }, undefined, choices)
    const options = { overrides, source: input.file, name: nameOf(input), population }
    const { identity, effective } = yield* plannedOf(training, options, input)
    if (Option.isSome(seed) && identity.seed !== seed.value) {
      return yield* usageError(`--seeds and another setting of the seed (${identity.seed}) exclude each other`)
    }
    const long = foldersOf(identity).find((folder) => Buffer.byteLength(folder) > longestName)
    if (long !== undefined) {
      const message = `--population: a folder's name would be longer than ${longestName} bytes: ${long.slice(0, 60)}…`
      return yield* usageError(message)
    }
    const words = choices.map(({ path, shown }) => `${names.get(path) ?? path}=${shown}`)
    for (const seed of seeds ?? [identity.seed]) {
      const label = [...words, `seed ${seed}`].join(" ")
      const ofSeed = { identity: { ...identity, seed }, effective: { ...effective, seed } }
      runs.push({ configuration, choices, label, population, ...ofSeed })
    }
  }
  const planned = new Map<string, PlannedRun>()
  for (const run of runs) {
    const same = planned.get(keyOf(run.identity))
    if (same !== undefined)
      return yield* usageError(`--population: ${same.label} and ${run.label} would be the same run`)
    planned.set(keyOf(run.identity), run)
  }
  return runs
})

/** The largest number of runs in a sweep, since each run is a whole training. */
const mostRuns: number = bounds.runs.most

/** Parses the seeds of `--seeds`: `1..10`, `1,2,5`, or a mixture of both. */
const parseSeeds = Effect.fnUntraced(function* (text: string) {
  const wrong = (problem: string) => usageError(`--seeds ${shortened(text)}: ${problem}`)
  const ranges = text.split(",").map((part) => {
    const [, from, to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(part.trim()) ?? []
    return { from: Number(from), length: Number(to) - Number(from) + 1 }
  })
  const total = ranges.reduce((sum, { length }) => sum + length, 0)
  const malformed = "expected seeds like 1..10 or 1,2,5, none of them twice"
  if (!ranges.every(({ length }) => length >= 1)) return yield* wrong(malformed)
  if (total > mostRuns) return yield* wrong(`expected at most ${mostRuns} seeds, found ${total}`)
  const seeds = ranges.flatMap(({ from, length }) => Array.from({ length }, (_, index) => from + index))
  return new Set(seeds).size === seeds.length ? seeds : yield* wrong(malformed)
})

/** The largest length of a file name in bytes; file systems refuse longer names. */
const longestName = 255

/** Returns the names of the folders in the path of a run, with placeholders for the time and the commit. */
const foldersOf = (identity: RunIdentity): ReadonlyArray<string> =>
  toPath({ ...identity, time: "", commit: "no-hash" }).split("/")

const inCamelCase = (path: string): string => path.split(".").map(camelCase).join(".")

/** Returns the keys that flags other than `--population` set. */
export const settingFlags = ({
  set,
  totalSteps,
  name,
}: Pick<RunFlags, "set" | "totalSteps" | "name">): ReadonlyArray<string> => [
  ...set.map((text) => inCamelCase(text.slice(0, text.indexOf("=")))),
  ...(Option.isSome(totalSteps) ? ["totalSteps"] : []),
  ...(Option.isSome(name) ? ["name"] : []),
]

/**
 * Returns a text that is equal for equal runs. The order of the swept settings doesn't matter, and names may have `-` or `_`.
 */
export const keyOf = ({ name, population, seed }: RunIdentity): string => {
  const values = Object.entries(population).map(([key, value]) => [key, derived.has(key) ? derivedName(value) : value])
  return JSON.stringify([derivedName(name), values.sort(([one], [other]) => (one < other ? -1 : 1)), seed])
}

/** The keys in an identity's `population` that hold the names of the env and the algorithm. */
const derived = new Set(["environment", "algorithm"])

/** Provides the services for a training that is only planned and never starts, so nothing is written. */
const noServices = Layer.mergeAll(platform, reference.layer, RunStore.layerMemory, Recorder.layerSilent)

/**
 * The services of `noServices`, with one difference: programs in the config are not started either, not even to describe
 * themselves.
 */
const nothingStarts = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../cli/trust/unstartedPrograms.ts")),
    ({ unstartedPrograms }) => Layer.provideMerge(unstartedPrograms, noServices),
  ),
)

/**
 * Returns the identity and the config that a training would have. It runs the training until its settings are checked, and
 * stops there. With `dryRun` it starts none of the programs that the config names, so what they would report is not checked.
 */
export const plannedOf = Effect.fnUntraced(function* <E>(
  training: Effect.Effect<unknown, E, Effect.Services<LoadedTraining>>,
  options: RunOptions,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
) {
  const planned = yield* Deferred.make<Pick<PlannedRun, "identity" | "effective">>()
  const onPlanned = (identity: RunIdentity, effective: Plain): Effect.Effect<never> =>
    Effect.andThen(Deferred.succeed(planned, { identity, effective }), Effect.never)
  const stopping = training.pipe(
    Effect.provideService(RunOptions, { ...options, onPlanned }),
    Effect.provide(dryRun ? nothingStarts : noServices),
    Effect.andThen(Effect.fail(usageError(`${options.source}: the program ended without starting a training`))),
  )
  return yield* Effect.raceFirst(Deferred.await(planned), stopping)
})
