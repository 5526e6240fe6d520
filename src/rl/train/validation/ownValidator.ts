/** Makes a training's validator from the user's own one, which a service provides. `setUp.ts` calls it. */
import { Effect } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { LearningError } from "../../learner/Learner.ts"
import type { Learner } from "../../learner/Learner.ts"
import { outcomeOf } from "../../../run/evaluation.ts"
import { countedIn } from "../../../run/record/scalars.ts"
import { type TrainingEnvs, validationBatch } from "../envs.ts"
import { hasSameSpaces, type Plan } from "../plan.ts"
import type { Input, OwnValidator } from "../Validator.ts"
import { makeValidator, type PolicyValidator } from "./PolicyValidator.ts"

/** Makes a validator that plays the episodes of `own`, in this process. */
export const makeOwnValidator = Effect.fnUntraced(function* (
  own: OwnValidator,
  plan: Plan,
  envs: TrainingEnvs,
  policy: NonNullable<Learner["policy"]>,
) {
  const { env, validationEnvs, settings, from } = plan
  const { validation } = settings
  const player: Input["player"] = Effect.fnUntraced(function* (played, options) {
    const { episodes, first = 0, workers = validation.workers } = options
    if (!hasSameSpaces(played, env)) {
      const problem = `the validator "${own.name}" plays ${played.id}, which has other observations or actions than the training env ${env.id}; choose envs of the same spaces`
      return yield* ConfigError.at(from, "validation", problem)
    }
    const batch = yield* validationBatch(played, { first, count: episodes, workers }, envs)
    const { validate } = yield* makeValidator([batch], policy, {
      maxSteps: options.maxSteps ?? validation.maxSteps,
      sampled: options.sampled ?? validation.sampled,
      agents: validation.agents,
    })
    return ({ seed, step }) => Effect.map(validate(seed, step), (outcome) => outcome.episodes)
  })
  const validate = yield* own.make({ env, envs: validationEnvs, player, policy })
  const validator: PolicyValidator = {
    name: own.name,
    // Without batches, nothing is spread over other machines.
    batches: [],
    playPart: () => Effect.die(new Error("a validator of the user's own has no parts")),
    validate: Effect.fnUntraced(function* (seed, step) {
      const episodes = yield* validate({ seed, step })
      if (countedIn(episodes).length > 0) return outcomeOf(episodes)
      const which = episodes.length === 0 ? "episodes" : "episodes of the agents in validation.agents"
      return yield* new LearningError({ message: `the validator "${own.name}" gave no ${which}` })
    }),
  }
  return validator
})
