/**
 * Reads files with the scores of language-model agents, line by line: our files, and files of another program, whose lines
 * use other keys for some values. Programs and the page of `effect ui` use it.
 *
 * @example
 * ```ts
 * const failed = yield* ScoreRecords.read("results/…/scores/train/scores.jsonl").pipe(
 *   Stream.filter(({ score }) => score === 0),
 *   Stream.runCollect,
 * )
 * ```
 */
import { Effect, type FileSystem, Option, Schema, Stream } from "effect"
import { isPlain } from "../../base/config/Config.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { type JsonLine, linesOf, valueOf } from "../../base/formats/jsonLines.ts"
import { StepScoreRecord } from "./stepScores.ts"

export { StepScoreRecord } from "./stepScores.ts"

const orNone = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The keys in the other program's lines that our lines do not have, or that have another name in ours. */
const otherKeys = {
  feedback_message: orNone(Schema.String),
  target: Schema.optionalKey(Schema.Unknown),
  feedback_extra: Schema.optionalKey(Schema.Unknown),
  error_type: orNone(Schema.String),
  env_info: orNone(Schema.Record(Schema.String, Schema.Unknown)),
  timing: orNone(
    Schema.Struct({
      step_start: orNone(Schema.String),
      step_end: orNone(Schema.String),
      duration_ms: orNone(Schema.Finite),
    }),
  ),
}

const AnyRecord = Schema.Struct({
  ...StepScoreRecord.fields,
  // In the other program's lines, this is the observation after the step; missing or null if there was none.
  observation: orNone(Schema.String),
  ...otherKeys,
})

const isOfOtherProgram = (record: typeof AnyRecord.Type): boolean => Object.keys(otherKeys).some((key) => key in record)

/** Converts a record of either program to our keys; in ours, the observation after the step is `next_observation`. */
const inOurs = (record: typeof AnyRecord.Type): StepScoreRecord => {
  const { observation, feedback_message, target, feedback_extra, error_type, env_info, timing, ...ours } = record
  if (!isOfOtherProgram(record)) return { ...ours, ...(typeof observation === "string" ? { observation } : {}) }
  const isExtra = feedback_extra !== undefined && feedback_extra !== null
  const extra = {
    ...(isPlain(feedback_extra) ? feedback_extra : isExtra ? { value: feedback_extra } : {}),
    ...(typeof error_type === "string" ? { error_type } : {}),
  }
  const { step_start, step_end, duration_ms } = timing ?? {}
  return {
    ...ours,
    next_observation: observation ?? null,
    feedback: {
      score: ours.score,
      ...(target === undefined ? {} : { target }),
      ...(typeof feedback_message === "string" ? { message: feedback_message } : {}),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    },
    ...(isPlain(env_info) ? { info: env_info } : {}),
    ...(typeof step_start === "string" ? { step_start } : {}),
    ...(typeof step_end === "string" ? { step_end } : {}),
    ...(typeof duration_ms === "number" ? { duration_ms } : {}),
  }
}

const recordOf = valueOf(AnyRecord)
const decodeAny = Schema.decodeUnknownOption(AnyRecord)

/** Decodes a parsed line to a record with our keys; `Option.none` if the line is not a score record. */
export const decode = (value: unknown): Option.Option<StepScoreRecord> => Option.map(decodeAny(value), inOurs)

/**
 * Reads the records of a file, in order. An incomplete last line is ignored, because its writer was stopped or is still
 * writing. Any other invalid line is an error that names the line.
 */
export const read = (path: string): Stream.Stream<StepScoreRecord, FormatError, FileSystem.FileSystem> => {
  const one = (line: JsonLine): Effect.Effect<ReadonlyArray<StepScoreRecord>, FormatError> =>
    recordOf(path, line).pipe(
      Effect.map((record) => [inOurs(record)]),
      Effect.catch((error) => (line.whole ? Effect.fail(error) : Effect.succeed([]))),
    )
  return linesOf(path).pipe(Stream.mapEffect(one), Stream.flattenIterable)
}
