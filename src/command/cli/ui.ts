/** Defines the subcommand `effect ui`, which serves the web page or exports it as files. */
import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import * as Argument from "effect/cli/Argument"
import { exists } from "../../base/files/files.ts"
import { isLoopback } from "../../base/trust/hostGuard.ts"
import { runFolder } from "./findRun.ts"
import { clusterModule } from "./worker/cluster.ts"
import {
  allowHostFlag,
  argument,
  checkAllowHost,
  defaultResultsDir,
  hostFlag,
  isBucket,
  portFlag,
  subcommand,
  text,
  toggle,
} from "./flags.ts"
import { warningLabel } from "./output/colors.ts"
import { usageError, writeError, writeOut } from "./output/output.ts"

export const ui = subcommand(
  "ui",
  {
    description:
      "Serve a web page that shows runs: a table, learning curves, episodes and files. It updates itself while runs are running.",
    examples: {
      "effect ui": "Serve the runs in ./results",
      "effect ui /data/results --host 0.0.0.0 --read-only":
        "Let other machines connect, to look at runs; prints an address with a token",
      "effect ui latest": "Open the page of the newest run",
      "effect ui s3://my-runs/team": "Serve the runs in a bucket of S3",
      "effect ui --cluster postgres://rl:secret@db/rl": "Also show the workers of a cluster and its queue",
      "effect ui results --export site": "Write the same page as a static site",
    },
  },
  {
    directory: argument(
      "dir",
      "A results folder (default: results), the address of a bucket, or one run: its folder, latest, or a part of its path in ./results",
    ).pipe(Argument.withDefault("results")),
    port: portFlag(4400),
    host: hostFlag("a token"),
    token: text(
      "token",
      "token",
      "The token that visitors need (default: if --host needs one, a new one is made and printed)",
    ),
    allowHost: allowHostFlag,
    cluster: text(
      "cluster",
      "postgres://…",
      "Also show the cluster with this database: its workers, what each is doing, and its queue",
    ),
    export: text(
      "export",
      "dir",
      "Write the page with its data to this folder, as a static site for any file server, and stop",
    ),
    readOnly: toggle("read-only", "Only show runs: the page cannot label, archive or delete them"),
    checkpoints: toggle(
      "checkpoints",
      "With --export: copy all checkpoints (default: the newest of each run, if it is small)",
    ),
  },
  Effect.fnUntraced(function* ({ host, port, checkpoints, allowHost, ...input }) {
    yield* checkAllowHost(allowHost)
    const directory = yield* folderOf(input.directory)
    if (Option.isSome(input.export) && Option.isSome(input.cluster)) {
      return yield* usageError("--cluster only works without --export, which writes a page that does not change")
    }
    if (Option.isSome(input.export)) return yield* Effect.scoped(exportTo(input.export.value, directory, checkpoints))
    if (checkpoints) return yield* usageError("--checkpoints only works with --export")
    const typedToken = Option.getOrUndefined(input.token)
    if (typedToken !== undefined && !/^[\w-]{8,}$/.test(typedToken)) {
      return yield* usageError("--token: expected at least 8 letters, digits, - or _")
    }
    // Only who has the printed address may change runs. Those in a bucket are only shown.
    const changeToken = input.readOnly || isBucket(directory) ? undefined : randomBytes(18).toString("base64url")
    const token = typedToken ?? (isLoopback(host) ? undefined : randomBytes(18).toString("base64url"))
    // The server is loaded only here, so that the other subcommands start fast.
    const { serve } = yield* Effect.promise(() => import("../ui/server-node.ts"))
    yield* Effect.scoped(
      Effect.gen(function* () {
        const cluster = Option.isNone(input.cluster) ? undefined : yield* lookAt(input.cluster.value)
        const files = yield* filesAt(directory)
        const at = yield* serve({
          directory,
          ...(files === undefined ? {} : { files }),
          host,
          port,
          allowedHosts: allowHost,
          ...(token === undefined ? {} : { token }),
          ...(changeToken === undefined ? {} : { changeToken }),
          ...(cluster === undefined ? {} : { cluster }),
        })
        const name = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host
        const tokens = new URLSearchParams({
          ...(token === undefined ? {} : { token }),
          ...(changeToken === undefined ? {} : { changes: changeToken }),
        })
        const query = tokens.size === 0 ? "" : `?${tokens}`
        const kind = at.run !== undefined && (yield* at.isTrainer) ? "trainer" : "run"
        const home = cluster === undefined ? "" : "#/cluster"
        const page = at.run === undefined ? home : `#/${kind}/${encodeURIComponent(at.run)}`
        yield* writeOut(`http://${name}:${at.port}/${query}${page}\n`)
        if ((yield* at.countRuns) === 0) {
          yield* writeError(`${warningLabel()} no runs in ${directory} yet\n`)
        }
        yield* writeError(`serving ${directory}; stop with Ctrl-C\n`)
        return yield* Effect.never
      }),
    )
  }),
)

