/**
 * RepeatCue: the first observation of an episode shows one of n cues, and after a delay the agent must name it. A
 * policy without a memory cannot do better than chance, 1 / n, so this env shows whether a memory (an LSTM) learns
 * anything at all; bsuite's "memory length" is of this kind (Osband et al. 2020, arXiv:1908.03568).
 *
 * Actions: the cue to name; all but the last are ignored. The observation has n + 2 numbers: the cue as a one-hot
 * vector in the first step, later zeros; 1 in the last step, else 0; and a random number from −1 to 1. The only reward
 * is 1 for the right cue in the last step.
 */
import * as Schema from "effect/Schema"
import { intBetween } from "../../../base/config/fields.ts"
import * as Env from "../Env.ts"
import { checkOptions, checkWhole } from "../../../base/EnvError.ts"
import { withRecipe } from "../recipe.ts"
import { type Box, box, discrete, type Discrete } from "../Space.ts"

export const RepeatCueOptions = Schema.Struct({
  /** The number of steps from the cue to the answer. Default: 8. */
  delay: Schema.optionalKey(intBetween(1, 100_000)),
  /** The number of different cues. Default: 4. */
  cues: Schema.optionalKey(intBetween(2, 1000)),
})
export type RepeatCueOptions = typeof RepeatCueOptions.Type

export interface RepeatCueState {
  readonly cue: number
  readonly step: number
  readonly noise: number
}

/** Makes the env with other options: `RepeatCue.make({ delay: 20 })`. */
export const make = (options: RepeatCueOptions = {}): Env.Env<RepeatCueState, Discrete, Box> => {
  checkOptions("RepeatCue", options, RepeatCueOptions)
  const { delay = 8, cues = 4 } = options
  const id = `RepeatCue-${delay}-${cues}-v0`
  checkWhole(id, delay, 1, `RepeatCue: a delay of ${delay} steps`)
  checkWhole(id, cues, 2, `RepeatCue: ${cues} cues`)
  const bounds = (cueAndFlag: number, noise: number) => [...Array.from({ length: cues + 1 }, () => cueAndFlag), noise]
  const env = Env.make({
    id,
    observationSpace: box(bounds(0, -1), bounds(1, 1)),
    actionSpace: discrete(cues),
    rewardThreshold: 0.95,
    reset: (random): RepeatCueState => ({ cue: random.integer(cues), step: 0, noise: random.between(-1, 1) }),
    observe: ({ cue, step, noise }) => [
      ...Array.from({ length: cues }, (_, index) => (step === 0 && index === cue ? 1 : 0)),
      step === delay ? 1 : 0,
      noise,
    ],
    step: ({ cue, step }, action, random) => ({
      state: { cue, step: step + 1, noise: random.between(-1, 1) },
      reward: step === delay && action === cue ? 1 : 0,
      terminated: step === delay,
    }),
    renderText: ({ cue, step }) =>
      step === 0 ? `cue ${cue}` : step === delay ? "which cue?" : `wait ${delay - step} steps`,
  })
  return withRecipe(env, "RepeatCue", options)
}

/** The env with its default options: `Batch.make(RepeatCue.env, 16)`. */
export const env = make()
