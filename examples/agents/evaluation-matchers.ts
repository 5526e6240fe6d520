// Matchers of vitest for evaluations: the scores are high enough, and no worse than those of an earlier evaluation. Copy this file
// into your project, import it in a test, and add a time limit to the test that is long enough for your model.
import { Effect, Layer } from "effect"
import { Evaluations, Gate } from "effect-rl"
import { platform, recorder, runStore } from "effect-rl/node"
import { expect } from "vitest"

/** Plays an evaluation, such as `Evaluations.fromConfig({ … })`, and saves it as a run in `resultsDir`. */
export const play = (evaluation: ReturnType<typeof Evaluations.fromConfig>, resultsDir = "results") =>
  Effect.runPromise(Effect.provide(evaluation, Layer.mergeAll(runStore({ resultsDir }), recorder(), platform)))

/** Options of the matchers: the scorer, the agents, and whether chance may pass. */
interface Options extends Gate.GateOptions {
  /** The largest regression that is allowed. */
  readonly by?: number
}

const verdict = (outcomes: ReadonlyArray<Gate.GateOutcome>) => ({
  pass: outcomes.length > 0 && outcomes.every(({ passed }) => passed),
  message: () =>
    outcomes.map(({ message }) => message).join("\n") || "nothing was judged; expected a scorer that has scores",
})

expect.extend({
  toScoreAtLeast({ report }: Evaluations.EvaluationResult, limit: number, options: Gate.GateOptions = {}) {
    return verdict(Gate.score(report, { ...options, limit }))
  },
  async toBeNoWorseThan(
    { runDir }: Evaluations.EvaluationResult,
    baseline: string,
    { by = 0, ...options }: Options = {},
  ) {
    const comparisons = await Effect.runPromise(Effect.provide(Evaluations.compare(baseline, runDir), platform))
    return verdict(Gate.regression(comparisons, { ...options, limit: by }))
  },
})

// These are the type parameters of vitest 5; those of vitest 3 and 4 are `Matchers<T>`.
declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    /** Expects that each agent's mean is at least `limit`, or at most `limit` if lower values are better. */
    toScoreAtLeast(limit: number, options?: Gate.GateOptions): R
    /** Expects that the paired interval shows no regression against the evaluation in a folder. Wait for it by `await`. */
    toBeNoWorseThan(baseline: string, options?: Options): Promise<void>
  }
}
