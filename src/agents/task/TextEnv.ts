/**
 * Defines tasks in words: observations and actions are text, and every step gives feedback. `make` makes an env from
 * functions (its rules), and checks what they return.
 *
 * @example
 * ```ts
 * const guess = TextEnv.make({
 *   id: "guess-7",
 *   type: "guess",
 *   begin: () => ({ state: 0, observation: "I think of a digit." }),
 *   step: (tries, action) => {
 *     const right = action.trim() === "7"
 *     return {
 *       state: tries + 1,
 *       observation: right ? null : "No. Try again.",
 *       feedback: { score: right ? 1 : 0, target: "7", message: right ? "Correct." : "Incorrect." },
 *       terminated: right,
 *     }
 *   },
 * })
 * ```
 */
import { Effect, type Scope } from "effect"
import type { ChatAnswer, ToolCall, ToolSpec } from "../lm/Chat.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { EnvError } from "../../base/EnvError.ts"
import { expectedReward, type Feedback, type FeedbackInput, isReward, readFeedback } from "./Feedback.ts"
import { guardOf, headOf, lifeOf, notJson, type OrEffect } from "./guard.ts"
import type { MultiTextEnv } from "./MultiTextEnv.ts"

export interface TextStep {
  /** The next observation; null if there is none. */
  readonly observation: string | null
  readonly feedback: Feedback
  /** Whether the task has ended. */
  readonly terminated: boolean
  /** Whether the env itself cut the episode off; false by default. */
  readonly truncated?: boolean
  readonly info?: Readonly<Record<string, unknown>>
}

/** The result of a tool call. A failure is a result too, which the model sees. */
export interface CallResult {
  readonly content: string
  readonly isError?: boolean
}

/** An episode in progress. It has its own state, so several episodes of an env can run at the same time. */
export interface TextEpisode {
  readonly observation: string
  readonly step: (action: string) => Effect.Effect<TextStep, EnvError>
  /** Calls one of the env's tools, which is not a step and isn't scored. An unknown tool gives an error result. */
  readonly call: (call: ToolCall) => Effect.Effect<CallResult, EnvError>
}

/** A task in words: it begins episodes whose observations and actions are texts. */
export interface TextEnv {
  readonly id: string
  readonly type: string
  readonly metadata: Readonly<Record<string, unknown>>
  /**
   * Identifies the content of a question that has no id of its own, so that its `id` is only its position in the data set.
   */
  readonly content?: string
  /** The number of steps after which episodes are truncated, unless the caller sets a lower limit. */
  readonly maxSteps?: number
  /** The tools that can be called between steps; none by default. */
  readonly tools?: ReadonlyArray<ToolSpec>
  /** The right answer, if the task is a question; the first one if there are several. */
  readonly target?: string
  /**
   * Returns the next move of a good player, an action or the call of a tool, for agents that learn by imitation. `seen` is
   * the last observation or result of a tool, and `made` the number of moves so far. Not every task has this function.
   */
  readonly demonstrate?: (seen: string, random: Stream, made: number) => ChatAnswer
  /**
   * The game for several players, if the task is one player's part of it. It lets agents play the game against each other.
   */
  readonly game?: MultiTextEnv
  /**
   * Begins an episode. The stream is its only randomness: the same stream and actions give the same episode. The scope lasts
   * as long as the episode: when it closes, the episode frees its resources, such as a process.
   */
  readonly begin: (random: Stream) => Effect.Effect<TextEpisode, EnvError, Scope.Scope>
}

/** The step that an env's author returns. Its feedback may have an older form, `{ correct }` or `{ is_correct }`. */
export interface StepInput extends Omit<TextStep, "feedback"> {
  readonly feedback: FeedbackInput
}

export interface TextRules<State> extends Omit<TextEnv, "metadata" | "begin">, Partial<Pick<TextEnv, "metadata">> {
  readonly begin: (random: Stream) => OrEffect<{ readonly state: State; readonly observation: string }, Scope.Scope>
  /** Takes an action. `random` is the random stream of this step. */
  readonly step: (state: State, action: string, random: Stream) => OrEffect<StepInput & { readonly state: State }>
  /** Answers the call of a tool; required if there are tools. `random` is the random stream of this call. */
  readonly call?: (state: State, call: ToolCall, random: Stream) => OrEffect<CallResult & { readonly state: State }>
}

/** Makes an env from its rules, functions from state to state. If a rule throws, the Effect fails with `EnvError`. */
export const make = <State>(rules: TextRules<State>): TextEnv => {
  const { id, type, tools = [], call: answer } = rules
  const guard = guardOf(id)

  const episode = (first: State, observation: string, random: Stream): TextEpisode => {
    const life = lifeOf(guard, tools, first, random)
    return {
      observation,
      step: (action) =>
        life.step(
          (state, chance) => rules.step(state, action, chance),
          (result, number) =>
            Effect.flatMap(readFeedback(type, result.feedback), (feedback) => {
              const { score, extra } = feedback
              const wrong = isReward(score)
                ? notJson([result.info, extra], number)
                : `gave the score ${score} at step ${number}; expected ${expectedReward(score)}`
              if (wrong !== undefined) return Effect.fail(guard.wrong(number, wrong))
              const { state: _, ...step } = result
              return Effect.succeed({ ...step, feedback })
            }),
        ),
      call: (call) => life.call(call, answer && ((state, chance) => answer(state, call, chance))),
    }
  }

  return {
    ...headOf(rules),
    begin: (random) =>
      Effect.map(
        guard.run(0, "its beginning", () => rules.begin(random.child("begin"))),
        ({ state, observation }) => episode(state, observation, random),
      ),
  }
}
