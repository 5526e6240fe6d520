/** Reads and writes `labels.json` in the folder of a run. */
import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { type PlatformFailure, readText } from "../../base/files/files.ts"
import { prettyJson } from "../../base/text/text.ts"
import * as Layout from "../Layout.ts"
import { RunStoreError, runStoreError } from "../store/RunStoreError.ts"
import {
  changeLabels,
  isNote,
  isTag,
  isTitle,
  type LabelChange,
  most,
  mostLabelBytes,
  type RunLabels,
} from "./labels.ts"

const Title = Schema.String.check(Schema.makeFilter(isTitle))
const Note = Schema.String.check(Schema.makeFilter(isNote))
const Tag = Schema.String.check(Schema.makeFilter(isTag))

/** The content of `labels.json`. */
const LabelsFile = Schema.Struct({
  title: Schema.optionalKey(Title),
  note: Schema.optionalKey(Note),
  tags: Schema.optionalKey(Schema.Array(Tag).check(Schema.isMaxLength(most.tags))),
  archived: Schema.optionalKey(Schema.Boolean),
})

/** Decodes the parsed `labels.json` of a run, which may come from somebody else; undefined if it does not fit. */
export const labelsIn = (data: unknown): RunLabels | undefined =>
  Option.getOrUndefined(Schema.decodeUnknownOption(LabelsFile)(data))

/**
 * Changes the labels of the run in a folder, and returns the new ones. The file is replaced as a whole. If two processes change
 * labels at the same moment, the later one may drop the change of the other.
 */
export const changeLabelsOf = Effect.fnUntraced(function* (
  directory: string,
  change: LabelChange,
): Effect.fn.Return<RunLabels, RunStoreError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(directory, Layout.labels)
  const refused = (message: string) => new RunStoreError({ path: file, operation: "change labels", message })
  const text = yield* Effect.catchIf(
    readText(file, mostLabelBytes),
    ({ missing }) => missing,
    () => Effect.succeed("{}"),
  ).pipe(Effect.mapError((error) => runStoreError("read", file, error)))
  const before = Option.getOrUndefined(Schema.decodeUnknownOption(jsonText(LabelsFile))(text))
  if (before === undefined)
    return yield* refused(`${file}: expected the labels of a run; repair the file, or remove it to begin again`)
  const after = changeLabels(before, change)
  if ("problem" in after) return yield* refused(after.problem)
  const temporary = path.join(directory, `.${Layout.labels}.${crypto.randomUUID()}.tmp`)
  const replace = Effect.gen(function* () {
    if (Object.keys(after.labels).length === 0) return yield* fs.remove(file, { force: true })
    // The folder of the run must exist: a run that was deleted meanwhile does not come back.
    yield* fs.writeFileString(temporary, prettyJson(after.labels), { flag: "wx" })
    yield* fs.rename(temporary, file)
  })
  yield* replace.pipe(
    Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true }))),
    Effect.uninterruptible,
    Effect.mapError((error: PlatformFailure) => runStoreError("write", file, error)),
  )
  return after.labels
})