/**
 * Opens the files of runs in a bucket; undefined for a folder on disk. The code for buckets is loaded only here, when it is
 * needed.
 */
const filesAt = Effect.fnUntraced(function* (directory: string) {
  if (!isBucket(directory)) return undefined
  const { confinedToBucket } = yield* Effect.promise(() => import("./bucket/confinedBucket.ts"))
  return yield* confinedToBucket(directory)
})

/**
 * Returns the folder to show. The user can name it by its path, by the address of a bucket, or by `latest` or a part of a
 * path, which mean the folder of a run.
 */
const folderOf = Effect.fnUntraced(function* (typed: string) {
  if (isBucket(typed)) return typed
  if (yield* exists(typed)) return typed
  // A path that begins with / or ./ is never a part of a run's path.
  if (/^\.{0,2}\//.test(typed) || !(yield* exists(defaultResultsDir))) {
    const hint = typed === defaultResultsDir ? "; effect run FILE makes it, or name another folder" : ""
    return yield* usageError(`${typed}: there is no such folder${hint}`)
  }
  return yield* runFolder(typed, { folders: [defaultResultsDir] })
})

/** Returns the Effect that reads what a cluster is doing. */
const lookAt = (url: string) => Effect.flatMap(clusterModule, ({ observe }) => observe(url))

const exportTo = Effect.fnUntraced(function* (out: string, directory: string, checkpoints: boolean) {
  const { exportResults, exportSite } = yield* Effect.promise(() => import("../ui/exportSite.ts"))
  const { resultsOf } = yield* Effect.promise(() => import("../ui/results-node.ts"))
  const inBucket = yield* filesAt(directory)
  const { runs, files, leftOut, documents, removed, kept, lacksMujoco } = yield* inBucket === undefined
    ? exportSite(directory, out, { checkpoints })
    : exportResults(resultsOf(inBucket), out, { checkpoints })
  const counted = (count: number, noun = "file"): string => `${count} ${count === 1 ? noun : `${noun}s`}`
  yield* writeOut(`${counted(runs, "run")}, ${counted(files)} in ${out}; any file server shows them\n`)
  if (leftOut > 0) yield* writeOut(`without ${counted(leftOut)} of checkpoints; --checkpoints copies them\n`)
  if (documents > 0) {
    yield* writeOut(`without ${counted(documents)} that a browser could run as a page of the site\n`)
  }
  if (removed > 0) yield* writeOut(`removed ${counted(removed)} of the earlier export\n`)
  if (lacksMujoco) {
    const { mujocoInstall } = yield* Effect.promise(() => import("../../rl/env/mujoco/engine.ts"))
    yield* writeOut(`without MuJoCo, so the page cannot play its bodies; ${mujocoInstall} adds it, then export again\n`)
  }
  if (kept > 0) yield* writeOut(`${counted(kept)} of the earlier export changed since and stayed\n`)
})
