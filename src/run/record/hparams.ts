/**
 * Writes the records by which TensorBoard's HParams plugin tells runs apart: the settings of a run, and how it ended.
 * They are summaries whose metadata hold a message of the plugin (`plugin_data.proto`). There is no record of the
 * experiment: the plugin reads one for all runs, and without it collects the settings and metrics of each run.
 */
import { isPlain, snakeCase } from "../../config/Config.ts"
import { ByteWriter } from "../../formats/ByteWriter.ts"
import { writeSummary } from "../../formats/tfevents.ts"
import { utf8 } from "../../config/utf8.ts"

type Setting = number | string | boolean

const encoded = (write: (to: ByteWriter) => void): Uint8Array => {
  const to = new ByteWriter(64)
  write(to)
  return to.written.slice()
}

/** The wire types in the key of a protobuf field. */
const varint = 0
const double = 1
const delimited = 2
const key = (to: ByteWriter, field: number, kind: number): void => to.varint(8 * field + kind)

const putBytes = (to: ByteWriter, field: number, bytes: Uint8Array): void => {
  key(to, field, delimited)
  to.varint(bytes.length)
  to.piece(bytes)
}

const putText = (to: ByteWriter, field: number, text: string): void => putBytes(to, field, utf8.encode(text))

const putDouble = (to: ByteWriter, field: number, value: number): void => {
  key(to, field, double)
  to.float64(value)
}

/** Encodes `google.protobuf.Value`: a number is field 2, a string 3, a boolean 4. */
const valueOf = (setting: Setting): Uint8Array =>
  encoded((to) => {
    if (typeof setting === "number") return putDouble(to, 2, setting)
    if (typeof setting === "string") return putText(to, 3, setting)
    key(to, 4, varint)
    to.byte(setting ? 1 : 0)
  })

/** Encodes `SessionStartInfo`: field 1 maps names to values, 5 is the time. */
const startInfo = (settings: Readonly<Record<string, Setting>>, seconds: number): Uint8Array =>
  encoded((to) => {
    for (const name of Object.keys(settings).sort()) {
      const entry = encoded((inner) => {
        putText(inner, 1, name)
        putBytes(inner, 2, valueOf(settings[name]))
      })
      putBytes(to, 1, entry)
    }
    putDouble(to, 5, seconds)
  })

const statuses = { success: 1, failure: 2 }

/** Encodes `SessionEndInfo`: field 1 is the status, 2 the time. */
const endInfo = (status: keyof typeof statuses, seconds: number): Uint8Array =>
  encoded((to) => {
    key(to, 1, varint)
    to.byte(statuses[status])
    putDouble(to, 2, seconds)
  })

/** Encodes `SummaryMetadata`: field 1 is the plugin's name and its content. */
const metadataOf = (field: number, info: Uint8Array): Uint8Array =>
  encoded((to) => {
    // In HParamsPluginData, field 3 is the start of a session, 4 its end.
    const content = encoded((inner) => putBytes(inner, field, info))
    const plugin = encoded((inner) => {
      putText(inner, 1, "hparams")
      putBytes(inner, 2, content)
    })
    putBytes(to, 1, plugin)
  })

/** Writes the record of a run's settings. */
export const writeStart = (to: ByteWriter, seconds: number, settings: Readonly<Record<string, Setting>>): void =>
  writeSummary(to, seconds, "_hparams_/session_start_info", metadataOf(3, startInfo(settings, seconds)))

/** Writes the record of how a run ended. */
export const writeEnd = (to: ByteWriter, seconds: number, status: keyof typeof statuses): void =>
  writeSummary(to, seconds, "_hparams_/session_end_info", metadataOf(4, endInfo(status, seconds)))

/** The longest text, in characters, that counts as a setting. A longer text is treated as data. */
const longestText = 100

/**
 * Returns the settings of a config by their paths, as in `--set`. A list is one setting. Lists of records are data and
 * API keys are secrets, so both are left out.
 */
export const settingsOf = (value: unknown, path: ReadonlyArray<string> = []): Readonly<Record<string, Setting>> => {
  const name = path.map(snakeCase).join(".")
  if (/^api_?key$/i.test(path.at(-1) ?? "")) return {}
  if (typeof value === "number" || typeof value === "boolean") return { [name]: value }
  if (typeof value === "string") return value.length > longestText ? {} : { [name]: value }
  if (Array.isArray(value)) {
    const isData = value.length === 0 || value.some((item) => typeof item === "object")
    return isData || value.length > longestText ? {} : settingsOf(JSON.stringify(value), path)
  }
  if (!isPlain(value)) return {}
  return Object.assign({}, ...Object.entries(value).map(([inner, item]) => settingsOf(item, [...path, inner])))
}
