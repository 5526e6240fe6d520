import { existsSync } from "node:fs"
import { basename, dirname, extname, join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Option, Path } from "effect"
import type { Override } from "../../config/Config.ts"
import { applyOverrides, camelCase, display, isPlain, toCamelCase } from "../../config/Config.ts"
import { mostBytes, readText, shownPath } from "../../config/files.ts"
import { shownError } from "../../config/text.ts"
import { readYamlText, type YamlDocument } from "../../config/yaml.ts"
import { kindOf } from "../../run/RunSpec.ts"
import type { RunResult } from "../../run/RunResult.ts"
import { logsDir } from "../../runtime/logsDir.ts"
import type * as Runtime from "../../runtime/Runtime.ts"
import { toRunResult } from "../../run/RuntimeResult.ts"
import type { Run, TrainError } from "../../train/Train.ts"
import { type ProgramHint, withFragmentHint, withProgramHint } from "./codeHints.ts"
import { UsageError } from "../UsageError.ts"
import { guarded, notATraining, placeIn, shownThrown, type UserCodeError, UserProcess } from "./userCode.ts"
import * as Layout from "../../run/Layout.ts"

/** Of a trainer, or of the runtime of agents that talk: it says the same of itself. */
export type Training = Effect.Effect<RunResult, TrainError | Runtime.RuntimeError | UserCodeError, Needs>

type Needs = Effect.Services<Run> | Effect.Services<ReturnType<typeof Runtime.fromConfig>>

/** Loads the training that a run was made by: from the program that is given, or else from the run's own config. */
export const loadTrainingOf = (run: string, program: Option.Option<string>): Effect.Effect<Training, UsageError> =>
  loadTraining(
    Option.getOrElse(program, () => join(run, Layout.config)),
    { text: "if your own program defines it, name that program: --file FILE.ts", ofRun: true },
  )

/**
 * Loads the training that a file holds: a module whose default export it is, or a config in YAML. The hint says how to
 * name the program where the config names an env or an algorithm that only a program can define.
 */
export const loadTraining = Effect.fnUntraced(function* (
  file: string,
  programHint: ProgramHint = {
    text: `if your own program defines it, name that program: effect run FILE.ts --config ${file}`,
    ofRun: false,
  },
): Effect.fn.Return<Training, UsageError> {
  const path = resolve(file)
  if (!existsSync(path)) return yield* new UsageError({ message: `${file}: there is no such file` })
  const extension = extname(path)
  if (extension === ".yaml" || extension === ".yml") {
    const { value: config, lines } = yield* yamlLines(file)
    if (!isPlain(config)) return yield* notKeys(file, config)
    const kind = kindOf(config)
    if (kind === "evaluation") {
      return yield* new UsageError({ message: `${file}: this is an evaluation; run it with effect eval ${file}` })
    }
    const loaded = yield* kind === "agents"
      ? talking(config, { baseDir: dirname(path), lines })
      : training(config, lines)
    return withFragmentHint(withProgramHint(loaded, programHint), config, file)
  }
  if (![".ts", ".mts", ".js", ".mjs"].includes(extension)) {
    const isRun = existsSync(resolve(path, Layout.config))
    const hint = isRun
      ? `; this is a run: effect run ${file}/config.yaml repeats it, effect run FILE --resume ${file} resumes it`
      : ""
    return yield* new UsageError({ message: `${file}: expected a .ts, .js or .yaml file${hint}` })
  }
  const { importing, watch } = yield* UserProcess
  const loaded = yield* Effect.tryPromise({
    try: () => importing(() => importModule(pathToFileURL(path).href)),
    catch: (error) => new UsageError({ message: `${file}: ${whatAndWhere(error)}` }),
  })
  yield* watch
  const exported = defaultExport(loaded)
  if (exported === undefined) {
    return yield* new UsageError({
      message: `${file}: it has no default export; expected export default Train.run({ … })`,
    })
  }
  if (!isTraining(exported)) {
    return yield* new UsageError({ message: `${file}: its default export is ${notATraining(exported)}` })
  }
  return inTasks(Effect.map(guarded(file, exported), toRunResult))
})

// Neither is loaded before it is asked for: help and the like are to be there at once.
const talking = (config: unknown, where: Parameters<typeof Runtime.fromConfig>[1]): Effect.Effect<Training> =>
  Effect.map(
    Effect.promise(() => import("../../runtime/Runtime.ts")),
    ({ fromConfig }) => inTasks(Effect.map(fromConfig(config, where), toRunResult)),
  )

/** Agents that talk train for tasks: what a flag of trainers means to them. */
const inTasks = (training: Training): Training =>
  Effect.catchTag(training, "ConfigError", (error) => {
    const isUnknown = error.source === "--total-steps" && error.message.includes('unknown key "total_steps"')
    const message =
      "--total-steps only works with reinforcement learning; for language-model agents: --set runtime.max_envs_to_visit=N"
    return Effect.fail(isUnknown ? error.reworded(() => message) : error)
  })

const training = (config: unknown, lines: ReadonlyMap<string, string>): Effect.Effect<Training> =>
  Effect.map(
    Effect.promise(() => import("../../train/Train.ts")),
    ({ fromConfig }) => fromConfig(config, { lines }),
  )

