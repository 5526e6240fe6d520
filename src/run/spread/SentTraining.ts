/**
 * Describes a training for other machines that do a part of its work: validations, and episodes that do not depend on each
 * other. A training that a config describes is sent as its config. A training that is made in code cannot be sent: instead,
 * the other machines load the same program, and refuse another version of it.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { isPlain, isSecret, type Override, type Plain, toSnakeCase, variableIn } from "../../base/config/Config.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { asSaved } from "../../base/config/yaml.ts"
import { SentFile } from "../../spread/cluster/sent/SentFile.ts"

/** The name of the backend, as for `--backend`; null for a backend without a name. */
const backend = Schema.NullOr(Schema.String)

export const SentTraining = Schema.Union([
  Schema.TaggedStruct("Config", {
    backend,
    /** The whole config, without secrets: each machine reads API keys from its own environment. */
    config: Schema.Record(Schema.String, Schema.Unknown),
  }),
  Schema.TaggedStruct("Program", {
    backend,
    /** The files on which the training depends. The first is the module whose default export is the training. */
    files: Schema.NonEmptyArray(SentFile),
    /** The run's name, if the program does not set one. */
    name: Schema.String,
    /** The settings that override those of the program, without API keys. */
    overrides: Schema.Array(Schema.Struct({ path: Schema.String, value: Schema.Unknown, source: Schema.String })),
  }),
])
export type SentTraining = typeof SentTraining.Type

/** Returns a config without secrets, as it is saved in the run's folder, to be sent to other machines. */
export const asSent = (config: Plain): Plain => {
  const saved = asSaved(toSnakeCase(config))
  return isPlain(saved) ? saved : {}
}

/**
 * Returns a launcher's settings without API keys, to be sent to other machines. Settings that only name an environment
 * variable are kept.
 */
export const withoutKeys = (overrides: ReadonlyArray<Override>): ReadonlyArray<Override> =>
  overrides.flatMap(({ path, value, source }) => {
    const last = path.split(".").at(-1) ?? ""
    return isSent(last, value) ? [{ path, value: withoutSecrets(value), source }] : []
  })

const isSent = (key: string, value: unknown): boolean =>
  !isSecret(key) || (typeof value === "string" && variableIn(value) !== undefined)

const withoutSecrets = (tree: unknown): unknown => {
  if (Array.isArray(tree)) return tree.map(withoutSecrets)
  if (!isPlain(tree)) return tree
  return Object.fromEntries(
    Object.entries(tree).flatMap(([key, value]) => (isSent(key, value) ? [[key, withoutSecrets(value)]] : [])),
  )
}

/** The fields of a job that does a part of a training's work. */
export const trainingFields = {
  /** Identifies the run and the settings of this process. No two runs have the same id. */
  run: Schema.String,
  training: SentTraining,
  /** The settings on which results depend, with digests of the data. A worker whose settings differ refuses the job. */
  identity: Schema.Record(Schema.String, Schema.Unknown),
}

/** Returns an id of a run, from its folder and the settings on which its episodes depend. */
export const runIdOf = (directory: string, identity: Plain): Effect.Effect<string> =>
  Effect.map(sha256(utf8.encode(JSON.stringify([directory, identity]))), (digest) => digest.slice(0, 16))
