/** Declares the settings of parts that a user can replace: the network, the optimiser, and the course of the learning rate. */
import * as Schema from "effect/Schema"
import { code, positive, withDefault } from "../../base/config/fields.ts"
import { type OptimiserOf, optimiserOf, OptimiserSetting } from "../../tensor/graph/optimiserSettings.ts"
import { ScheduleCourse, course, type Schedule } from "../../tensor/graph/schedules.ts"
import { type Networks, NetworksSetting } from "../model/network/layers.ts"
import { type Scheduled, scheduled, scheduleOf } from "./scheduled.ts"

export type { OptimiserOf } from "../../tensor/graph/optimiserSettings.ts"

/** The setting of the network. */
export interface NetworksOption {
  /**
   * The network in place of `hidden`, `activation` and `convolutions`: layers of `Network`. One network is the trunk that actor
   * and critic share; `{ actor, critic }` gives each its own. null leaves the choice to the algorithm. @default null
   */
  readonly network?: Networks | null
}

export const networkField = { network: withDefault(NetworksSetting, null) }

/** The setting of the first weights. */
export interface FirstWeightsOption {
  /**
   * Starts with orthogonal weights and biases of 0; false draws both within ±1/√inputs, as PyTorch does. @default true
   */
  readonly orthogonal?: boolean
}

export const firstWeightsField = { orthogonal: withDefault(Schema.Boolean, true) }

/** The setting of the optimiser. */
export interface OptimiserOption {
  /**
   * The optimiser: `adam`, `adamw`, `sgd`, `rmsprop` or `muon`, alone or with options, such as
   * `{ name: "sgd", momentum: 0.9 }`; in code also a function that makes one. null is the algorithm's own. @default null
   */
  readonly optimiser?: OptimiserSetting | OptimiserOf | null
}

export const optimiserField = {
  optimiser: withDefault(
    Schema.NullOr(
      Schema.Union([
        ...OptimiserSetting.members,
        code<OptimiserOf>("the name of an optimiser, a section with name and options, null, or a function in code"),
      ]),
    ),
    null,
  ),
}

/** The Schema of the setting `schedule`: how learning rates change over the run. */
export const CourseSetting = Schema.Union([
  ...ScheduleCourse.members,
  code<Schedule>('"constant", "linear", "cosine", a section with type, or a function in code'),
])

/**
 * The Schema of a learning rate: a number, which changes by the setting `schedule`, or a number with a schedule of its
 * own.
 */
export const learningRateSetting = scheduled(positive)

/**
 * Returns the learning rate as a function of the run's progress: by the config's `schedule`, or if the rate has a course of its
 * own, by that alone.
 *
 * @example
 * ```ts
 * learningRateOf({ learningRate: 1e-3, schedule: "linear" })(0.5) // 0.0005
 * learningRateOf({ learningRate: 1e-3, schedule: (progress) => 1 - progress ** 2 })(0.5) // 0.00075
 * ```
 */
export const learningRateOf = (config: {
  readonly learningRate: Scheduled
  readonly schedule: ScheduleCourse | Schedule
}): Schedule => {
  const { learningRate } = config
  if (typeof learningRate !== "number") return scheduleOf(learningRate)
  const factor = courseOf(config.schedule)
  return (progress) => learningRate * factor(progress)
}

/** Returns learning rates as functions of the run's progress, by their names: see `learningRateOf`. */
export const ratesOf = (
  learningRates: Readonly<Record<string, Scheduled>>,
  schedule: ScheduleCourse | Schedule,
): ReadonlyArray<readonly [string, Schedule]> =>
  Object.entries(learningRates).map(([key, learningRate]) => [key, learningRateOf({ learningRate, schedule })])

/** Returns the setting `schedule` as a function from progress to the factor of the learning rates. */
const courseOf = (schedule: ScheduleCourse | Schedule): Schedule =>
  typeof schedule === "function" ? schedule : course(schedule)

/** Returns the function that makes the optimiser of a config, or `otherwise` if the config names none. */
export const chosenOptimiser = (
  { optimiser }: { readonly optimiser: OptimiserSetting | OptimiserOf | null },
  otherwise: OptimiserOf,
): OptimiserOf =>
  optimiser === null ? otherwise : typeof optimiser === "function" ? optimiser : optimiserOf(optimiser)