/** What is said of where runs are kept, and of what they are called: by a file in YAML, and by what is laid over it. */
export const ownPlace = Effect.fnUntraced(function* (
  file: string,
  overrides: ReadonlyArray<Override> = [],
): Effect.fn.Return<{ readonly resultsDir?: string; readonly name?: string }, UsageError> {
  const config = [".yaml", ".yml"].includes(extname(file)) ? toCamelCase(yield* readYaml(file)) : {}
  const { name, output } = applyOverrides(isPlain(config) ? config : {}, overrides).value
  const said = isPlain(output) ? output.resultsDir : undefined
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof said === "string" ? { resultsDir: yield* Effect.provide(logsDir(said), Path.layer) } : {}),
  }
})

/** Node strips types by itself; what it can't strip (enums, namespaces) tsx compiles, where it is installed. */
const importModule = async (href: string): Promise<unknown> => {
  try {
    return await import(href)
  } catch (error) {
    if (codeOf(error) !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error
    const { register } = await import("tsx/esm/api").catch(() => {
      throw error
    })
    // For this process: a copy of the library in a world of its own would not know the graphs of the other.
    register()
    return await import(`${href}?compiled`)
  }
}

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

/** tsx wraps a CommonJS package's exports once more. */
const defaultExport = (loaded: unknown): unknown => {
  const value = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : undefined
  const isWrapped = !Effect.isEffect(value) && typeof value === "object" && value !== null && "default" in value
  return isWrapped ? value.default : value
}

/** What an Effect needs and fails with is not there at run time; a wrong one dies of a missing service. */
const isTraining = (
  value: unknown,
): value is Effect.Effect<RunResult | Runtime.RuntimeResult, Effect.Error<Training>, Needs> => Effect.isEffect(value)

/** One line: the error, and the place in the user's own files where it happened. */
const whatAndWhere = (error: unknown): string => {
  if (!(error instanceof Error)) return shownThrown(error)
  const place = placeIn(error.stack)
  return `${shownError(error)}${place === undefined ? "" : ` (${place})`}${hintFor(error)}`
}

/** What helps where Node itself doesn't say. */
const hintFor = (error: Error): string => {
  if (codeOf(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return '; "npm install tsx" brings what compiles it'
  if (error.message.includes("outside a module")) return '; set "type": "module" in the nearest package.json'
  return missingExtension(error)
}

/** Node wants the whole name of a file that is imported. */
const missingExtension = (error: Error): string => {
  if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || !("url" in error) || typeof error.url !== "string") return ""
  const path = fileURLToPath(error.url).replace(/\.js$/, "")
  return existsSync(`${path}.ts`) ? `; did you mean ${basename(path)}.ts?` : ""
}

/** For a config that is a list or a single value. */
export const notKeys = (file: string, value: unknown): UsageError => {
  const what = value === null ? "nothing: the file is empty" : Array.isArray(value) ? "a list" : display(value)
  return new UsageError({ message: `${file}: expected keys and values ("key: value"), found ${what}` })
}

/** A YAML file as plain data. */
export const readYaml = (file: string): Effect.Effect<unknown, UsageError> =>
  Effect.map(parseFile(file), ({ value }) => value)

/** The same with the place of each of its keys: `agent.historyK` in `conf.yaml:7`. */
export const yamlLines = Effect.fnUntraced(function* (
  file: string,
): Effect.fn.Return<{ readonly value: unknown; readonly lines: ReadonlyMap<string, string> }, UsageError> {
  const { value, keyLineOf } = yield* parseFile(file)
  const lines = new Map<string, string>()
  const walk = (tree: unknown, path: ReadonlyArray<string>): void => {
    const isData = path.at(-1) === "items"
    if (isData || typeof tree !== "object" || tree === null) return
    for (const [key, item] of Object.entries(tree)) {
      const line = keyLineOf([...path, key])
      if (line !== undefined) lines.set([...path, key].map(camelCase).join("."), `${file}:${line}`)
      walk(item, [...path, key])
    }
  }
  walk(value, [])
  return { value, lines }
})

/** A YAML file's values as overrides that know their lines. */
export const yamlOverrides = Effect.fnUntraced(function* (
  file: string,
): Effect.fn.Return<ReadonlyArray<Override>, UsageError> {
  const { value, lineOf } = yield* parseFile(file)
  if (!isPlain(value)) return yield* notKeys(file, value)
  const overrides: Array<Override> = []
  const walk = (tree: unknown, path: ReadonlyArray<string>): void => {
    if (isPlain(tree) && !("_tag" in tree) && Object.keys(tree).length > 0) {
      // Another name leaves the settings of the one before behind, so it comes first.
      const keys = Object.keys(tree).sort((a, b) => Number(b === "name") - Number(a === "name"))
      for (const key of keys) walk(tree[key], [...path, key])
      return
    }
    overrides.push({ path: path.join("."), value: tree, source: `${file}:${lineOf(path)}` })
  }
  walk(value, [])
  return overrides
})

const parseFile = (file: string): Effect.Effect<YamlDocument, UsageError> =>
  readText(file, mostBytes.config).pipe(
    Effect.mapError(({ message }) => new UsageError({ message: `${shownPath(file)}: ${message}` })),
    Effect.flatMap((text) => Effect.mapError(readYamlText(text, file), ({ message }) => new UsageError({ message }))),
    Effect.provide(NodeFileSystem.layer),
  )
