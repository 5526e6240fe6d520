import { Effect, Predicate, type Scope } from "effect"
import type { Backend } from "../../tensor/backend/Backend.ts"
import type { ConfiguredAlgorithm } from "./Algorithm.ts"
import { makeGraphLearner } from "./inGraph/GraphLearner.ts"
import type { Learner, SetupError, Task } from "./Learner.ts"
import { makeRolloutLearner } from "./rollout/RolloutLearner.ts"

/**
 * Compiles the learner of a configured algorithm for a task. An on-policy algorithm only describes its learner; this
 * function compiles it to a learner that plays rollouts in JavaScript, or to one that plays them in the graph.
 *
 * @example
 * ```ts
 * const algorithm = Ppo.make()
 * const configured = algorithm.configure(algorithm.input, { source: "mine.ts" })
 * Effect.flatMap(configured, (ppo) => learnerOf(ppo, task)) // Effect<Algorithm.Learner, …>
 * ```
 */
export const learnerOf = (
  { setup }: Pick<ConfiguredAlgorithm, "setup">,
  task: Task,
): Effect.Effect<Learner, SetupError, Backend | Scope.Scope> =>
  Effect.flatMap(setup(task), (learner) =>
    Predicate.isTagged(learner, "DescribedLearner")
      ? learner.use((experience, update) =>
          update.rollouts === "graph" ? makeGraphLearner(experience, update) : makeRolloutLearner(experience, update),
        )
      : Effect.succeed(learner),
  )
