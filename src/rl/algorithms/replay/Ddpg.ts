/**
 * Deep deterministic policy gradient (Lillicrap et al. 2015, arXiv:1509.02971): Q-learning for continuous actions,
 * whose actor climbs the critic's gradient. It is TD3 without its three corrections: there is only one critic, no noise
 * on target actions, and the actor learns in every update. So this file uses TD3's networks, learner and update.
 */
import * as Schema from "effect/Schema"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Td3 from "./Td3.ts"

// --- Config: `DdpgOptions` are the settings in code; `DdpgConfig` checks them and fills in the defaults ---

export interface DdpgOptions extends Td3.DeterministicOptions {}

export const DdpgConfig = Schema.Struct(Td3.deterministicFields)
export type DdpgConfig = typeof DdpgConfig.Type

/** The settings of TD3 that turn its corrections off. */
const uncorrected = { critics: 1, targetNoise: 0, targetNoiseClip: 0, policyDelay: 1 }

/**
 * Makes DDPG; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: Pendulum.env, numEnvs: 1, algorithm: Ddpg.make({ explorationNoise: 0.2 }), totalSteps: 20_000 })
 * ```
 */
export const make: Algorithm.Make<DdpgOptions> = Algorithm.define({
  name: "ddpg",
  config: DdpgConfig,
  setup: (config, task) => Td3.setup({ ...config, ...uncorrected }, task, "ddpg"),
}).make
