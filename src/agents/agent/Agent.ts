/**
 * Defines the interface `Agent`. An agent gets an observation, and calls a language model as often as it needs to. It returns
 * an action for the env, calls of tools that it cannot run itself, or the reason why it does not act.
 *
 * Its short-term state is reset at the beginning of an episode. It may also have a memory, which lasts for many episodes, and
 * which is only written in training. The clones of an agent share its model and, with the option `shareMemory`, its memory,
 * but never its short-term state.
 *
 * @example
 * ```ts
 * const agent = yield* HistoryAgent.make({ model: "scripted", systemPrompt: "Answer with one word." })
 * yield* agent.reset
 * const turn = yield* agent.act({ _tag: "Observation", text: "What colour is the sky?" })
 * ```
 */
import { type Effect, Schema } from "effect"
import type { Feedback } from "../task/Feedback.ts"
import { ChatMessage, Completion, ToolSpec } from "../lm/Chat.ts"
import type { LmError } from "../lm/LmError.ts"
import type { AgentError } from "./AgentError.ts"
import type { AgentMemory } from "./memory/Memory.ts"
import { ParseResult } from "./Parser.ts"

/** The result of a tool call, which becomes a message to the model. */
export const ToolResult = Schema.Struct({
  toolCallId: Schema.String,
  toolName: Schema.String,
  content: Schema.String,
  isError: Schema.Boolean,
})
export type ToolResult = typeof ToolResult.Type

/**
 * Records one call of the model by an agent, with everything that is needed to train on it.
 *
 * `target` is the user of the completion: the agent itself (`internal`: for its own tools or its memory), the code that plays
 * the episode (`external`: for other tools), or the env (`env`: `parsed` holds the action).
 */
export const ModelCall = Schema.Struct({
  purpose: Schema.Literals(["action", "reflection"]),
  target: Schema.Literals(["internal", "external", "env"]),
  /** The number of calls since the last observation, before this one. Results of external tools do not reset it. */
  loopIndex: Schema.Int,
  /** The messages of the whole prompt. */
  messages: Schema.Array(ChatMessage),
  /** The tools that the model could call; left out if there were none. */
  tools: Schema.optionalKey(Schema.Array(ToolSpec)),
  completion: Completion,
  /** The results of the tools that the agent ran itself. */
  toolResults: Schema.Array(ToolResult),
  /**
   * The result of the agent's parser. It is used (as an action, or as a failure with its penalty) only if `target` is
   * `env`. It is null for reflections, and if the completion calls external tools.
   */
  parsed: Schema.NullOr(ParseResult),
  /** Whether the agent refused the completion because it was cut off at its length limit. */
  incomplete: Schema.Boolean,
})
export type ModelCall = typeof ModelCall.Type

/** The input of an agent's turn: an observation, or the results of external tool calls. */
export type AgentInput =
  | {
      readonly _tag: "Observation"
      readonly text: string
      /** The external tools that the agent may call. If left out, they stay the same as for the last observation. */
      readonly tools?: ReadonlyArray<ToolSpec>
    }
  /** The results of the external tool calls that ended the agent's last turn. */
  | { readonly _tag: "ToolResults"; readonly results: ReadonlyArray<ToolResult> }

/** The result of an agent's turn. */
export interface AgentTurn {
  /** All calls of the model in this turn; the last one gave the outcome. */
  readonly calls: ReadonlyArray<ModelCall>
  /**
   * The agent acts in the env, fails to act because its answer could not be used, or calls external tools. `reward` is the
   * parser's reward for the form of the answer; it is negative for a penalty.
   */
  readonly outcome:
    | { readonly _tag: "Act"; readonly action: string; readonly reward: number }
    | { readonly _tag: "NoAction"; readonly feedback: string; readonly reward: number }
    | { readonly _tag: "CallTools"; readonly toolCalls: ReadonlyArray<Completion["toolCalls"][number]> }
}

/** The result of an env step, as the agent gets it. */
export interface StepResult {
  readonly action: string
  /** The next observation; null if there is none. */
  readonly observation: string | null
  /** The feedback on the action, in training; null in evaluation. */
  readonly feedback: Feedback | null
  /** Whether the episode ends with this step. */
  readonly done: boolean
}

export type AgentFailure = AgentError | LmError

export interface Agent {
  /** The agent's type as in configs, e.g. `history_agent`. */
  readonly type: string
  /** The name of the model that the agent calls; null if it calls none. */
  readonly model: string | null
  /** Whether the agent writes to its memory. */
  readonly training: boolean
  readonly memory: AgentMemory | null
  /** Resets the short-term state for a new episode. */
  readonly reset: Effect.Effect<void>
  /** Takes a turn: calls the model until there is an outcome. */
  readonly act: (input: AgentInput) => Effect.Effect<AgentTurn, AgentFailure>
  /** Passes the result of an env step, which the agent's action has caused, to the agent. */
  readonly observe: (result: StepResult) => Effect.Effect<void, AgentFailure>
  /** Ends the episode. Returns the calls of the model that the agent made at the end, such as a reflection. */
  readonly endEpisode: Effect.Effect<ReadonlyArray<ModelCall>, AgentFailure>
  /** Makes an agent with the same model and settings, but a short-term state of its own. */
  readonly cloneForEpisode: (options: CloneOptions) => Effect.Effect<Agent>
}

export interface CloneOptions {
  /**
   * Whether the clone may write to the memory. If false, an attempt to write throws (as a defect, not as a typed
   * error).
   */
  readonly training: boolean
  /** Whether the clone shares the memory; otherwise it has its own copy. */
  readonly shareMemory: boolean
}
