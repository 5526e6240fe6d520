/**
 * Answers the page's requests that change runs: titles, notes, tags, archiving and deleting. A request must show the token for
 * changes, which only the address that the command prints contains. No browser attaches it to requests by itself, so pages of
 * other sites cannot send it, and other users of the machine do not know it.
 */
import { Effect, type FileSystem, type Path, Schema } from "effect"
import { sameKey } from "../../base/trust/hostGuard.ts"
import { deleteRun } from "../../run/manage/deleteRun.ts"
import { changeLabelsOf } from "../../run/manage/labelsFile.ts"
import { owner } from "../../run/store/owner-node.ts"
import type { ResultsFolder } from "./results-node.ts"

/** The header with the token for changes. */
const header = "x-effect-changes"

/** The largest body of a request in bytes: a note at its largest, and the paths of some runs. */
const mostBytes = 256 * 1024

const Labels = {
  title: Schema.optionalKey(Schema.String),
  note: Schema.optionalKey(Schema.String),
  addTags: Schema.optionalKey(Schema.Array(Schema.String)),
  removeTags: Schema.optionalKey(Schema.Array(Schema.String)),
  archived: Schema.optionalKey(Schema.Boolean),
}

const ChangeRequest = Schema.Struct({
  /** The path of the run, as in the list of runs. */
  run: Schema.String,
  labels: Schema.optionalKey(Schema.Struct(Labels)),
  /** Deletes the run. The page has asked the user before. */
  delete: Schema.optionalKey(Schema.Literal(true)),
})

/** The reason why a request was refused: the status and the text of the response. */
interface Refused {
  readonly status: number
  readonly message: string
}

/** A request, with the function that reads its body of at most so many bytes as JSON. */
interface Request {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly json: (mostBytes: number) => Effect.Effect<unknown, Refused>
}

/** Tells whether a request shows the token for changes. Without a token, the server only shows runs. */
export const mayChange = ({ headers }: Pick<Request, "headers">, token: string | undefined): boolean =>
  token !== undefined && sameKey(headers[header], token)

const refused = (status: number, message: string): Refused => ({ status, message })

/** Changes a run as a request says. Returns why it was refused; undefined if it was done. */
export const changeRun = Effect.fnUntraced(function* (
  { index, files }: ResultsFolder,
  request: Request,
  token: string | undefined,
): Effect.fn.Return<Refused | undefined, never, FileSystem.FileSystem | Path.Path> {
  if (token === undefined) return refused(403, "this server only shows runs")
  if (!mayChange(request, token)) return refused(403, "to change runs, open the address that the command printed")
  const body = yield* Effect.result(request.json(mostBytes))
  if (body._tag === "Failure") return body.failure
  const asked = Schema.decodeUnknownOption(ChangeRequest)(body.success)
  if (asked._tag === "None") return refused(400, "expected { run, labels } or { run, delete: true }")
  const { run, labels = {}, delete: isDeleted = false } = asked.value
  if (!index.has(run)) return refused(404, "there is no such run")
  const directory = yield* files.locate(run)
  if (directory === undefined) return refused(404, "there is no such run")
  const change = isDeleted ? deleteRun(directory, owner) : changeLabelsOf(directory, labels)
  // A client that hangs up must not leave a change half done.
  return yield* Effect.match(Effect.uninterruptible(change), {
    onSuccess: () => undefined,
    // The message names the whole path of the folder, which a visitor need not know.
    onFailure: ({ message }) => refused(409, message.replaceAll(directory, run)),
  })
})
