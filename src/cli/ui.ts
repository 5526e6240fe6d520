/** Defines the subcommand `effect ui`, which serves the web page or exports it as files. */
import { randomBytes } from "node:crypto"
import { Effect, type FileSystem, Option, type Path } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { isLoopback } from "../dashboard/guard.ts"
import type { DashboardError } from "../dashboard/results-node.ts"
import { findRuns } from "../run/find/find-node.ts"
import { silentSource } from "../run/read/disk-node.ts"
import { exists } from "../config/files.ts"
import { warningLabel } from "./output/colors.ts"
import { runFolder } from "./findRun.ts"
import { defaultResultsDir } from "./flags.ts"
import { writeError, writeOut } from "./output/output.ts"
import { UsageError } from "./output/errors.ts"

const flags = {
  directory: Argument.String("dir").pipe(
    Argument.withDefault("results"),
    Argument.withDescription(
      "A results folder (default: results), or one run: its folder, latest, or a part of its path in ./results",
    ),
  ),
  port: Flag.Int("port").pipe(
    Flag.withDefault(4400),
    Flag.withDescription("The port to listen on; 0 picks a free one (default: 4400)"),
  ),
  host: Flag.String("host").pipe(
    Flag.withMetavar("address"),
    Flag.withDefault("127.0.0.1"),
    Flag.withDescription("The address to listen on; others than this machine's own need a token (default: 127.0.0.1)"),
  ),
  token: Flag.String("token").pipe(
    Flag.withMetavar("token"),
    Flag.optional,
    Flag.withDescription("The token that visitors need (default: if --host needs one, a new one is made and printed)"),
  ),
  export: Flag.String("export").pipe(
    Flag.withMetavar("dir"),
    Flag.optional,
    Flag.withDescription("Write the page with its data to this folder, as a static site for any file server, and stop"),
  ),
  checkpoints: Flag.Boolean("checkpoints").pipe(
    Flag.withDefault(false),
    Flag.withDescription("With --export: copy the runs' checkpoints too, which are large"),
  ),
}

export const ui = Command.make("ui", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Serve a web page that shows runs: a table, learning curves, episodes and files. It updates itself while runs are running.",
  ),
  Command.withShortDescription("Look at runs in a web page"),
  Command.withExamples([
    { command: "effect ui", description: "Serve the runs in ./results" },
    {
      command: "effect ui /data/results --host 0.0.0.0",
      description: "Let other machines connect; prints an address with a token",
    },
    { command: "effect ui latest", description: "Open the page of the newest run" },
    { command: "effect ui results --export site", description: "Write the same page as a static site" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>

/** Returns the folder to show: an existing folder, or the folder of the run that `latest` or a part of its path names. */
const folderOf = Effect.fnUntraced(function* (
  typed: string,
): Effect.fn.Return<string, UsageError, FileSystem.FileSystem> {
  if (yield* exists(typed)) return typed
  // A path that begins with / or ./ is never a part of a run's path.
  if (/^\.{0,2}\//.test(typed) || !(yield* exists(defaultResultsDir))) {
    const hint = typed === defaultResultsDir ? "; effect run FILE makes it, or name another folder" : ""
    return yield* new UsageError({ message: `${typed}: there is no such folder${hint}` })
  }
  return yield* runFolder(typed, { folders: [defaultResultsDir] })
})

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, UsageError | DashboardError, FileSystem.FileSystem | Path.Path> {
  const { host, port } = given
  if (port < 0 || port > 65_535) {
    return yield* new UsageError({ message: `--port: expected a number between 0 and 65535, found ${port}` })
  }
  const directory = yield* folderOf(given.directory)
  if (Option.isSome(given.export)) {
    const { exportSite } = yield* Effect.promise(() => import("../dashboard/exportSite.ts"))
    const out = given.export.value
    const { runs, files, leftOut, removed, kept } = yield* exportSite(directory, out, {
      checkpoints: given.checkpoints,
    })
    yield* writeOut(`${runs} runs, ${files} files in ${out}; any file server shows them\n`)
    if (leftOut > 0)
      yield* writeOut(
        `without ${leftOut} ${leftOut === 1 ? "file" : "files"} of checkpoints; --checkpoints copies them\n`,
      )
    if (removed > 0)
      yield* writeOut(`removed ${removed} ${removed === 1 ? "file" : "files"} of checkpoints of the earlier export\n`)
    if (kept > 0)
      yield* writeOut(
        `${kept} ${kept === 1 ? "file" : "files"} of checkpoints of an earlier export changed since and stayed\n`,
      )
    return
  }
  if (given.checkpoints) return yield* new UsageError({ message: "--checkpoints only works with --export" })
  const wished = Option.getOrUndefined(given.token)
  if (wished !== undefined && !/^[\w-]{8,}$/.test(wished)) {
    return yield* new UsageError({ message: "--token: expected at least 8 letters, digits, - or _" })
  }
  const token = wished ?? (isLoopback(host) ? undefined : randomBytes(18).toString("base64url"))
  // Loaded only when it is needed, so that the other subcommands start fast.
  const { serve } = yield* Effect.promise(() => import("../dashboard/server-node.ts"))
  yield* Effect.scoped(
    Effect.gen(function* () {
      const at = yield* serve({ directory, host, port, ...(token === undefined ? {} : { token }) })
      const name = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host
      const query = token === undefined ? "" : `?token=${token}`
      const page = at.run === undefined ? "" : `#/run/${encodeURIComponent(at.run)}`
      yield* writeOut(`http://${name}:${at.port}/${query}${page}\n`)
      if (at.run === undefined && (yield* findRuns(directory, silentSource)).length === 0) {
        yield* writeError(`${warningLabel()} no runs in ${directory} yet\n`)
      }
      yield* writeError(`serving ${directory}; stop with Ctrl-C\n`)
      return yield* Effect.never
    }),
  )
})
