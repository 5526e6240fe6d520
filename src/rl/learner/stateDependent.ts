/** Declares the setting `sde` (generalised state-dependent exploration), and computes which steps share its noise. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError } from "../../base/config/Config.ts"
import { bounded, real, withDefault } from "../../base/config/fields.ts"
import { display } from "../env/Space.ts"
import { stateDependentFields, type StateDependentOptions } from "../model/stateDependentNoise.ts"
import type { Task } from "./Learner.ts"
import { firstWeightsField, type FirstWeightsOption } from "./parts.ts"

/** The settings of generalised state-dependent exploration (Raffin et al. 2021, arXiv:2005.05719). */
export interface SdeOptions extends StateDependentOptions {
  /** The number of steps after which each env draws a new noise matrix; -1 draws one for each rollout. @default -1 */
  readonly sampleFreq?: number
}

/** The settings of state-dependent exploration of algorithms that begin with random actions. */
export interface ReplaySdeOptions extends SdeOptions {
  /** Explores in this way in the first `learningStarts` steps too, in place of random actions. @default false */
  readonly atWarmup?: boolean
}

const sdeFields = {
  sampleFreq: withDefault(Schema.Union([bounded("count"), Schema.Literal(-1)]), -1),
  ...stateDependentFields,
}

export const Sde = Schema.Struct(sdeFields)
export type Sde = typeof Sde.Type
export const ReplaySde = Schema.Struct({ ...sdeFields, atWarmup: withDefault(Schema.Boolean, false) })
export type ReplaySde = typeof ReplaySde.Type

/** The settings of the noise on real-valued actions. */
export interface DeviationOptions extends FirstWeightsOption {
  /**
   * The logarithm of the initial standard deviation of real-valued actions, or with `sde` of the elements of its
   * matrix. @default 0
   */
  readonly logStdInit?: number
  /**
   * Generalised state-dependent exploration: `{}` makes the noise on actions a function of the state that stays the same for some
   * steps, which is smoother. Only for actions that are real numbers; null draws noise for each step. @default null
   */
  readonly sde?: SdeOptions | null
}

export const deviationFields = {
  ...firstWeightsField,
  logStdInit: withDefault(real, 0),
  sde: withDefault(Schema.NullOr(Sde), null),
}

/** Says which steps of a rollout share the noise of their actions. */
export interface NoiseSharing {
  /** The number of consecutive steps that share a draw. */
  readonly noiseRepeat: number
  /** Whether each rollout begins with a new draw. */
  readonly freshNoise: boolean
}

/** Returns which steps share their noise, by the settings `noiseRepeat` and `sde`. */
export const noiseSharing = ({
  noiseRepeat,
  sde,
}: {
  readonly noiseRepeat: number
  readonly sde: Sde | null
}): NoiseSharing =>
  sde === null
    ? { noiseRepeat, freshNoise: false }
    : { noiseRepeat: sde.sampleFreq === -1 ? Infinity : sde.sampleFreq, freshNoise: true }

/** Returns the number of the draw from which step `t` of a rollout of `steps` steps takes its noise. */
export const drawOf = (
  { noiseRepeat, freshNoise }: NoiseSharing,
  steps: number,
  { iteration, t }: { readonly iteration: number; readonly t: number },
): number =>
  freshNoise
    ? iteration * Math.max(1, Math.ceil(steps / noiseRepeat)) + Math.floor(t / noiseRepeat)
    : Math.floor((iteration * steps + t) / noiseRepeat)

/** Fails if `sde` is set for actions that are choices, or together with `noiseRepeat`. */
export const checkSde = (
  name: string,
  { sde, noiseRepeat = 1 }: { readonly sde: Sde | null; readonly noiseRepeat?: number },
  { actionSpace }: Pick<Task, "actionSpace">,
): Effect.Effect<void, ConfigError> => {
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))
  if (sde === null) return Effect.void
  if (actionSpace._tag !== "Box")
    return wrong("sde", `expected null, since the actions are no real numbers but ${display(actionSpace)}`)
  return noiseRepeat === 1
    ? Effect.void
    : wrong(
        "noise_repeat",
        `expected 1 with algorithm.sde, whose sample_freq says how long noise stays, found ${noiseRepeat}`,
      )
}
