/**
 * Trains separate policies for the agents of a game. Each policy has an algorithm of its own, with its own networks,
 * optimiser and random numbers. Any algorithm that plays rollouts of a fixed number of steps can be used, such as PPO
 * and DQN.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ConfigError, decode, type Plain } from "../../../base/config/Config.ts"
import type { Algorithm, ConfiguredAlgorithm } from "../../learner/Algorithm.ts"
import { learnerOf } from "../../learner/learnerOf.ts"
import { separateLearner, type SeparatePolicy } from "../../learner/agents/separateLearner.ts"

export const name = "separate"

/** A policy for several agents, which share its weights. */
export interface SharedPolicy {
  /** The names of the agents. */
  readonly agents: ReadonlyArray<string>
  readonly algorithm: Algorithm
}

/** The policies by name. The value for a single agent's policy is just its algorithm; the name is then the agent's. */
export type Policies = Readonly<Record<string, Algorithm | SharedPolicy>>

/** The settings in a config. */
export const SeparateConfig = Schema.Struct({
  /** The policies, each with a name, an algorithm with settings, and maybe a list of agents. */
  policies: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)).check(Schema.isMinLength(1)),
})

/** The settings of a policy besides those of its algorithm. Its name appears in the names of files and weights. */
export const PolicyConfig = Schema.Struct({
  policy: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9_-]+$/, {
      expected: 'a name of letters, digits, "-" and "_"; `agents` has the names of the agents, if they are others',
    }),
  ),
  /** The agents that the policy plays. If left out, it plays the agent whose name is the policy's. */
  agents: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isMinLength(1))),
  name: Schema.String.annotate({ expected: "an algorithm's name" }),
})

/** A policy with its algorithm, which came from the program or from a config. */
interface NamedPolicy {
  readonly policy: string
  readonly algorithm: Algorithm
}

/**
 * Makes the algorithm that trains separate policies for the agents of a game: one for each agent, or one for some of them.
 *
 * @example
 * ```ts
 * Train.run({
 *   env: pursuit,
 *   numEnvs: 48,
 *   algorithm: Separate.make({
 *     hunters: { agents: ["fox", "owl"], algorithm: Ppo.make({ nsteps: 64 }) },
 *     hare: A2c.make({ nsteps: 64 }),
 *   }),
 *   totalSteps: 500_000,
 * })
 * ```
 */
export const make = (policies: Policies): Algorithm => {
  const all = Object.entries(policies).map(([policy, made]) =>
    "algorithm" in made ? { policy, ...made } : { policy, agents: undefined, algorithm: made },
  )
  const written = all.map(({ policy, agents, algorithm }) => ({
    policy,
    ...(agents === undefined ? {} : { agents }),
    name: algorithm.name,
    ...algorithm.input,
  }))
  return algorithmOf({ policies: written }, all)
}

/** Finds an algorithm by its name, or says why there is none. */
type Find = (name: string) => Algorithm | string

/** Makes the same algorithm without policies: a config then names them, and `find` finds their algorithms. */
export const named = (find: Find): Algorithm => algorithmOf({}, [], find)

const ofProgram: Find = (algorithm) =>
  `the program has no algorithm "${algorithm}" for this policy; choose the one that it has`

const algorithmOf = (input: Plain, available: ReadonlyArray<NamedPolicy>, find: Find = ofProgram): Algorithm => ({
  name,
  input,
  schema: SeparateConfig,
  configure: Effect.fnUntraced(function* (value, options) {
    const { prefix = ["algorithm"] } = options
    const { policies } = yield* decode(SeparateConfig, value, { ...options, prefix })
    const configured = yield* Effect.forEach(policies, (written, index) =>
      policyOf(written, available, find, { ...options, prefix: [...prefix, "policies", String(index)] }),
    )
    const twice = configured.find(({ policy }, at) => configured.findIndex((other) => other.policy === policy) < at)
    if (twice !== undefined) {
      const problem = `two policies are called "${twice.policy}"; give each a name of its own`
      return yield* ConfigError.at({ ...options, prefix }, "policies", problem)
    }
    const configOf = (part: "config" | "written") =>
      configured.map(({ policy, agents, algorithm }) => ({ policy, agents, name: algorithm.name, ...algorithm[part] }))
    const learners = configured.map(({ policy, agents, algorithm }, index): SeparatePolicy => ({
      name: policy,
      algorithm: algorithm.name,
      agents,
      setup: (task) =>
        Effect.catchTag(learnerOf(algorithm, task), "ConfigError", ({ key, problem }) =>
          Effect.fail(ConfigError.at({ source: name }, inPolicy(key, index), problem)),
        ),
    }))
    return {
      name,
      config: { policies: configOf("config") },
      written: { policies: configOf("written") },
      setup: (task) => separateLearner(task, learners),
    } satisfies ConfiguredAlgorithm
  }),
})

/** Converts the path of a setting from the policy's own view, `algorithm.KEY`, to its path in the whole config. */
const inPolicy = (key: string, index: number): string =>
  key.startsWith("algorithm") ? key.replace("algorithm", `algorithm.policies.${index}`) : key

/** Checks the config of a policy, and configures its algorithm. */
const policyOf = Effect.fnUntraced(function* (
  { policy, agents, name: algorithmName, ...settings }: Plain,
  available: ReadonlyArray<NamedPolicy>,
  find: Find,
  from: Parameters<Algorithm["configure"]>[1],
) {
  const entry = yield* decode(
    PolicyConfig,
    { policy, ...(agents === undefined ? {} : { agents }), name: algorithmName },
    from,
  )
  const algorithm =
    available.find((one) => one.policy === entry.policy && one.algorithm.name === entry.name)?.algorithm ??
    find(entry.name)
  if (typeof algorithm === "string") return yield* ConfigError.at(from, "name", algorithm, { unknown: "algorithm" })
  return {
    policy: entry.policy,
    agents: entry.agents ?? [entry.policy],
    algorithm: yield* algorithm.configure(settings, from),
  }
})
