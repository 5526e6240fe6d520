/** Summarises a run for its row in the page's table. It reads the run's files; `runIndex.ts` calls it. */
import { Effect } from "effect"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { valueOf } from "../../run/find/query.ts"
import type { RunReader } from "../../run/RunReader.ts"
import { finite } from "./json.ts"
import type { TrainerRun } from "./trainerRuns.ts"

export interface RunSummary extends Effect.Success<ReturnType<typeof summaryOf>> {
  /** The runs of a multi-run trainer, in the order of their names; absent for other runs. */
  readonly runs?: ReadonlyArray<TrainerRun>
}

const textOf = (value: unknown): string => (value === undefined || value === null ? "" : String(value))

/**
 * Reads the values that the table shows for a run. `hasOnlyRollouts` is true if the folder contains no training or
 * evaluation.
 */
export const summaryOf = Effect.fnUntraced(function* (
  run: RunReader,
  { hasOnlyRollouts, trainer = null }: { readonly hasOnlyRollouts: boolean; readonly trainer?: string | null },
) {
  const { path, time = "", commit = "", population } = run.entry
  const metrics = (yield* run.metrics) ?? {}
  const curve = yield* run.curve
  const isEvaluation = (yield* run.kind) === "evaluation"
  const kind: "run" | "evaluation" | "rollouts" = hasOnlyRollouts ? "rollouts" : isEvaluation ? "evaluation" : "run"
  // The curve of an evaluation has one point per agent; the first agent is the baseline of the comparisons.
  const last = isEvaluation ? curve[0] : ((yield* run.bestCandidate) ?? curve.at(-1))
  const { title = null, tags = [], archived = false } = yield* run.labels
  return {
    /** What the run's owner noted about it. The page shows the title in place of the name, and hides archived runs. */
    title,
    tags,
    archived,
    /** The run's folder, relative to the results folder. Requests identify the run by this path. */
    path,
    /** The path of the multi-run trainer that trains this run; null for other runs. */
    trainer,
    kind,
    /** A digest of the config without its seed and output folder. */
    configDigest: yield* digestOf((yield* run.configText) ?? ""),
    time,
    commit,
    name: textOf((yield* valueOf(run, "name")) ?? path),
    population,
    seed: finite(yield* valueOf(run, "seed")),
    env: textOf(yield* valueOf(run, "environment")),
    algorithm: textOf(yield* valueOf(run, "algorithm")),
    state: yield* run.state,
    steps: (yield* run.steps) ?? null,
    totalSteps: finite(yield* run.configAt(["total_steps"])),
    episodes: (yield* run.episodes) ?? null,
    /**
     * The mean return of the last validation (of the best candidate's, if the run learns prompts); without validations, of the
     * last training episodes. Null if there is none.
     */
    score: last?.mean ?? finite(metrics.mean_return),
    scoreStd: finite(last?.std),
    /** The score of each agent of a game in the last validation; empty for other runs. */
    agents: last?.agents ?? [],
    /** The mean return of the best validation. */
    best: (yield* run.bestValidation) ?? null,
    seconds: finite(metrics.wall_seconds),
    /** The mean speed of the last process while it trained; null for a run without a result. */
    stepsPerSecond: finite(metrics.steps_per_second),
  }
})

/** Computes a digest of a config without its seed and output folder. It is equal for runs that differ only in those. */
const digestOf = (config: string): Effect.Effect<string> =>
  Effect.map(sha256(utf8.encode(config.replaceAll(/^(?:seed| {2}results_dir): .*\n/gm, ""))), (hex) => hex.slice(0, 16))
