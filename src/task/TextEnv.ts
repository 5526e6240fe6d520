/**
 * A task in words: what is seen is text, what is done is text, and every step is told how good it was.
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
import { Effect } from "effect"
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import type { Stream } from "../rng/Rng.ts"
import type { EnvError } from "../env/EnvError.ts"
import { type Feedback, type FeedbackInput, readFeedback } from "./Feedback.ts"
import { guardOf, noTool, type OrEffect, unkeepable } from "./guard.ts"

/** What a step led to. */
export interface TextStep {
  /** What is seen next; null where there is nothing more to see. */
  readonly observation: string | null
  readonly feedback: Feedback
  /** The task came to its end. */
  readonly terminated: boolean
  /** The env cut the episode off by itself. */
  readonly truncated?: boolean
  readonly info?: Readonly<Record<string, unknown>>
}

/** What a call of one of the env's tools gave. A failure is a result that the model sees. */
export interface CallResult {
  readonly content: string
  readonly isError?: boolean
}

/** One episode in progress. Its state is its own: others of the same env may go on at the same time. */
export interface TextEpisode {
  readonly observation: string
  readonly step: (action: string) => Effect.Effect<TextStep, EnvError>
  /** Calls one of the env's tools, which is no step: nothing is scored. A call of anything else is an error result. */
  readonly call: (call: ToolCall) => Effect.Effect<CallResult, EnvError>
}

/** One task. */
export interface TextEnv {
  readonly id: string
  readonly type: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** Truncates at this many steps, where no smaller limit is set from outside. */
  readonly maxSteps?: number
  /** What may be called between steps; none unless given. */
  readonly tools?: ReadonlyArray<ToolSpec>
  /** A new episode. The stream is all the chance there is: the same stream and actions are the same episode. */
  readonly begin: (random: Stream) => Effect.Effect<TextEpisode, EnvError>
}

/** What an env's author says of a step: feedback may be of the older form, `{ correct }` or `{ is_correct }`. */
export interface GivenStep extends Omit<TextStep, "feedback"> {
  readonly feedback: FeedbackInput
}

export interface TextRules<State> {
  readonly id: string
  readonly type: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly maxSteps?: number
  readonly tools?: ReadonlyArray<ToolSpec>
  readonly begin: (random: Stream) => OrEffect<{ readonly state: State; readonly observation: string }>
  /** `random` is this step's own. */
  readonly step: (state: State, action: string, random: Stream) => OrEffect<GivenStep & { readonly state: State }>
  /** Where there are tools. `random` is this call's own. */
  readonly call?: (state: State, call: ToolCall, random: Stream) => OrEffect<CallResult & { readonly state: State }>
}

/** An env from its rules: functions from state to state, or Effects of such. What they throw is an `EnvError`. */
export const make = <State>(rules: TextRules<State>): TextEnv => {
  const { id, type, metadata = {}, maxSteps, tools = [] } = rules
  const { wrong, run: guarded } = guardOf(id)

  const episode = (first: State, observation: string, random: Stream): TextEpisode => {
    let state = first
    let steps = 0
    let calls = 0
    let over = false
    return {
      observation,
      step: (action) =>
        Effect.suspend(() => {
          if (over) return Effect.fail(wrong(steps, "was stepped after its episode was over"))
          const number = steps + 1
          const stepped = guarded(number, `step ${number}`, () =>
            rules.step(state, action, random.child("step", number)),
          )
          return Effect.flatMap(stepped, ({ state: next, feedback: given, ...led }) =>
            Effect.flatMap(readFeedback(type, given), (feedback) => {
              const { score } = feedback
              if (!Number.isFinite(score)) {
                return Effect.fail(wrong(number, `gave the score ${score} at step ${number}; expected a finite number`))
              }
              const unfit = unkeepable([led.info, feedback.extra])
              if (unfit !== undefined) {
                return Effect.fail(wrong(number, `gave an info or extra feedback at step ${number}: ${unfit}`))
              }
              state = next
              steps = number
              over = led.terminated || led.truncated === true
              return Effect.succeed({ ...led, feedback })
            }),
          )
        }),
      call: (call) =>
        Effect.suspend(() => {
          if (over) return Effect.fail(wrong(steps, "was called after its episode was over"))
          const { call: answer } = rules
          if (answer === undefined || !tools.some(({ name }) => name === call.name)) {
            return Effect.succeed(noTool(tools, call.name))
          }
          const number = ++calls
          const called = guarded(steps, `call ${number} (of ${call.name})`, () =>
            answer(state, call, random.child("call", number)),
          )
          return Effect.map(called, ({ state: next, ...result }) => {
            state = next
            return result
          })
        }),
    }
  }

  return {
    id,
    type,
    metadata,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(tools.length === 0 ? {} : { tools }),
    begin: (random) =>
      Effect.map(
        guarded(0, "its beginning", () => rules.begin(random.child("begin"))),
        ({ state, observation }) => episode(state, observation, random),
      ),
  }
}
