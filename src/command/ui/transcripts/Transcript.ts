/** Defines the transcript of an episode, which the page shows. `fromRollouts.ts` and `fromScores.ts` make it. */
import type { ChatMessage, Usage } from "../../../agents/lm/Chat.ts"
import type { ListedEpisode } from "./Episode.ts"

/** One or more consecutive tokens of an answer that have equal advantages and log-probabilities. */
export interface TokenSpan {
  /** The text of the tokens; null if it is unknown. */
  readonly text: string | null
  readonly ids: ReadonlyArray<number>
  readonly advantage: number
  readonly logprob: number | null
}

/** A call of a tool by the model. */
export interface ToolUse {
  readonly name: string
  /** The arguments as the model wrote them. */
  readonly arguments: string
  /** The result of the call; null if the call was not answered. */
  readonly result: { readonly content: string; readonly isError: boolean } | null
  /**
   * Whether the agent (`internal`) or the code that plays the episode (`external`) answered the tool call; null if unknown.
   */
  readonly by: "internal" | "external" | null
}

/** A request to the language model, and its answer. */
export interface Call {
  readonly id: string
  readonly purpose: "action" | "reflection" | "judgement"
  /**
   * The target of the answer: the agent itself (`internal`), external tools, or the env, for which it is an action; null if
   * unknown.
   */
  readonly target: "internal" | "external" | "env" | null
  readonly model: string
  /** The prompt begins with this many messages of the previous call's prompt, followed by `messages`. */
  readonly kept: number
  readonly messages: ReadonlyArray<ChatMessage>
  /** The text of the answer. */
  readonly said: string
  readonly tools: ReadonlyArray<ToolUse>
  /** The feedback and the penalty for an answer that could not be parsed; null if it could be parsed. */
  readonly refused: { readonly feedback: string; readonly reward: number } | null
  readonly incomplete: boolean
  readonly finish: string
  readonly usage: Usage
  readonly attempts: number
  /** The error of the model call; null if there is an answer. */
  readonly failed: string | null
  /** The tokens of the answer, from the run's samples; null if no sample contains them. */
  readonly tokens: ReadonlyArray<TokenSpan> | null
  /** The rollouts that the call delegated. */
  readonly children: ReadonlyArray<PlayedRollout>
}

/** One turn of an agent: an observation, calls of the model, and usually an action. */
export interface TranscriptTurn {
  readonly observation: string | null
  readonly calls: ReadonlyArray<Call>
  /** The action; null if there was none. */
  readonly action: string | null
  readonly feedback: {
    readonly score: number
    readonly target: string | null
    readonly message: string
    readonly extra: unknown
  } | null
  readonly reward: number
  readonly cumulative: number
  /**
   * The observation after the last step. It is null in all other turns, because there it is the observation of the next turn.
   */
  readonly seen: string | null
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  readonly info: unknown
  readonly failed: string | null
  /** The credit of this turn (its reward in a training), from the run's samples; null if no sample has one. */
  readonly credit: number | null
  /** A factor by which a training multiplies the credit, from the run's samples. */
  readonly weight: number | null
  /** The answer, from the scores of a multi-run trainer, if it could not be converted to an action; null for other turns. */
  readonly said: string | null
  /** The advantage of the turn's answer, from the scores of a multi-run trainer; null if they contain none. */
  readonly advantage: number | null
}

/** The credit of a rollout (the reward that a training uses for it), computed in several ways. */
interface Credits {
  /** The rollout's own reward. */
  readonly own: number
  /** The reward of the rollout at the root of the tree of delegated rollouts. */
  readonly parents: number
  /** The mean of the rollout's own reward and its parent's mixed credit; for a root, its own reward. */
  readonly mixed: number
  /** The credit of the rollout's first turn in the run's samples; null if no sample has one. */
  readonly sampled: number | null
}

/** A rollout of an agent in the episode, with the rollouts that it delegated (in the `children` of its calls). */
export interface PlayedRollout {
  readonly id: string
  /** The name with which the agent was called; if the rollout was not delegated, the type of the agent. */
  readonly name: string
  readonly depth: number
  readonly player: string | null
  readonly model: string | null
  readonly return: number
  readonly length: number
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  readonly credits: Credits
  readonly turns: ReadonlyArray<TranscriptTurn>
}

export interface Transcript {
  readonly episode: ListedEpisode
  readonly envType: string
  readonly seeds: { readonly env: number; readonly sampling: number } | null
  readonly tags: Readonly<Record<string, string>>
  /** The usage of the episode's rollout and of all rollouts that it delegated. */
  readonly usage: Usage & { readonly calls: number }
  readonly played: PlayedRollout
  /**
   * The largest absolute advantage of a token in the episode, or of an episode in the run; null if there are no advantages.
   */
  readonly largest: number | null
  /**
   * The source of the advantages: `tokens` if the samples have an advantage per token, `credit` if an advantage is credit ×
   * weight, and `episode` if whole answers have one. Null if there are no advantages.
   */
  readonly advantages: "tokens" | "credit" | "episode" | null
  /** A hint for the user about how to see more; null if everything is shown. */
  readonly hint: string | null
}
