/**
 * Declares the setting that chooses an optimiser, by a name with options, and makes the optimiser. Algorithms have such
 * a setting.
 */
import * as Schema from "effect/Schema"
import { fraction, nonNegative, positive } from "../../base/config/fields.ts"
import * as Optimisers from "./optimisers.ts"
import type { ParameterLayout } from "./Parameters.ts"
import type { Tensor } from "./Tensor.ts"

const optional = Schema.optionalKey
const adamFields = { beta1: optional(fraction), beta2: optional(fraction), epsilon: optional(positive) }

/**
 * The Schema of an optimiser: its name, or its name with options. Options that are left out have the defaults of
 * `Optimisers`; the weight decay of `adamw` is 0.01.
 */
export const OptimiserSetting = Schema.Union([
  Schema.Literals(["adam", "adamw", "sgd", "rmsprop", "muon"]),
  Schema.Struct({ name: Schema.Literals(["adam", "adamw"]), ...adamFields, weightDecay: optional(nonNegative) }),
  Schema.Struct({ name: Schema.Literal("sgd"), momentum: optional(fraction), weightDecay: optional(nonNegative) }),
  Schema.Struct({ name: Schema.Literal("rmsprop"), decay: optional(fraction), epsilon: optional(positive) }),
  Schema.Struct({ name: Schema.Literal("muon"), momentum: optional(fraction), weightDecay: optional(nonNegative) }),
])
export type OptimiserSetting = typeof OptimiserSetting.Type

/** The parameters that an optimiser updates, their learning rate, and a name for its states in the program. */
interface OptimisedParameters {
  readonly layout: ParameterLayout
  readonly size: number
  readonly learningRate: Tensor
  /** The prefix of the names of the optimiser's states; by default its own name. */
  readonly name?: string
}

/** Makes an optimiser for parameters. */
export type OptimiserOf = (parameters: OptimisedParameters) => Optimisers.Optimiser

/**
 * Returns the function that makes the optimiser of a setting.
 *
 * @example
 * ```ts
 * optimiserOf({ name: "sgd", momentum: 0.9 })({ layout, size: layout.size, learningRate: Graph.constant(1e-3) })
 * ```
 */
export const optimiserOf = (setting: OptimiserSetting): OptimiserOf => {
  const options = typeof setting === "string" ? { name: setting } : setting
  return ({ layout, size, learningRate, name = options.name }) => {
    const common = { size, learningRate }
    switch (options.name) {
      case "adam":
      case "adamw": {
        const weightDecay = options.name === "adamw" ? 0.01 : 0
        return Optimisers.adam({ weightDecay, ...options, ...common, name })
      }
      case "sgd":
        return Optimisers.sgd({ ...options, ...common, name })
      case "rmsprop":
        return Optimisers.rmsprop({ ...options, ...common, name })
      case "muon":
        return Optimisers.muon({ ...options, layout, learningRate, name })
    }
  }
}
