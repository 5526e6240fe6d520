/**
 * Trains agents that ask a language model. `run` trains an agent that is made in code, `fromConfig` one that a config
 * describes. The agent plays one task after another, and stores what it learns from the feedback in its memory. Between
 * episodes, it is validated on other tasks, and checkpoints are saved. `validate` validates a saved checkpoint.
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
import { applyOverrides, ConfigError, decode, type Plain } from "../../base/config/Config.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import { RunOptions, sentTraining } from "../../run/RunOptions.ts"
import { execute, type AgentTrainingNeeds, type RuntimeError } from "./execute.ts"
import { type OutputOptions, type RuntimeOptions, RunSettings, type RuntimeStartOptions } from "./RuntimeConfig.ts"
import type { RuntimeResult } from "./RuntimeResult.ts"

export { type AgentTrainingNeeds, type RuntimeError } from "./execute.ts"
export { fromConfig } from "./fromConfig.ts"
export { validate } from "../../run/ValidationRequest.ts"
export { logsDir } from "./logsDir.ts"
export { RunSettings, RuntimeSettings, OutputSettings } from "./RuntimeConfig.ts"
export { AnyResult, RuntimeResult, toRunResult } from "./RuntimeResult.ts"

/** The input of `Runtime.run`: the agent, its tasks and the settings. Only the agent is required. */
export interface RuntimeInput<E = never, R = never> {
  readonly agent: Effect.Effect<Agent, E, R>
  readonly train?: TaskSet | null
  readonly validation?: TaskSet | null
  /**
   * The agent's settings, besides its type, that are saved in `config.yaml`. A run can only be resumed with the same
   * settings.
   */
  readonly agentConfig?: Plain
  /**
   * Whether the run writes a file below `llm_calls/` for each call of a model with the middleware `logged`
   * (`Lm.middleware(logged)`).
   */
  readonly logCalls?: boolean
  /** The name of the run, which is shown in lists and is a part of its folder's name. @default "run" */
  readonly name?: string
  /** A description of the run in one line; null makes one from its agent, tasks and seed. @default null */
  readonly description?: string | null
  /** The seed of all random numbers of the envs and of the model's sampling. @default 0 */
  readonly seed?: number | null
  /**
   * The run whose memory this run begins with, whatever its model and prompts were; null begins with an empty memory. The
   * texts of another run only replace those of an agent that a config describes. @default null
   */
  readonly start?: RuntimeStartOptions | null
  /** How episodes are run, scored, validated and saved. */
  readonly runtime?: RuntimeOptions
  /** The files that a run writes, and the folders for them. */
  readonly output?: OutputOptions | null
}

/**
 * Makes an Effect that trains the agent and returns the result. It needs Layers for the services `RunStore` (which
 * makes the run's folder), `Recorder` (which writes logs and scores) and, depending on the agent, `Lm`.
 */
export const run = <E, R>(
  input: RuntimeInput<E, R>,
): Effect.Effect<RuntimeResult, RuntimeError | E, AgentTrainingNeeds | R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { agent: makeAgent, train = null, validation = null, agentConfig, logCalls = false, ...config } = input
      const options = yield* RunOptions
      const { value, sources } = yield* applyOverrides({ name: options.name, ...config }, options.overrides)
      const from = { source: options.source, sources }
      // The overrides may be a run's whole config.yaml, with sections for the agent and the data sets. These sections are
      // dropped, because here the agent and the data sets are values.
      const { agent: _agent, trainDataset: _train, validationDataset: _validation, ...settable } = value
      const settings = yield* decode(RunSettings, settable, from)
      if ((settings.start?.texts ?? null) !== null)
        return yield* ConfigError.at(from, "start.texts", "expected an agent of a config; this one is made in code")
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
        sent: sentTraining(options),
        from,
      })
    }),
  )

const named = (tasks: TaskSet | null): Plain | null => (tasks === null ? null : { name: tasks.name })
