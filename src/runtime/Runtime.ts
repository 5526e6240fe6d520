/**
 * Trains agents that ask a language model. The agent plays one task after another and learns from the feedback into its
 * memory; between the episodes it is validated on other tasks, in parallel, and saved.
 *
 * @example
 * ```ts
 * import { HistoryAgent, Lm, Runtime, TaskSet } from "effect-rl"
 *
 * export default Runtime.run({
 *   agent: HistoryAgent.make({ model: "gpt-4.1-mini" }),
 *   train: TaskSet.of("digits", digits),
 *   validation: TaskSet.of("others", others),
 *   runtime: { validationFreq: 50, runValidationAtStart: true },
 * }).pipe(Effect.provide(model))
 * ```
 */
import { Effect } from "effect"
import type { Agent } from "../agent/Agent.ts"
import { applyOverrides, decode, type Plain } from "../config/Config.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import { RunOptions } from "../train/RunOptions.ts"
import { execute, type Needs, type RuntimeError } from "./execute.ts"
import { type OutputOptions, type RuntimeOptions, RunSettings } from "./RuntimeConfig.ts"
import type { RuntimeResult } from "../run/RuntimeResult.ts"

export { type Needs, type RuntimeError } from "./execute.ts"
export { fromConfig } from "./fromConfig.ts"
export { validate } from "../run/ValidationRequest.ts"
export { logsDir } from "./logsDir.ts"
export { RunSettings, RuntimeSettings, OutputSettings } from "./RuntimeConfig.ts"
export { AnyResult, RuntimeResult, toRunResult } from "../run/RuntimeResult.ts"

/** The input of `Runtime.run`: the agent, its tasks and the settings. Only the agent is required. */
export interface RuntimeInput<E = never, R = never> {
  readonly agent: Effect.Effect<Agent, E, R>
  readonly train?: TaskSet | null
  readonly validation?: TaskSet | null
  /**
   * The settings that `config.yaml` shows for the agent, besides its type. A run can only be resumed with equal ones.
   */
  readonly agentConfig?: Plain
  /** Writes every call of the model as a file below `llm_calls/`, if the model reports its calls (`Lm.middleware(logged)`). */
  readonly logCalls?: boolean
  /** The name of the run, which is shown in lists and is a part of its folder's name. @default "run" */
  readonly name?: string
  /** A line that describes the run, for people; null for none. @default null */
  readonly description?: string | null
  /** The seed of all randomness of the envs and of the model's sampling. @default 0 */
  readonly seed?: number | null
  /** How episodes are run, scored, validated and saved. */
  readonly runtime?: RuntimeOptions
  /** The files that a run writes, and the folders for them. */
  readonly output?: OutputOptions | null
}

/**
 * Makes a training of an agent. The training runs when Layers for the store, the recorder and the model are provided.
 */
export const run = <E, R>(input: RuntimeInput<E, R>): Effect.Effect<RuntimeResult, RuntimeError | E, Needs | R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { agent: makeAgent, train = null, validation = null, agentConfig, logCalls = false, ...config } = input
      const options = yield* RunOptions
      const { value, sources } = applyOverrides({ name: options.name, ...config }, options.overrides)
      const from = { source: options.source, sources }
      // Overrides from a run's config.yaml also describe the agent and the data sets. Code passes both as values, so drop
      // their descriptions.
      const { agent: _agent, trainDataset: _train, validationDataset: _validation, ...settable } = value
      const settings = yield* decode(RunSettings, settable, from)
      const agent = yield* makeAgent
      const agentDescription: Plain = { type: agent.type, ...agentConfig }
      return yield* execute({
        settings,
        agent,
        train,
        validation,
        described: { agent: agentDescription, trainDataset: named(train), validationDataset: named(validation) },
        agentIdentity: agentDescription,
        logCalls,
        from,
      })
    }),
  )

const named = (tasks: TaskSet | null): Plain | null => (tasks === null ? null : { name: tasks.name })
