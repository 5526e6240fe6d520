/**
 * Makes an agent from a function. The function gets a task and returns an answer, and may do what it likes in between: call
 * an agent of another library, a server, or no model at all. It is then evaluated, trained and recorded like all agents.
 *
 * @example
 * ```ts
 * const support = FunctionAgent.make("support-bot", async ({ text }, { lm }) =>
 *   lm.ask([{ role: "system", content: "Answer with one word." }, { role: "user", content: text }]),
 * )
 * export default Evaluations.fromConfig({
 *   dataset: { items: [{ question: "What is the capital of Japan?", answer: "Tokyo" }] },
 *   agent: { type: support, lm_config: { model: "gpt-4.1-mini" } },
 *   scorers: ["exact"],
 * })
 * ```
 */
import { Cause, Effect, Schema } from "effect"
import { withDefault } from "../../base/config/fields.ts"
import type { AgentKind } from "./AgentKind.ts"
import type { OutsideTask } from "./outside/answers.ts"
import { type AgentModel, thrown } from "./outside/OutsideAgent.ts"
import { fields, outsideKind } from "./outside/outsideKind.ts"

export type { OutsideTask } from "./outside/answers.ts"
export type { AgentModel } from "./outside/OutsideAgent.ts"

/** The second argument of the function: its model, and the settings of its agent. */
export interface FunctionContext {
  /** The agent's model, which `lm_config` names. */
  readonly lm: AgentModel
  /** Is aborted when the time is up or the run is interrupted. Pass it to whatever the function waits for. */
  readonly signal: AbortSignal
  /** A seed for random numbers of the function's own: the same for the same turn of the same episode. */
  readonly seed: number
  /**
   * Returns a text that can be replaced from outside, such as a system prompt: by the setting `texts`, or by a run that learns
   * prompts. `own` is the function's own text.
   */
  readonly text: (name: string, own: string) => string
  /** The setting `options` of the agent. */
  readonly options: Readonly<Record<string, Schema.Json>>
}

/**
 * An answer: a text, or an object with the `text`, the `usage` of tokens, and the `toolCalls` that the function has made.
 * `call` asks for tools of the task instead. Results of the AI SDK can be returned as they are.
 */
export type FunctionAnswer =
  | string
  | {
      readonly text?: string | undefined
      readonly usage?:
        | { readonly inputTokens?: number | undefined; readonly outputTokens?: number | undefined }
        | undefined
      readonly toolCalls?: ReadonlyArray<object> | undefined
      readonly call?: ReadonlyArray<{ readonly name: string; readonly arguments: unknown }> | undefined
    }

type AgentFunction = (
  task: OutsideTask,
  context: FunctionContext,
) => Promise<FunctionAnswer> | FunctionAnswer | Effect.Effect<FunctionAnswer, unknown>

export interface FunctionAgentOptions {
  /** The version of the function's code. An evaluation that was played with another version is not resumed. */
  readonly version?: string
}

/** Returns the error or defect of a function's Effect. An Effect that interrupts itself must not interrupt the run. */
const errorIn = (cause: Cause.Cause<unknown>): unknown =>
  Cause.hasInterruptsOnly(cause) ? new Error("its Effect was interrupted") : Cause.squash(cause)

/**
 * Makes the kind of agent whose turns the function takes. A config names it by `type`, either by the value that `make` returns
 * or by its name, and may have the `lm_config`, `options`, `timeout_s`, `max_retries` and `concurrency` of the agent.
 */
export const make = (name: string, answer: AgentFunction, { version }: FunctionAgentOptions = {}): AgentKind => {
  const failed = (error: unknown) => thrown(name, error)
  return outsideKind({
    type: name,
    schema: Schema.Struct({
      ...fields(name),
      /** The version of the function's code. */
      version: withDefault(Schema.NullOr(Schema.String), version ?? null),
    }),
    ask:
      ({ config: { options }, text }) =>
      ({ task, model: lm, seed }) =>
        Effect.flatMap(
          Effect.tryPromise({
            try: async (signal) => answer(task, { lm, signal, seed, text, options }),
            catch: failed,
          }),
          (returned) =>
            Effect.isEffect(returned)
              ? Effect.catchCause(returned, (cause) => Effect.fail(failed(errorIn(cause))))
              : Effect.succeed(returned),
        ),
  })
}
