/**
 * Writes the episodes of a run's agents for `effect export RUN --to atif` (a folder with a file for each episode) and
 * `--to inspect` (a log for each agent). It reads the rollouts that the run saved, one episode at a time.
 */
import { join } from "node:path"
import { Effect, Option, Stream } from "effect"
import manifest from "../../../../package.json" with { type: "json" }
import { exists, namesIn } from "../../../base/files/files.ts"
import { trajectoriesOf } from "../../../agents/interchange/atif/writeAtif.ts"
import * as Rollouts from "../../../agents/episode/rollouts/Rollouts.ts"
import { episodeId } from "../../../agents/evaluate/Evaluate.ts"
import { readRows } from "../../../agents/evaluate/Evaluations.ts"
import * as Layout from "../../../run/Layout.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { requireConfig } from "../findRun.ts"
import { usageError } from "../output/output.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import type { EpisodeFormat } from "./episodeFormats.ts"
import { type RolloutFile, writeLog } from "./inspectLog.ts"
import { type WriteFile, writingFolder } from "./folder.ts"
import { nameFor } from "./names.ts"

/** Writes the episodes of a run, and returns the path of the new folder. */
export const exportEpisodes = Effect.fnUntraced(function* (
  run: string,
  { to, out }: { readonly to: EpisodeFormat; readonly out: Option.Option<string> },
) {
  const files = yield* filesOf(run)
  if (files.length === 0) {
    const hint = "add output: { save_rollouts: true } to the experiment"
    return yield* usageError(`--to ${to}: ${run}: expected saved rollouts, found none; ${hint}`)
  }
  const folder = Option.getOrElse(out, () => `${nameFor(run)}-${to}`)
  yield* writingFolder(folder, (write) =>
    Effect.forEach(files, (file) => (to === "atif" ? writeTrajectories(file, write) : writeLog(run, file, write)), {
      discard: true,
    }),
  )
  return folder
})

/** Writes a trajectory for each episode in a file of rollouts. */
const writeTrajectories = ({ path, name, rowOf }: RolloutFile, write: WriteFile) => {
  let count = 0
  return Stream.runForEach(Rollouts.readEpisodes(path), (rollouts) =>
    Effect.forEach(
      trajectoriesOf(rollouts, { version: manifest.version, episodeOf: rowOf }),
      (trajectory) => {
        const file = `${String(++count).padStart(6, "0")}_${safeName(trajectory.trajectory_id ?? "")}.json`
        return write(join(name, file), `${JSON.stringify(trajectory, null, 2)}\n`)
      },
      { discard: true },
    ),
  )
}

const safeName = (text: string): string => text.replace(/[^\w.-]+/g, "-").slice(0, 80)

/** Lists the files of rollouts in a run: those of an evaluation's agents, or those of a training and its validations. */
const filesOf = Effect.fnUntraced(function* (run: string) {
  const config = yield* readYaml(yield* requireConfig(run))
  if (kindOf(config) === "evaluation") return yield* filesOfEvaluation(run)
  const train = join(run, Layout.trainRollouts)
  const folder = join(run, Layout.validationRolloutsFolder)
  const validations = (yield* namesIn(folder)).flatMap((file) => {
    const seen = Layout.seenEpisodesOf(file)
    return seen === undefined ? [] : [{ path: join(run, Layout.validationRollouts(seen)), name: `val_${seen}`, seen }]
  })
  const files = [
    ...((yield* exists(train)) ? [{ path: train, name: "train" }] : []),
    ...validations.toSorted((a, b) => a.seen - b.seen),
  ]
  return files.map(({ path, name }): RolloutFile => ({
    path,
    name,
    agent: undefined,
    rows: [],
    rowOf: () => undefined,
  }))
})

const filesOfEvaluation = Effect.fnUntraced(function* (run: string) {
  const rows = yield* Effect.mapError(readRows(run), ({ message }) => usageError(message))
  const files: Array<RolloutFile> = []
  for (const [at, agent] of [...new Set(rows.map((row) => row.agent))].entries()) {
    const path = join(run, Layout.validationRollouts(at))
    if (!(yield* exists(path))) continue
    const own = rows.filter((row) => row.agent === agent)
    // The ids have the number of the repeat if the evaluation repeats tasks, which the rows of an agent need not show.
    const byId = new Map(
      [false, true].flatMap((isRepeated) => {
        const some = isRepeated ? own : own.filter(({ repeat }) => repeat === 0)
        return some.map((row) => [episodeId(row, { isRepeated }), row] as const)
      }),
    )
    const name = safeName(agent) || `agent_${at}`
    const isTaken = files.some((file) => file.name.toLowerCase() === name.toLowerCase())
    files.push({
      path,
      name: isTaken ? `${name}_${at}` : name,
      agent,
      rows: own,
      rowOf: ({ id }) => byId.get(id),
    })
  }
  if (files.length === 0) {
    return yield* usageError(
      `${run}: expected episodes with rollouts, found none; all episodes of the evaluation failed`,
    )
  }
  return files
})
