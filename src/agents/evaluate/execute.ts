/**
 * Executes a prepared evaluation as a run: plays and scores the episodes of one agent after another. Each episode is written
 * at once to the journal, from which a stopped evaluation resumes, and later, in order, to the tables of the run's folder. At
 * the end, `metrics.json` gets the report, and the journal is removed. `Evaluations.ts` calls it.
 */
import { Clock, Effect, type Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import type { ConfigError } from "../../base/config/Config.ts"
import { derivedName } from "../../run/identifier.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStore } from "../../run/store/RunStore.ts"
import { isSpent, type LmError } from "../lm/LmError.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Layout from "../../run/Layout.ts"
import * as Run from "../../run/Run.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import { EvaluationResult, resultOf } from "./result.ts"
import type { AgentError } from "../agent/AgentError.ts"
import type { EvaluationProgress, PreparedEvaluation } from "./PreparedEvaluation.ts"
import { open } from "./resumed.ts"
import { playAll } from "./play.ts"

export type ExecuteError = ConfigError | LmError | Run.RunError | FormatError | AgentError | WorkerError

/** Plays the episodes that no earlier process has played, writes tables and report, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
): Effect.fn.Return<EvaluationResult, ExecuteError, RunStore | Recorder | Scope.Scope> {
  const { population = {}, onPlanned } = yield* RunOptions
  const spec = specOf(prepared, population)
  if (onPlanned !== undefined) yield* onPlanned(spec.identity, spec.config)
  return yield* Run.execute({
    spec,
    startedAtMillis: yield* Clock.currentTimeMillis,
    place: prepared.place,
    results: [Layout.evaluation.episodes, Layout.evaluation.steps, Layout.evaluation.table],
    open: (files: RunFiles): Effect.Effect<Run.Opened<EvaluationProgress, EvaluationResult>, ExecuteError> =>
      open(prepared, files),
    loop: (state: EvaluationProgress) => playAll(prepared, state),
    position: ({ rows }: EvaluationProgress) => ({ step: rows.length, episodes: rows.length }),
    stopsUpon: isSpent,
    result: {
      schema: EvaluationResult,
      of: ({ rows }: EvaluationProgress) => resultOf(prepared, rows),
      after: (files: RunFiles) => files.remove(Layout.evaluation.journal),
    },
  })
})

const specOf = (
  { settings, tasks, contestants, effective }: PreparedEvaluation,
  population: Readonly<Record<string, string>>,
): RunSpec => {
  const names = contestants.map(({ name }) => name)
  const inPath = contestants.map(({ name, isNamed }) => (isNamed ? name : derivedName(name))).join("+")
  const total = contestants.length * tasks.size * settings.repeats
  const line = `evaluation of ${names.join(", ")} on ${tasks.name}, ${total} episodes, seed ${settings.seed}`
  return {
    kind: "evaluation",
    identity: {
      name: settings.name,
      population: { environment: derivedName(tasks.name), algorithm: inPath, ...population },
      seed: settings.seed,
    },
    config: effective,
    description: settings.description ?? line,
    env: tasks.name,
    algorithm: names.join("+"),
    devices: Object.fromEntries(contestants.flatMap(({ name, model }) => (model === null ? [] : [[name, model]]))),
    total,
    logLevel: settings.output.logLevel,
    quiet: !settings.verbose,
  }
}
