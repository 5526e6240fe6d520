/**
 * Reads the folder of a trainer, for other programs that serve its model or play its tasks. The trainer may be running in
 * another process.
 *
 * @example
 * ```ts
 * const trainer = yield* trainerAt("results/…/letters_multirun/0001")
 * trainer?.settings.inference.pageSize // 16
 * ```
 */
import { Effect, type FileSystem, Path } from "effect"
import { type ConfigError, decode, isPlain, toCamelCase } from "../base/config/Config.ts"
import { exists, mostBytes, namesIn, readText } from "../base/files/files.ts"
import { readYamlText } from "../base/config/yaml.ts"
import * as RunLayout from "../run/Layout.ts"
import { kindOf } from "../run/RunSpec.ts"
import * as Layout from "./Layout.ts"
import { MultiRunConfig } from "./config/MultiRunConfig.ts"

/** A trainer that was found by its folder, or by the folder of one of its runs. */
export interface TrainerFolder {
  readonly directory: string
  readonly settings: MultiRunConfig
  /** The run whose folder the user named; null if the user named the trainer's folder. */
  readonly run: string | null
}

/** Returns the names of the runs' folders in a trainer's folder, sorted. */
export const runsIn = (directory: string): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem> =>
  Effect.map(namesIn(directory), (names) => names.filter(Layout.isRunName).toSorted())

/** Reads the folder of a trainer, or of the trainer of a run's folder; undefined for any other folder. */
export const trainerAt = Effect.fnUntraced(function* (
  named: string,
): Effect.fn.Return<TrainerFolder | undefined, ConfigError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const folder = path.resolve(named)
  const isRun = Layout.isRunName(path.basename(folder)) && (yield* exists(path.join(folder, Layout.configs)))
  const directory = isRun ? path.dirname(folder) : folder
  const file = path.join(directory, RunLayout.config)
  const text = yield* Effect.orElseSucceed(readText(file, mostBytes.config), () => undefined)
  if (text === undefined) return undefined
  const { value } = yield* readYamlText(text, file)
  if (!isPlain(value) || kindOf(value) !== "multirun") return undefined
  const settings = yield* decode(MultiRunConfig, toCamelCase(value), { source: file, whole: MultiRunConfig })
  return { directory, settings, run: isRun ? path.basename(folder) : null }
})
