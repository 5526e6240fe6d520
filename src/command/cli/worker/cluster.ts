/** Loads the code of clusters, which needs a package that only users of clusters install, and makes the flag `--cluster`. */
import { Effect, Layer, Option } from "effect"
import { WorkerError } from "../../../spread/workers/WorkerError.ts"
import { shownUrl } from "../../../spread/cluster/databaseUrl.ts"
import { text } from "../flags.ts"
import { writeError } from "../output/output.ts"

export const clusterFlag = (what: string) =>
  text(
    "cluster",
    "postgres://…",
    `${what} on the machines that effect worker --join added to the cluster with this database`,
  )

/** Returns the value of the flag for a command that resumes a run. The password is left out; it belongs in `PGPASSWORD`. */
export const resumedCluster = (url: Option.Option<string>): Option.Option<string> => Option.map(url, shownUrl)

/** Loads the module of clusters. Fails with a hint if the package for Postgres is not installed. */
export const clusterModule = Effect.tryPromise({
  try: () => import("../../../spread/cluster/cluster-node.ts"),
  catch: (error) =>
    WorkerError.failed(
      /Cannot find package|ERR_MODULE_NOT_FOUND/.test(String(error))
        ? "the package for clusters is not installed; run: npm install @effect/sql-pg@4.0.5"
        : String(error),
    ),
})

/** Prints a line about the cluster on stderr. */
export const say = (line: string): Effect.Effect<void> => writeError(`cluster: ${line}\n`)

/** Sends the jobs of this process to the cluster that the user named; without the flag, this process does them itself. */
export const dispatcherLayer = (url: Option.Option<string>): Layer.Layer<never, WorkerError> =>
  Option.isNone(url)
    ? Layer.empty
    : Layer.unwrap(Effect.map(clusterModule, ({ layer }) => layer({ url: url.value, say })))
