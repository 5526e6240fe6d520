// Matchers of vitest for evaluations: the scores are high enough, and no worse than those of an earlier evaluation. Copy this file
// into your project, import it in a test, and add a time limit to the test that is long enough for your model.
import { Effect, Layer } from "effect"
import { Evaluations, Gate } from "effect-rl"
import { platform, recorder, runStore } from "effect-rl/node"
import { expect } from "vitest"

/** Plays an evaluation, such as `Evaluations.fromConfig({ … })`, and saves it as a run in `resultsDir`. */
export const play = (evaluation: ReturnType<typeof Evaluations.fromConfig>, resultsDir = "results") =>
  Effect.runPromise(Effect.provide(evaluation, Layer.mergeAll(runStore({ resultsDir }), recorder(), platform)))

/** Options of the matchers: the scorer, the agents, whether chance may pass, and how many episodes may fail. */
interface ScoreOptions extends Gate.GateOptions {
  readonly maxFailures?: number
}
interface Options extends ScoreOptions {
  /** The largest regression that is allowed. */
  readonly by?: number
}

/** Passes if all gates do, and if no more episodes failed than may fail. */
const verdict = (
  { failed, episodes }: Evaluations.EvaluationResult,
  outcomes: ReadonlyArray<Gate.GateOutcome>,
  maxFailures = 0,
) => {
  const failures = failed > maxFailures ? [`${failed} of ${episodes} episodes failed`] : []
  const messages = [...outcomes.map(({ message }) => message), ...failures]
  return {
    pass: failures.length === 0 && outcomes.length > 0 && outcomes.every(({ passed }) => passed),
    message: () => messages.join("\n") || "nothing was judged; expected a scorer that has scores",
  }
}

const namesOf = ({ report }: Evaluations.EvaluationResult) => report.agents.map(({ agent }) => agent)

expect.extend({
  toScoreAtLeast(result: Evaluations.EvaluationResult, limit: number, options: ScoreOptions = {}) {
    return verdict(result, Gate.score(result.report, { ...options, limit }), options.maxFailures)
  },
  async toBeNoWorseThan(result: Evaluations.EvaluationResult, baseline: string, options: Options = {}) {
    const { by = 0, agents = namesOf(result), maxFailures, ...others } = options
    const { confidence } = result
    const compared = Evaluations.compare(baseline, result.runDir, { confidence })
    const comparisons = await Effect.runPromise(Effect.provide(compared, platform))
    return verdict(result, Gate.regression(comparisons, { ...others, agents, confidence, limit: by }), maxFailures)
  },
})

// These are the type parameters of vitest 5; those of vitest 3 and 4 are `Matchers<T>`.
declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    /** Expects that each agent's mean is at least `limit`, or at most `limit` if lower values are better. */
    toScoreAtLeast(limit: number, options?: ScoreOptions): R
    /** Expects that the paired interval shows no regression against the evaluation in a folder. Wait for it by `await`. */
    toBeNoWorseThan(baseline: string, options?: Options): Promise<void>
  }
}
