/** Trains the runs of a language model's trainer again in a temporary folder, for `effect replay`. */
import { basename, join } from "node:path"
import { Effect, FileSystem, Layer } from "effect"
import { isPlain, toCamelCase } from "../../../base/config/Config.ts"
import { backend, trainerThreads, platform, rankProcesses, runStore, terminalProgress } from "../../../node.ts"
import { nameOf } from "../../../trainer/Layout.ts"
import { runsIn } from "../../../trainer/trainerFolder.ts"
import * as Layout from "../../../run/Layout.ts"
import { Recorder } from "../../../run/record/Recorder.ts"
import { scores } from "../../../run/record/scores.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { sessionOptions, threadsOfEach } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { digestIn } from "../run/finished.ts"
import { loadTrainingOf } from "../userCode/loadTraining.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import type { ReplayedScores } from "./compareScores.ts"
import type { ReplayFlags } from "./flags.ts"
import { scoresOfAll } from "./scoreFiles.ts"

/**
 * Returns the folders of the runs in a trainer's folder, by their ids. If the folder is that of a single run, it returns only
 * this run.
 */
export const runsOf = Effect.fnUntraced(function* (folder: string) {
  const inside = yield* runsIn(folder)
  const runs = new Map(
    inside.length === 0 ? [[basename(folder), folder]] : inside.map((id) => [id, join(folder, id)] as const),
  )
  const named = Object.keys(yield* configsIn(folder))
  for (const [id, run] of runs) {
    if (!named.includes(nameOf(id)))
      return yield* usageError(`${folder}: ${id} is not in its config, so replay that run alone: effect replay ${run}`)
  }
  return runs
})

/** Returns the configs of all runs in a trainer's config. */
const configsIn = Effect.fnUntraced(function* (folder: string) {
  const config = toCamelCase(yield* readYaml(join(folder, Layout.config)))
  return isPlain(config) && isPlain(config.runs) ? config.runs : {}
})

/** The setting with which the trainer plays all tasks itself, even if other processes played them in the original run. */
const overrides = [{ path: "orchestrators", value: "inside", source: "effect replay" }]

/** Trains the runs again, all of them or a single one, and returns their scores and the digest. */
export const trainedAgain = Effect.fnUntraced(function* (input: ReplayFlags, runs: ReadonlyMap<string, string>) {
  const { run, file, quiet, backend: device } = input
  const options = yield* sessionOptions(input)
  const threads = threadsOfEach(options.threads)
  const resultsDir = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "effect-replay-" })
  const training = yield* loadTrainingOf(run, file)
  const recorder = Recorder.layer(scores, ...(quiet ? [] : [terminalProgress]))
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, { overrides, source: join(run, Layout.config), name: "replay" }),
    Effect.provide(
      Layer.mergeAll(
        backend(device, options),
        platform,
        rankProcesses({ backend: device, threads }),
        trainerThreads({ backend: device, threads }),
        recorder,
        runStore({ resultsDir }),
      ),
    ),
  )
  const again = new Map([...runs.keys()].map((id) => [id, join(result.runDir, id)]))
  const isOne = runs.has(basename(run))
  return {
    scores: yield* scoresOfAll(again),
    digest: isOne ? yield* digestIn(join(result.runDir, basename(run))) : result.digest,
    hint: yield* hintOf(run),
  } satisfies ReplayedScores
})

/** Explains why a trainer's runs may come out differently, from its config; undefined if they should not. */
const hintOf = Effect.fnUntraced(function* (run: string) {
  const configs = yield* configsIn(run)
  const late = Object.entries(configs).flatMap(([name, config]) => {
    const level = isPlain(config) ? (config.maxAsyncLevel ?? 2) : 0
    return level === 0 ? [] : [`runs.${name}.max_async_level is ${String(level)}`]
  })
  if (late.length === 0) return undefined
  return `${late.join(", ")}, so answers may come from older weights, as the time allowed; only with 0 a replay has the same bits`
})
