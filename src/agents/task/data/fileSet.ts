/** Makes data sets from records: defines the config keys that all such data sets share, and converts records to tasks. */
import { Effect, Schema } from "effect"
import { type Plain, ConfigError, placeOf } from "../../../base/config/Config.ts"
import { orDefault, withDefault } from "../../../base/config/fields.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { type DatasetContext, type DatasetOpening, orderFields } from "../DatasetKind.ts"
import { recordsFile } from "../hub/dataset.ts"
import { DatasetError, ordered, type TaskSet } from "../TaskSet.ts"
import type { TextEnv } from "../TextEnv.ts"
import { template, type Template } from "./question.ts"
import { ofFile, ofItems } from "./Records.ts"
import { utf8 } from "../../../base/text/utf8.ts"

const optionalText = withDefault(Schema.NullOr(Schema.String), null)

/** The config keys of a data set of records, with its defaults for `input`, `target` and `split`. */
export const recordFields = (defaults: {
  readonly input: string
  readonly target: string
  readonly split?: string
}) => ({
  /** The file of the records, as JSON lines or CSV. A relative path starts at the config's folder. */
  datasetPath: optionalText,
  /** The records themselves, if the config lists them. */
  items: withDefault(Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))), null),
  /** The name of a data set on the Hugging Face hub, such as `openai/gsm8k`, which is downloaded once. */
  hfDataset: optionalText,
  /** The subset of the hub's data set; null uses the default subset. */
  hfSubset: optionalText,
  /** The branch, tag or commit of the hub's data set; null uses the newest commit. A run records the commit. */
  hfRevision: optionalText,
  /** The records of the hub's data set: a split, a slice such as `train[:100]`, or a sum such as `train+test[:10%]`. */
  split: orDefault(Schema.String, defaults.split ?? "train"),
  /** The key, in each record, of the question. */
  inputField: withDefault(Schema.String, defaults.input),
  /** The key, in each record, of the right answer, or of a list of right answers. */
  targetField: withDefault(Schema.String, defaults.target),
  /** Another name of `input_field`. */
  questionField: Schema.optionalKey(Schema.String),
  /** Another name of `target_field`. */
  answerField: Schema.optionalKey(Schema.String),
  /** The key, in each record, of the choices; null if questions have no choices. */
  choicesField: optionalText,
  /** The key, in each record, of its id; null makes the id from the record's position. */
  idField: optionalText,
  /** The keys, in each record, whose values become the env's metadata. */
  metaFields: withDefault(Schema.Array(Schema.String), []),
  /** The text that the agent gets, in which `{question}` is replaced by the question; null uses only the question. */
  instructionTemplate: optionalText,
  ...orderFields,
})

type RecordConfig = Schema.Struct<ReturnType<typeof recordFields>>["Type"] & { readonly type: string }

/** Makes a record's task, or describes the problem. Opening a data set calls it once for every record, in order. */
type TaskOf = (fields: Plain, index: number) => TextEnv | string

/** Returns the template of a config; by default, the question itself. */
export const templateOf = (config: RecordConfig, { from }: DatasetContext) => {
  const parsed = template(config.instructionTemplate ?? "{question}")
  return typeof parsed === "function"
    ? Effect.succeed<Template>(parsed)
    : Effect.fail(ConfigError.at(from, "instructionTemplate", parsed.problem))
}

/** Returns the name of a data set: its file's name without folder and extension. */
const nameOf = (path: string): string => path.replace(/^.*[\\/]/s, "").replace(/(?<=.)\.[^.]*$/s, "")

/** Opens the data set of a config. `pick` gets the index of a record in the file, and returns whether to keep it. */
export const open = (
  config: RecordConfig,
  context: DatasetContext,
  task: TaskOf,
  pick?: (index: number) => boolean,
): DatasetOpening<TaskSet> =>
  Effect.gen(function* () {
    const { datasetPath, items, hfDataset, hfRevision, verbose: _, ...settings } = config
    const { from, baseDir } = context
    if (datasetPath !== null && items !== null) {
      return yield* ConfigError.at(from, "items", "expected dataset_path or items, found both")
    }
    const check = (fields: Plain, index: number): string | undefined => {
      const made = task(fields, index)
      return typeof made === "string" ? made : undefined
    }
    const onHub = datasetPath === null && items === null ? hfDataset : null
    if (datasetPath === null && items === null && hfDataset === null) {
      return yield* ConfigError.at(from, "datasetPath", "expected a file, items or hf_dataset, found none of them")
    }
    const records = yield* items !== null
      ? ofItems(placeOf(from, "items"), items, check)
      : onHub !== null
        ? Effect.flatMap(
            recordsFile({ id: onHub, subset: config.hfSubset, revision: hfRevision, split: config.split }, from),
            ({ name, path }) => ofFile(name, baseDir, check, path),
          )
        : ofFile(datasetPath ?? "", baseDir, check)
    const digest = yield* sha256(utf8.encode(JSON.stringify([records.digest, settings])))
    const at = (index: number) =>
      Effect.flatMap(records.at(index), ({ fields, place }) => {
        const made = task(fields, index)
        return typeof made === "string"
          ? Effect.fail(new DatasetError({ path: records.name, message: `${place}: ${made}` }))
          : Effect.succeed(made)
      })
    const name = nameOf(onHub === null ? records.name : `${onHub}.jsonl`)
    return ordered({ name, size: records.size, digest, at }, config, pick)
  })
