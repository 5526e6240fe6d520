/** Defines the temperature of soft actor-critic, the weight of the policy's entropy: a number, or one that is learned. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../../base/config/Config.ts"
import { positive, withDefault } from "../../../base/config/fields.ts"
import { add, exp, mean, state } from "../../../tensor/graph/ops.ts"
import { adam } from "../../../tensor/graph/optimisers.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { temperatureGradient } from "../../losses/critics.ts"
import type { Update } from "./networks.ts"

/** The settings of the temperature. */
export interface TemperatureConfig {
  /** The temperature: a number, or null or a text such as `auto_0.1` to learn it. */
  readonly alpha: number | string | null
  /** The initial value of a learned temperature, unless `alpha` names one. */
  readonly alphaStart: number
}

const isPositive = Schema.is(positive)

/**
 * Returns the initial temperature that a text such as `auto_0.1` names; undefined for another text. For `auto`, which names
 * none, it returns 1, but the temperature starts at `alphaStart`.
 */
const startOf = (text: string): number | undefined => {
  if (text === "auto") return 1
  const [, start] = /^auto_(.*\d.*)$/.exec(text) ?? []
  return start !== undefined && isPositive(Number(start)) ? Number(start) : undefined
}

const text = Schema.String.check(
  Schema.makeFilter((value) =>
    startOf(value) === undefined
      ? "expected a number above 0, null, auto, or auto_ and the first temperature, such as auto_0.1"
      : undefined,
  ),
)

export const temperatureFields = {
  alpha: withDefault(Schema.Union([Schema.NullOr(positive), text]), null),
  alphaStart: withDefault(positive, 1),
}

/** Fails if both settings name an initial temperature. */
export const checkTemperature = (
  name: string,
  { alpha, alphaStart }: TemperatureConfig,
): Effect.Effect<void, ConfigError> =>
  typeof alpha !== "string" || alpha === "auto" || alphaStart === 1
    ? Effect.void
    : Effect.fail(
        ConfigError.at(
          { source: name, prefix: ["algorithm"] },
          "alpha_start",
          `${alphaStart} with algorithm.alpha ${alpha}, which names the first temperature, too; set one of them`,
        ),
      )

/** The temperature of an update. */
interface Temperature {
  readonly alpha: Tensor | number
  /** Describes a step of a learned temperature towards the target entropy. A fixed temperature changes no states. */
  readonly step: (logProbability: Tensor, targetEntropy: number) => Update["states"]
  readonly metrics: Update["metrics"]
}

/**
 * Makes the temperature of soft actor-critic: a number, or one that is learned.
 *
 * @example
 * ```ts
 * temperature({ alpha: 0.1, alphaStart: 1 }, softLearning.learningRates.learningRate).alpha // 0.1
 * ```
 */
export const temperature = ({ alpha: setting, alphaStart }: TemperatureConfig, learningRate: Tensor): Temperature => {
  if (typeof setting === "number") return { alpha: setting, step: () => ({}), metrics: {} }
  const start = setting === null || setting === "auto" ? alphaStart : (startOf(setting) ?? alphaStart)
  // States start at 0, so this state is log(α / α₀), where α₀ is the initial temperature.
  const change = state("logAlpha", [1])
  const alpha = exp(start === 1 ? change : add(change, Math.log(start)))
  return {
    alpha,
    step: (logProbability, targetEntropy) => {
      const gradient = temperatureGradient({ logProbability, targetEntropy })
      const { next, moments } = adam({ name: "alpha.adam", size: 1, learningRate }).update(change, gradient)
      return { logAlpha: { tensor: change, next }, ...moments }
    },
    metrics: { "charts/alpha": mean(alpha) },
  }
}
