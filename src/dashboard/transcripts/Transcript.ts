/** A transcript as the page draws it: whatever it was read from, and nothing in it that could be left out. */
import type { ChatMessage, Usage } from "../../lm/Chat.ts"
import type { Episode } from "./Episode.ts"

/** Tokens next to each other that are worth the same. */
export interface TokenRun {
  /** Null where nobody knows what they stand for. */
  readonly text: string | null
  readonly ids: ReadonlyArray<number>
  readonly advantage: number
  readonly logprob: number | null
}

export interface ToolUse {
  readonly name: string
  /** As the model wrote it. */
  readonly arguments: string
  /** Null where it wasn't answered. */
  readonly result: { readonly content: string; readonly isError: boolean } | null
  /** By the agent itself, or by somebody outside. */
  readonly by: "internal" | "external" | null
}

export interface Call {
  readonly id: string
  readonly purpose: "action" | "reflection" | "judgement"
  readonly target: "internal" | "external" | "env" | null
  readonly model: string
  /** Its prompt is as many messages of the call's before it, and these behind them. */
  readonly kept: number
  readonly messages: ReadonlyArray<ChatMessage>
  readonly said: string
  readonly tools: ReadonlyArray<ToolUse>
  /** What the model was told of a parse that failed, and what that cost. */
  readonly refused: { readonly feedback: string; readonly reward: number } | null
  readonly incomplete: boolean
  readonly finish: string
  readonly usage: Usage
  readonly attempts: number
  /** Why there is no answer. */
  readonly failed: string | null
  /** What it said, as a sample has it; null where none does. */
  readonly tokens: ReadonlyArray<TokenRun> | null
  /** What it delegated. */
  readonly children: ReadonlyArray<Played>
}

export interface Turn {
  readonly observation: string | null
  readonly calls: ReadonlyArray<Call>
  /** Null where there was none. */
  readonly action: string | null
  readonly feedback: {
    readonly score: number
    readonly target: string | null
    readonly message: string
    readonly extra: unknown
  } | null
  readonly reward: number
  readonly cumulative: number
  /** Only of the last step: of others it is the next one's observation. */
  readonly seen: string | null
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  readonly info: unknown
  readonly failed: string | null
  /** Of its samples. */
  readonly credit: number | null
  readonly weight: number | null
}

/** What a rollout is worth, by several ways to share rewards out. */
export interface Credits {
  readonly own: number
  /** Of the first of its tree. */
  readonly parents: number
  /** Half of its own, and half of what its parent has. */
  readonly mixed: number
  /** What samples have, of its first turn. */
  readonly sampled: number | null
}

/** A rollout, and below it those that it delegated. */
export interface Played {
  readonly id: string
  /** What it was called by; its agent's type unless it was delegated. */
  readonly name: string
  readonly depth: number
  readonly player: string | null
  readonly model: string | null
  readonly return: number
  readonly length: number
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  readonly credits: Credits
  readonly turns: ReadonlyArray<Turn>
}

export interface Transcript {
  readonly episode: Episode
  readonly envType: string
  readonly seeds: { readonly env: number; readonly sampling: number } | null
  readonly tags: Readonly<Record<string, string>>
  /** Of all that follows, its sub-agents included. */
  readonly usage: Usage & { readonly calls: number }
  readonly played: Played
  /** The largest advantage of a token, whichever its sign; null where there are no tokens. */
  readonly largest: number | null
  /** Where advantages come from. */
  readonly advantages: "tokens" | "credit" | null
  /** What to do to see more; null where all is there. */
  readonly hint: string | null
}
