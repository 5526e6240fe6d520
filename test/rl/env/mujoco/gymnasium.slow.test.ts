import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { toCamelCase } from "../../../../src/base/config/Config.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import type { MujocoState } from "../../../../src/rl/env/mujoco/Mujoco.ts"
import type { Box } from "../../../../src/rl/env/Space.ts"
import { has, python } from "../foreign/python.ts"
import { follow, type Trace } from "./lockstep.ts"

type Options = Readonly<Record<string, number | boolean | ReadonlyArray<number>>>

/** Options of each body, with Gymnasium's names: none, and others than the defaults, whose terms and episodes differ. */
const cases: ReadonlyArray<readonly [name: string, terms: ReadonlyArray<string>, ...options: ReadonlyArray<Options>]> =
  [
    [
      "HalfCheetah",
      ["ctrl", "forward"],
      { exclude_current_positions_from_observation: false, forward_reward_weight: 0.7, ctrl_cost_weight: 0.3 },
    ],
    [
      "Hopper",
      ["ctrl", "forward", "survive"],
      { exclude_current_positions_from_observation: false, healthy_reward: 2.5, ctrl_cost_weight: 0.01 },
      { terminate_when_unhealthy: false, healthy_angle_range: [-0.05, 0.05], healthy_state_range: [-3, 3] },
    ],
    [
      "Walker2d",
      ["ctrl", "forward", "survive"],
      { exclude_current_positions_from_observation: false, healthy_z_range: [0.9, 1.6], forward_reward_weight: 2 },
      { terminate_when_unhealthy: false, healthy_reward: 0.5, healthy_angle_range: [-0.2, 0.2] },
    ],
    [
      "Ant",
      ["contact", "ctrl", "forward", "survive"],
      { exclude_current_positions_from_observation: false, include_cfrc_ext_in_observation: false },
      { contact_force_range: [-0.3, 5], contact_cost_weight: 0.01, terminate_when_unhealthy: false, healthy_reward: 3 },
    ],
    [
      "Swimmer",
      ["ctrl", "forward"],
      { exclude_current_positions_from_observation: false, ctrl_cost_weight: 0.1, forward_reward_weight: 3 },
    ],
    ["Reacher", ["ctrl", "distance"], { reward_dist_weight: 2, reward_control_weight: 0.3 }],
    [
      "Pusher",
      ["ctrl", "distance", "near"],
      { reward_near_weight: 0.9, reward_dist_weight: 0.2, reward_control_weight: 0.7 },
    ],
    ["InvertedPendulum", ["survive"], { reset_noise_scale: 0.1 }],
    ["InvertedDoublePendulum", ["distance", "survive", "velocity"], { healthy_reward: 4, reset_noise_scale: 0.01 }],
    [
      "Humanoid",
      ["contact", "ctrl", "forward", "survive"],
      {
        exclude_current_positions_from_observation: false,
        include_cfrc_ext_in_observation: false,
        include_cinert_in_observation: false,
        contact_cost_weight: 1e-4,
        contact_cost_range: [0.001, 2],
      },
      {
        include_cvel_in_observation: false,
        include_qfrc_actuator_in_observation: false,
        terminate_when_unhealthy: false,
        healthy_z_range: [1.2, 1.5],
        ctrl_cost_weight: 0.5,
      },
    ],
    [
      "HumanoidStandup",
      ["ctrl", "impact", "up"],
      {
        exclude_current_positions_from_observation: false,
        include_cinert_in_observation: false,
        include_qfrc_actuator_in_observation: false,
        impact_cost_weight: 1e-4,
        impact_cost_range: [0.001, 3],
        ctrl_cost_weight: 0.4,
      },
    ],
  ]

const isBody = (env: Env): env is Env<MujocoState, Box, Box> => env.actionSpace._tag === "Box"

/** Whether Python has the versions with whose numbers ours agree to the last digits. */
const isThere = (): boolean => {
  if (!has("gymnasium.envs.mujoco", "mujoco", "numpy")) return false
  const { stdout } = spawnSync(python, ["-c", "import mujoco; print(mujoco.__version__)"], { encoding: "utf8" })
  const version = stdout.trim()
  if (!version.startsWith("3.14.")) console.log(`skipped: ${python} has MuJoCo ${version}, not 3.14`)
  return version.startsWith("3.14.")
}

const traceOf = (request: object): Trace => {
  const { stdout, stderr } = spawnSync(python, [fileURLToPath(new URL("trace.py", import.meta.url))], {
    input: JSON.stringify(request),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  })
  assert.notStrictEqual(stdout, "", stderr)
  return JSON.parse(stdout)
}

describe.skipIf(!isThere())("1,000 steps of Gymnasium's bodies", () => {
  const all = cases.flatMap(([name, terms, ...more]) =>
    [{}, ...more].map((options, at) => [`${name} ${JSON.stringify(options)}`, { name, terms, options, at }] as const),
  )
  it.effect.each(all)("%s", ([, { name, terms, options, at }]) =>
    Effect.gen(function* () {
      const env = yield* fromConfig(toCamelCase({ name, ...options }), { source: "test" })
      if (!isBody(env)) return assert.fail(`${name} is no body`)
      yield* env.prepare ?? Effect.void
      const trace = traceOf({ id: `${name}-v5`, options, steps: 1000, seed: 2026 + at })
      assert.lengthOf(trace.steps, 1000)
      // A person who has fallen lies on many contacts.
      const mostApart = name === "Humanoid" && "terminate_when_unhealthy" in options ? 3 : 0
      assert.deepStrictEqual([...follow(env, trace, { mostApart })].sort(), terms)
    }),
  )
})
