/**
 * Writes the records that TensorBoard's HParams plugin shows of each run: its settings, and how it ended. A record is a
 * TensorBoard summary whose metadata hold a protobuf message (`plugin_data.proto` of the plugin defines it). We write no
 * record about all runs together, so the plugin collects the settings and metrics from each run. `tensorBoard.ts` calls these
 * functions; they only write into its buffer.
 */
import { isPlain, isSecret, type Plain, snakeCase } from "../../base/config/Config.ts"
import type { ByteWriter } from "../../base/formats/ByteWriter.ts"
import { ProtobufMessage } from "../../base/formats/protobuf.ts"
import { writeSummary } from "../../base/formats/tfevents.ts"

type Setting = number | string | boolean

/** Encodes `google.protobuf.Value`: a number is field 2, a string 3, a boolean 4. */
const valueOf = (setting: Setting): ProtobufMessage => {
  if (typeof setting === "number") return new ProtobufMessage().double(2, setting)
  if (typeof setting === "string") return new ProtobufMessage().text(3, setting)
  return new ProtobufMessage().int(4, setting ? 1 : 0)
}

/** Encodes `SessionStartInfo`: field 1 maps names to values, 5 is the time. */
const startInfo = (settings: Readonly<Record<string, Setting>>, seconds: number): ProtobufMessage => {
  const info = new ProtobufMessage()
  for (const name of Object.keys(settings).sort()) {
    info.message(1, new ProtobufMessage().text(1, name).message(2, valueOf(settings[name])))
  }
  return info.double(5, seconds)
}

const statuses = { success: 1, failure: 2 }

/** Encodes `SessionEndInfo`: field 1 is the status, 2 the time. */
const endInfo = (status: keyof typeof statuses, seconds: number): ProtobufMessage =>
  new ProtobufMessage().int(1, statuses[status]).double(2, seconds)

/** Encodes `SummaryMetadata`: the plugin's name and `info`, which is in field 3 at the start and in 4 at the end. */
const metadataOf = (field: number, info: ProtobufMessage): Uint8Array => {
  const plugin = new ProtobufMessage().text(1, "hparams").message(2, new ProtobufMessage().message(field, info))
  return new ProtobufMessage().message(1, plugin).finish()
}

/** Writes the record of a run's settings. */
export const writeStart = (to: ByteWriter, seconds: number, settings: Readonly<Record<string, Setting>>): void =>
  writeSummary(to, seconds, "_hparams_/session_start_info", metadataOf(3, startInfo(settings, seconds)))

/** Writes the record of how a run ended. */
export const writeEnd = (to: ByteWriter, seconds: number, status: keyof typeof statuses): void =>
  writeSummary(to, seconds, "_hparams_/session_end_info", metadataOf(4, endInfo(status, seconds)))

/** The longest text, in characters, that counts as a setting. A longer text is treated as data. */
const longestText = 100

/** The settings of a config under their names in snake_case, nested as in the config. A list is one setting. */
export interface SettingTree {
  readonly [name: string]: Setting | ReadonlyArray<Setting> | SettingTree
}

const isSetting = (value: unknown): value is Setting => ["number", "string", "boolean"].includes(typeof value)

const isList = (value: unknown): value is ReadonlyArray<Setting> =>
  Array.isArray(value) && value.length > 0 && value.length <= longestText && value.every(isSetting)

/**
 * Returns the settings of a config. Lists of objects and long values are data, and API keys are secrets, so both are left
 * out.
 *
 * @example
 * ```ts
 * settingTree({ numEnvs: 8, algorithm: { name: "ppo", hidden: [64, 64] }, apiKey: "s3cr3t" })
 * // { num_envs: 8, algorithm: { name: "ppo", hidden: [64, 64] } }
 * ```
 */
export const settingTree = (config: Plain): SettingTree =>
  Object.fromEntries(
    Object.entries(config).flatMap(([key, value]): ReadonlyArray<readonly [string, SettingTree[string]]> => {
      const name = snakeCase(key)
      if (isSecret(key)) return []
      if (isSetting(value)) return typeof value === "string" && value.length > longestText ? [] : [[name, value]]
      if (isList(value)) return JSON.stringify(value).length > longestText ? [] : [[name, value]]
      const section = isPlain(value) ? settingTree(value) : {}
      return Object.keys(section).length === 0 ? [] : [[name, section]]
    }),
  )

/** Returns settings by their paths, as `--set` takes them. A list is written as JSON. */
export const byPath = (settings: SettingTree): Readonly<Record<string, Setting>> =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]): ReadonlyArray<readonly [string, Setting]> => {
      if (isSetting(value)) return [[name, value]]
      if (isList(value)) return [[name, JSON.stringify(value)]]
      return Object.entries(byPath(value)).map(([path, setting]) => [`${name}.${path}`, setting])
    }),
  )
