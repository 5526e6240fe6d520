/**
 * Reads a run that has ended for `effect export RUN --to mlflow` and `--to wandb`. It decides which files and numbers are
 * exported.
 */
import { basename, join } from "node:path"
import { Effect, FileSystem, Option } from "effect"
import { isPlain } from "../../../base/config/plain.ts"
import { visible } from "../../../base/text/text.ts"
import type { TrackedRun } from "../../trackers/TrackedRun.ts"
import { decode } from "../../../base/formats/tfevents.ts"
import * as Checkpoint from "../../../run/Checkpoint.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import { fromPath } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { settingTree } from "../../../run/record/hparams.ts"
import { withoutLinks } from "../../../run/read/withoutLinks.ts"
import { over } from "../../../run/RunReader.ts"
import { foldersOnDisk, savedAt } from "../../../run/savedAt.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { checkpointOf } from "../evaluate/evaluateRun.ts"
import { warningSource } from "../findRun.ts"
import { usageError, writeError } from "../output/output.ts"

export const trackers = ["mlflow", "wandb"] as const
export type Tracker = (typeof trackers)[number]

/** The files of a run that describe it and its results. */
const described = [Layout.config, Layout.metrics, Layout.returns, Layout.provenance]

/** Reads a run with its newest policy, or with the policy of a checkpoint. All times come from the run's own records. */
export const trackedRun = Effect.fnUntraced(function* (run: string, step: Option.Option<number>, to: Tracker) {
  const tree = yield* onDisk(run)
  const read = over(yield* withoutLinks(warningSource, run))(unplacedEntry(run))
  const state = yield* read.state
  if (state === "running" || state === "waiting") {
    return yield* usageError(`--to ${to}: expected a run that has ended, found one that is still running`)
  }
  const config = yield* read.config
  const place = Layout.locate(yield* read.places, Layout.tensorBoard)
  const log = tree.pathOf(place)
  if (!(yield* tree.exists(place))) {
    const hint = "the run was made with log_scalars: false"
    return yield* usageError(`--to ${to}: expected the run's metrics in ${log}, found no such file; ${hint}`)
  }
  const { events } = decode(yield* tree.read(place))
  const times = events.map(({ wallSeconds }) => Math.round(wallSeconds * 1000))
  const digest = (yield* read.metrics)?.digest
  const identity = fromPath(run)
  const files = yield* Effect.forEach(described, (name) =>
    Effect.flatMap(tree.exists(name), (isThere) =>
      isThere ? Effect.map(tree.read(name), (bytes) => [[name, bytes] as const]) : Effect.succeed([]),
    ),
  )
  const tracked: TrackedRun = {
    experiment: identity?.name ?? "effect-rl",
    name:
      identity === undefined
        ? basename(run)
        : [identity.time, ...Object.values(identity.population), identity.seed].join(" "),
    state,
    startedAtMillis:
      times.length === 0 ? yield* changedAt(join(run, Layout.config)) : times.reduce((a, b) => Math.min(a, b)),
    endedAtMillis: times.length === 0 ? yield* changedAt(log) : times.reduce((a, b) => Math.max(a, b)),
    settings: settingTree(isPlain(config) ? config : {}),
    commit: identity?.commit === "no-hash" ? undefined : identity?.commit,
    digest: typeof digest === "string" ? digest : undefined,
    events: events.flatMap(({ wallSeconds, step: at, scalars: metrics }) =>
      Object.keys(metrics).length === 0 ? [] : [{ step: at, wallSeconds, metrics }],
    ),
    files: { ...Object.fromEntries(files.flat()), ...(yield* policyIn(run, step)) },
  }
  return tracked
})

/** Returns the time of a file's last change in milliseconds since 1970. */
const changedAt = Effect.fnUntraced(function* (file: string) {
  const { mtime } = yield* (yield* FileSystem.FileSystem).stat(file)
  return Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
})

/** Returns the policies of a checkpoint, if it has any: runs of language-model agents have none. */
const policyIn = Effect.fnUntraced(function* (run: string, step: Option.Option<number>) {
  const name = yield* checkpointOf(run, step)
  const { tree } = yield* savedAt(run, yield* foldersOnDisk)
  if ((yield* Checkpoint.names(tree)).length === 0) return {}
  const { files, skipped } = yield* Checkpoint.loadFiles(tree, name, Layout.isPolicy)
  for (const { name: damaged, reason } of skipped)
    yield* writeError(`without the checkpoint ${visible(`${damaged}: ${reason}`)}\n`)
  return files
})
