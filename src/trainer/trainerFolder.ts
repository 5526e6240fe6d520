/**
 * Reads the folder of a trainer, for programs beside it that serve its model or play its tasks. The trainer may be at
 * work meanwhile, in another process.
 *
 * @example
 * ```ts
 * const trainer = yield* trainerAt("results/…/letters_multirun/0001")
 * trainer?.settings.inference.pageSize // 16
 * ```
 */
import { Effect, type FileSystem, Path } from "effect"
import { type ConfigError, decode, isPlain, toCamelCase } from "../base/config/Config.ts"
import { exists, mostBytes, namesIn, readText } from "../base/config/files.ts"
import { readYamlText } from "../base/config/yaml.ts"
import * as RunLayout from "../run/Layout.ts"
import { kindOf } from "../run/RunSpec.ts"
import * as Layout from "./Layout.ts"
import { MultiRunConfig } from "./config/MultiRunConfig.ts"

/** The folder of a trainer, or the folder of one of its runs. */
export interface TrainerFolder {
  readonly directory: string
  readonly settings: MultiRunConfig
  /** The run whose folder was named; null if it was the trainer's. */
  readonly run: string | null
}

/** Returns the folders of the runs in a trainer's folder, by name and sorted. */
export const runsIn = (directory: string): Effect.Effect<ReadonlyArray<string>, never, FileSystem.FileSystem> =>
  Effect.map(namesIn(directory), (names) => names.filter(Layout.isRunName).toSorted())

/** Reads the folder of a trainer, also by the folder of one of its runs; undefined for any other folder. */
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
