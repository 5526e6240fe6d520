/**
 * Defines the files in the folder of a study: `study.yaml` has its settings, and `trials.jsonl` has a line for each trial
 * that has ended, in the order of their numbers. These functions convert between the data and the text; their callers read
 * and write the files.
 */
import { Effect, Option, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { stringify } from "yaml"
import { type ConfigError, decode, isPlain, type Plain, toCamelCase, toSnakeCase } from "../../base/config/Config.ts"
import { keyPlaces, readYamlText } from "../../base/config/yaml.ts"
import { readStudy, StudySettings } from "./StudySettings.ts"
import { Trial } from "./Trial.ts"

/** The content of `study.yaml`. */
export const StudyFile = Schema.Struct({
  /** The file of the training, as the user typed it. */
  file: Schema.String,
  /** The name of the study's runs. */
  name: Schema.String,
  /** The commit in the paths of the study's runs. */
  commit: Schema.String,
  /** The settings of the study. */
  study: Schema.Record(Schema.String, Schema.Unknown),
  /** The config of the training before the study changes it, with the keys that the code uses. */
  base: Schema.Record(Schema.String, Schema.Unknown),
})
export type StudyFile = typeof StudyFile.Type

/** Returns the text of `study.yaml`. */
export const studyText = (file: StudyFile): string => stringify(toSnakeCase(file))

/** Parses the text of `study.yaml`. The error names `place`, the path of the file. */
export const parseStudy = Effect.fnUntraced(function* (
  text: string,
  place: string,
): Effect.fn.Return<
  { readonly file: StudyFile; readonly study: Effect.Success<ReturnType<typeof readStudy>> },
  ConfigError
> {
  const document = yield* readYamlText(text, place)
  const sources = keyPlaces(document, place)
  const file = yield* decode(StudyFile, toCamelCase(document.value), { source: place, sources })
  // The lines of the keys below the section `study`, by their names without the section's.
  const within = new Map([...sources].map(([key, line]) => [key.replace(/^study\./, ""), line]))
  return { file, study: yield* readStudy(file.study, { source: place, sources: within }) }
})

const TrialLine = jsonText(Trial)

/** Returns the text of `trials.jsonl`. */
export const trialsText = (trials: ReadonlyArray<Trial>): string =>
  trials.map((trial) => `${Schema.encodeSync(TrialLine)(trial)}\n`).join("")

/** Parses the text of `trials.jsonl`, up to the first line that is not a complete record of the next trial. */
export const parseTrials = (text: string): ReadonlyArray<Trial> => {
  const trials: Array<Trial> = []
  for (const line of text.split("\n")) {
    const trial = Option.getOrUndefined(Schema.decodeUnknownOption(TrialLine)(line))
    if (trial?.trial !== trials.length) break
    trials.push(trial)
  }
  return trials
}

/** Converts the settings of a study to the form in `study.yaml`. */
export const settingsIn = (settings: StudySettings): Plain => {
  const encoded: unknown = Schema.encodeSync(StudySettings)(settings)
  return isPlain(encoded) ? encoded : {}
}

/** Converts settings by their paths to the sections of a config: `{ "a.b": 1 }` becomes `{ a: { b: 1 } }`. */
export const sections = (params: Plain): Plain => {
  const tree: Record<string, unknown> = {}
  for (const [path, value] of Object.entries(params)) {
    const [last = "", ...above] = path.split(".").toReversed()
    let section = tree
    for (const key of above.toReversed()) {
      const inner: Record<string, unknown> = {}
      const existing = section[key]
      if (isPlain(existing)) Object.assign(inner, existing)
      section[key] = inner
      section = inner
    }
    section[last] = value
  }
  return tree
}
