/** Writes the episodes of an agent as a log of Inspect, for `effect export RUN --to inspect`. */
import { basename, join, resolve } from "node:path"
import { Effect, FileSystem, Option, Stream } from "effect"
import manifest from "../../../../package.json" with { type: "json" }
import { isPlain } from "../../../base/config/plain.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { playedOf, rowOf as importedRow } from "../../../agents/interchange/ImportedEpisode.ts"
import { InspectLog } from "../../../agents/interchange/inspect/writeInspect.ts"
import { type Rollout, scoreOf } from "../../../agents/episode/Rollout.ts"
import * as Rollouts from "../../../agents/episode/rollouts/Rollouts.ts"
import type { EpisodeRow } from "../../../agents/evaluate/rows.ts"
import * as Layout from "../../../run/Layout.ts"
import { readRunIn } from "../findRun.ts"
import { usageError } from "../output/output.ts"
import type { WriteFile } from "./folder.ts"

/** A file of rollouts. */
export interface RolloutFile {
  readonly path: string
  /** The name of the exported file or folder. */
  readonly name: string
  /** The agent's name in an evaluation; undefined for a training. */
  readonly agent: string | undefined
  /** The rows of the agent's episodes in an evaluation; empty for a training. */
  readonly rows: ReadonlyArray<EpisodeRow>
  readonly rowOf: (rollout: Rollout) => EpisodeRow | undefined
}

/** Writes the log of an agent, or of a training or one of its validations. */
export const writeLog = Effect.fnUntraced(function* (run: string, file: RolloutFile, write: WriteFile) {
  const { path, name, rows } = file
  const written = new Set<EpisodeRow>()
  const makeRow = trainingRows()
  const log = yield* newLog(run, file, yield* modelIn(path))
  const refused = (error: { readonly message: string }) => usageError(`--to inspect: ${error.message}`)
  yield* Stream.runForEach(Rollouts.readEpisodes(path), (rollouts) => {
    const row = file.rowOf(rollouts[0]) ?? makeRow(rollouts)
    written.add(row)
    return Effect.mapError(log.add(row, rollouts), refused)
  })
  // Episodes that failed have no rollouts.
  for (const row of rows) if (!written.has(row)) yield* Effect.mapError(log.add(row, []), refused)
  yield* write(`${name}.eval`, yield* Effect.mapError(log.finish(), refused))
})

/** Returns the model of the first rollout in a file. */
const modelIn = (path: string) =>
  Effect.map(Stream.runHead(Rollouts.read(path)), (first) => Option.getOrUndefined(first)?.meta.model ?? null)

const newLog = Effect.fnUntraced(function* (run: string, { name, agent, rows }: RolloutFile, model: string | null) {
  const read = readRunIn(run)
  const config = yield* read.config
  const digest = (yield* read.metrics)?.digest
  const title = isPlain(config) && typeof config.name === "string" ? config.name : basename(resolve(run))
  const id = yield* sha256(utf8.encode(`${typeof digest === "string" ? digest : basename(resolve(run))} ${name}`))
  const tasks = new Map(rows.map(({ env_id, task }) => [env_id, task]))
  const isShared = rows.some(({ env_id, task }) => tasks.get(env_id) !== task)
  return new InspectLog(
    {
      task: title,
      agent: agent ?? name,
      model,
      id: id.slice(0, 22),
      startedAt: yield* changedAt(join(run, Layout.config)),
      endedAt: yield* changedAt(join(run, Layout.log)),
      epochs: rows.reduce((most, { repeat }) => Math.max(most, repeat + 1), 1),
      scorers: rows.length === 0 ? ["score"] : [...new Set(rows.flatMap(({ scores }) => Object.keys(scores)))],
      version: manifest.version,
    },
    ({ env_id, task }) => (isShared ? `${env_id} at ${task}` : env_id),
  )
})

/** Returns the time of a file's last change; without one, the beginning of 1970. */
const changedAt = Effect.fnUntraced(function* (file: string) {
  const stat = yield* Effect.option((yield* FileSystem.FileSystem).stat(file))
  return Option.getOrElse(
    Option.flatMap(stat, ({ mtime }) => mtime),
    () => new Date(0),
  )
})

/** Makes a function that returns the row of an episode of a training, which has none: with the env's score. */
const trainingRows = () => {
  const tasks = new Map<string, { readonly task: number; repeats: number }>()
  let index = 0
  return (rollouts: ReadonlyArray<Rollout>): EpisodeRow => {
    const { meta } = rollouts[0]
    const known = tasks.get(meta.envId) ?? { task: tasks.size, repeats: 0 }
    tasks.set(meta.envId, known)
    const episode = {
      agent: meta.agent,
      variant: "",
      model: meta.model,
      group: "",
      task: { id: meta.envId, metadata: {} },
      repeat: null,
      scores: { score: scoreOf(rollouts[0]) },
      answer: null,
      target: null,
      durationMillis: 0,
      error: null,
      rollouts,
    }
    return importedRow(episode, playedOf(episode, { index: index++, task: known.task, repeat: known.repeats++ }))
  }
}
