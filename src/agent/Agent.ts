/**
 * What acts: it is shown something, asks a language model as often as it needs to, and answers with an action for the
 * env, with calls for somebody else to make, or with why there is no action.
 *
 * An agent has a short-term state, which an episode begins without, and may have a memory, which outlives episodes and
 * is only written in training. The clones of an agent share its model and, if asked, its memory; never its short-term
 * state.
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
import type { Memory } from "./memory/Memory.ts"
import { ParseResult } from "./Parser.ts"

/** What a tool answered. */
export const ToolResult = Schema.Struct({
  toolCallId: Schema.String,
  toolName: Schema.String,
  content: Schema.String,
  isError: Schema.Boolean,
})
export type ToolResult = typeof ToolResult.Type

/**
 * One call of the model, as an agent tells of it: it is all that is needed to train on the call.
 *
 * `target` says who acts upon it: the agent itself (`internal`: its own tools were called, or it was for its memory),
 * somebody outside (`external`: tools that are not its own), or the env (`env`: `parsed` says what was done).
 */
export const ModelCall = Schema.Struct({
  purpose: Schema.Literals(["action", "reflection"]),
  target: Schema.Literals(["internal", "external", "env"]),
  /** Counted from 0 within a turn. */
  loopIndex: Schema.Int,
  /** The whole prompt. */
  messages: Schema.Array(ChatMessage),
  /** What the model could call; left out where it was nothing. */
  tools: Schema.optionalKey(Schema.Array(ToolSpec)),
  completion: Completion,
  /** Of the agent's own tools that were called. */
  toolResults: Schema.Array(ToolResult),
  /**
   * What the agent's parser makes of the completion; it is done, and a failure costs something, only where the target is
   * the env. Null where tools of others were called, and of reflections.
   */
  parsed: Schema.NullOr(ParseResult),
  /** The completion was cut at its length, and refused for that. */
  incomplete: Schema.Boolean,
})
export type ModelCall = typeof ModelCall.Type

/** What an agent is shown. */
export type Shown =
  | {
      readonly _tag: "Observation"
      readonly text: string
      /** What may be called outside, by agents that call tools; as before unless given. */
      readonly tools?: ReadonlyArray<ToolSpec>
    }
  /** The answers to the calls that its last turn ended with. */
  | { readonly _tag: "ToolResults"; readonly results: ReadonlyArray<ToolResult> }

/** What an agent answers with, and the calls of the model that led there. The last of them is the turn's. */
export interface Turn {
  readonly calls: ReadonlyArray<ModelCall>
  readonly outcome:
    | { readonly _tag: "Act"; readonly action: string; readonly reward: number }
    | { readonly _tag: "NoAction"; readonly feedback: string; readonly reward: number }
    | { readonly _tag: "CallTools"; readonly toolCalls: ReadonlyArray<Completion["toolCalls"][number]> }
}

/** What a step led to, as an agent is told of it. */
export interface Seen {
  readonly action: string
  /** Null where there is nothing more to see. */
  readonly observation: string | null
  /** In training alone. */
  readonly feedback: Feedback | null
  /** The episode ends here. */
  readonly done: boolean
}

export type AgentFailure = AgentError | LmError

export interface Agent {
  /** `history_agent` … */
  readonly type: string
  /** The model that it asks; null where it asks none. */
  readonly model: string | null
  readonly training: boolean
  readonly memory: Memory | null
  /** A new episode begins: what is short-term is gone, also after an episode that failed. */
  readonly reset: Effect.Effect<void>
  readonly act: (shown: Shown) => Effect.Effect<Turn, AgentFailure>
  readonly observe: (seen: Seen) => Effect.Effect<void, AgentFailure>
  /** The episode is over, whichever way; gives the calls that looking back took. */
  readonly endEpisode: Effect.Effect<ReadonlyArray<ModelCall>, AgentFailure>
  readonly cloneForEpisode: (how: CloneOptions) => Effect.Effect<Agent>
}

export interface CloneOptions {
  /** Without it nothing is written into the memory: a write is a defect. */
  readonly training: boolean
  /** Else the clone has a copy of its own. */
  readonly shareMemory: boolean
}
