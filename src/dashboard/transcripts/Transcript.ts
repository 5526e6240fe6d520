/** A transcript in the form that the page draws, whatever file it was read from. */
import type { ChatMessage, Usage } from "../../lm/Chat.ts"
import type { Episode } from "./Episode.ts"

/** Consecutive tokens with equal advantages. */
export interface TokenRun {
  /** Null if the text of the tokens is unknown. */
  readonly text: string | null
  readonly ids: ReadonlyArray<number>
  readonly advantage: number
  readonly logprob: number | null
}

export interface ToolUse {
  readonly name: string
  /** The text that the model wrote. */
  readonly arguments: string
  /** Null if the call was not answered. */
  readonly result: { readonly content: string; readonly isError: boolean } | null
  /** Answered by the agent itself, or by the env. */
  readonly by: "internal" | "external" | null
}

export interface Call {
  readonly id: string
  readonly purpose: "action" | "reflection" | "judgement"
  readonly target: "internal" | "external" | "env" | null
  readonly model: string
  /** The prompt begins with this many messages of the previous call's prompt, followed by `messages`. */
  readonly kept: number
  readonly messages: ReadonlyArray<ChatMessage>
  readonly said: string
  readonly tools: ReadonlyArray<ToolUse>
  /** The feedback to the model after its answer could not be parsed, and the penalty. */
  readonly refused: { readonly feedback: string; readonly reward: number } | null
  readonly incomplete: boolean
  readonly finish: string
  readonly usage: Usage
  readonly attempts: number
  /** The error, if there is no answer. */
  readonly failed: string | null
  /** The tokens of the answer in a sample; null if no sample has them. */
  readonly tokens: ReadonlyArray<TokenRun> | null
  /** The rollouts that the call delegated. */
  readonly children: ReadonlyArray<Played>
}

export interface Turn {
  readonly observation: string | null
  readonly calls: ReadonlyArray<Call>
  /** Null if there was no action. */
  readonly action: string | null
  readonly feedback: {
    readonly score: number
    readonly target: string | null
    readonly message: string
    readonly extra: unknown
  } | null
  readonly reward: number
  readonly cumulative: number
  /** The observation after the last step. That of another step is the next step's observation. */
  readonly seen: string | null
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  readonly info: unknown
  readonly failed: string | null
  /** The credit in its samples. */
  readonly credit: number | null
  readonly weight: number | null
}

/** The reward of a rollout under several ways of sharing credit. */
interface Credits {
  readonly own: number
  /** The reward of the root of its tree. */
  readonly parents: number
  /** The mean of its own reward and its parent's. */
  readonly mixed: number
  /** The credit in its samples, of the first turn. */
  readonly sampled: number | null
}

/** A rollout, with the rollouts that it delegated. */
export interface Played {
  readonly id: string
  /** The name by which it was called; if it was not delegated, the type of its agent. */
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
  /** The usage of the whole tree, including sub-agents. */
  readonly usage: Usage & { readonly calls: number }
  readonly played: Played
  /** The largest absolute advantage of a token; null without tokens. */
  readonly largest: number | null
  /** The source of the advantages. */
  readonly advantages: "tokens" | "credit" | null
  /** How to see more; null if all is shown. */
  readonly hint: string | null
}
