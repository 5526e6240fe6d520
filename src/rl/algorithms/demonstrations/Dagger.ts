/**
 * Dataset aggregation (Ross et al. 2011, arXiv:1011.0686): the learner plays, and an expert says in each state what it would
 * have done. Behaviour cloning learns from all of these answers. So the learner is shown what to do after its own mistakes,
 * in states that an expert alone never visits.
 */
import { Effect, type Scope } from "effect"
import * as Schema from "effect/Schema"
import type { Backend } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, fraction, withDefault } from "../../../base/config/fields.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import { linear, within } from "../../../tensor/graph/schedules.ts"
import { type Algorithm, define } from "../../learner/Algorithm.ts"
import { type Learner, type Policy, type Position, type SetupError, type Task } from "../../learner/Learner.ts"
import { drive, type Steps, waitFor } from "../../learner/drive.ts"
import { aggregateBytes, makeAggregate } from "../../learner/imitation/Aggregate.ts"
import { checkExpert, type Expert, makeLabeller } from "../../learner/imitation/Expert.ts"
import { savedState } from "../../learner/learnerState.ts"
import { onlyPlaying } from "../../learner/onlyPlaying.ts"
import { tooLarge } from "../../learner/replay/storage.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { bcFields, type BcOptions, cloneOf, cloner } from "./Bc.ts"

// --- Config: `DaggerOptions` are the settings in code; `DaggerConfig` checks them and fills in the defaults ---

export interface DaggerOptions extends BcOptions {
  /** The number of labelled steps that each gradient step learns from. @default 64 */
  readonly batchSize?: number
  /** The number of steps that each env takes, and the expert labels, between two updates. @default 50 */
  readonly nsteps?: number
  /** The number of passes of each update over all steps that were labelled so far. @default 4 */
  readonly epochs?: number
  /** The probability β that the expert's action is taken in a step of the first rollout. @default 1 */
  readonly betaStart?: number
  /** The probability of the expert's action after the first `betaFraction` of the run. @default 0 */
  readonly betaEnd?: number
  /** The share of the run, from its start, in which β falls linearly to `betaEnd`, from rollout to rollout. @default 0.5 */
  readonly betaFraction?: number
}

export const DaggerConfig = Schema.Struct({
  ...bcFields,
  nsteps: withDefault(bounded("rolloutSteps"), 50),
  epochs: withDefault(bounded("rounds"), 4),
  betaStart: withDefault(fraction, 1),
  betaEnd: withDefault(fraction, 0),
  betaFraction: withDefault(fraction, 0.5),
})
export type DaggerConfig = typeof DaggerConfig.Type

// --- Rollout: the policy β π* + (1 − β) π of the paper, with the expert π* and the learner π ---

/** Returns a function that plays a rollout, adds its labelled steps to the aggregate, and returns the number of steps. */
const makeRollout = (
  config: DaggerConfig,
  task: Task,
  policy: Policy,
  labeller: ReturnType<typeof makeLabeller>,
  aggregate: ReturnType<typeof makeAggregate>,
) => {
  const { numEnvs, seed } = task
  const size = sizeOf(task.actionSpace)
  const { labels } = labeller
  const actions = labels.slice()
  return function* (envs: AnyBatchEnv, iteration: number, beta: number): Steps<number> {
    const [noise, choice, expert] = ["act", "beta", "expert"].map((use) => stream(seed, use, iteration))
    for (let t = 0; t < config.nsteps; t++) {
      yield* labeller.ask(envs, expert)
      aggregate.add(envs.observations, labels)
      policy.observations.set(envs.observations)
      if (policy.noise !== undefined) noise.fillUniform(policy.noise)
      yield policy.program
      for (let env = 0; env < numEnvs; env++) {
        const taken = choice.uniform() < beta ? labels : policy.actions
        for (let at = env * size; at < (env + 1) * size; at++) actions[at] = taken[at]
      }
      const wait = envs.step(actions)
      if (wait !== undefined) yield waitFor(wait)
      labeller.afterStep(envs)
    }
    return config.nsteps * numEnvs
  }
}

// --- Learner: behaviour cloning of the aggregate, which grows with each rollout ---

/** Returns a function that makes the learner for a config and a task. This expert labels the steps. */
const learnFrom = (expert: Expert) =>
  Effect.fnUntraced(function* (
    config: DaggerConfig,
    task: Task,
  ): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
    yield* checkExpert("dagger", expert, task)
    const problem = tooLarge(aggregateBytes(task))
    if (problem !== undefined) {
      return yield* ConfigError.at({ source: "dagger" }, "total_steps", `${task.totalSteps} labelled steps ${problem}`)
    }
    const { learner, update, averages, fill, setLearningRate } = yield* cloner("dagger", config, task)
    const policy = yield* learner.policy(task.numEnvs, { sampled: true })
    const labeller = makeLabeller(expert, task)
    const aggregate = makeAggregate(task)
    const play = makeRollout(config, task, policy, labeller, aggregate)
    const beta = within(config.betaFraction, linear(config.betaStart, config.betaEnd))
    const betaAt = ({ step }: Position): number => beta(step / task.totalSteps)

    /** Takes a gradient step on each batch of the aggregate, which is shuffled anew for each pass. */
    const learn = function* (iteration: number): Steps<void> {
      const shown = aggregate.contents()
      const order = new Int32Array(aggregate.rows())
      const shuffle = stream(task.seed, "demonstrations", iteration)
      for (let epoch = 0; epoch < config.epochs; epoch++) {
        shuffle.permutation(order)
        for (let from = 0; from < order.length; from += config.batchSize) {
          fill(shown, order, from)
          yield update
          averages.addResults(update)
        }
      }
    }
    return {
      ...learner,
      devices: { ...learner.devices, [policy.program.name]: policy.program.device },
      capabilities: { imitates: true },
      rollout: Effect.fnUntraced(function* (envs, position) {
        yield* policy.refresh
        return yield* drive(() => play(envs, position.iteration, betaAt(position)))
      }),
      update: Effect.fnUntraced(function* (position) {
        setLearningRate(position)
        yield* drive(() => learn(position.iteration))
        averages.add("charts/beta", betaAt(position))
        averages.add("charts/labels", aggregate.rows())
        yield* averages.checkFinite(`update ${position.iteration + 1}`)
      }),
      state: Effect.map(learner.state, (state) => ({
        ...state,
        aggregate: { ...aggregate.state(), ...labeller.state() },
      })),
      restore: Effect.fnUntraced(function* (weights, saved) {
        yield* learner.restore(weights, saved)
        yield* savedState(saved).use("aggregate", (arrays) => {
          aggregate.restore(arrays)
          labeller.restore(arrays)
        })
      }),
    }
  })

/**
 * Makes DAgger with an expert: a function, or a policy that `Policy.load` loaded. Settings that are left out have their
 * defaults.
 *
 * @example
 * ```ts
 * const dagger = Dagger.make(([, , angle, spin]) => (angle + 0.25 * spin > 0 ? 1 : 0), { nsteps: 25 })
 * Train.run({ env: CartPole.env, algorithm: dagger, totalSteps: 2_000, validation: { everySteps: 400 } })
 * ```
 */
export const make = (expert: Expert, options: DaggerOptions = {}): Algorithm =>
  define({ name: "dagger", config: DaggerConfig, setup: learnFrom(expert) }).make(options)

/** DAgger as a run's saved config makes it: it can only play what the run has learned. */
export const onlyPlays = onlyPlaying("dagger", DaggerConfig, cloneOf)
