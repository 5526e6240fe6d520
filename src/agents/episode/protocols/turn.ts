/** Plays one turn of an agent, from an observation to an action, and its reflection. The protocols use it. */
import { Effect } from "effect"
import { type Agent, type AgentFailure, type ModelCall, type AgentInput } from "../../agent/Agent.ts"
import { defaultPenalty } from "../../agent/Parser.ts"
import type { EnvError } from "../../../base/EnvError.ts"
import { CallContext } from "../../lm/Lm.ts"
import { expectedReward, isReward } from "../../task/Feedback.ts"
import type { TextStep } from "../../task/TextEnv.ts"
import { ProtocolError } from "../ProtocolError.ts"
import type { EpisodeRecording, TakenAction } from "./recording.ts"
import { type RolloutEnding, notEnded, terminated, truncatedBy } from "../Rollout.ts"
import { answers, noCallsLeft, refused, type Toolbox, toolDefaults, tooManyRounds } from "./tools.ts"

/** The result of a turn: an action. If there was none, the agent's next input, and whether the episode ends. */
export type TurnResult =
  | (TakenAction & { readonly _tag: "Act" })
  | { readonly _tag: "Failed"; readonly input: AgentInput; readonly ending: RolloutEnding }

interface TurnOptions {
  readonly recording: EpisodeRecording
  readonly tools: Toolbox
  /** Whether an answer that cannot be parsed ends the episode. */
  readonly stopOnParseError: boolean
  /** Whether this turn is the last one that `maxSteps` allows. */
  readonly isLast: boolean
  /** The largest number of calls of the model in the whole episode. Tool calls in the last one are refused. */
  readonly maxCalls: number
  /** Whether the episode ends, truncated, if a prompt after the agent's first one is too long for the model. */
  readonly endsIfPromptTooLong: boolean
  readonly context: CallContext
}

const isPromptTooLong = (error: AgentFailure | EnvError | ProtocolError): boolean =>
  error._tag === "LmError" && error.promptTooLong === true

/** Calls the agent, and answers its tool calls, until it acts or fails to act. Records its calls of the model. */
export const turn = (agent: Agent, input: AgentInput, options: TurnOptions) =>
  Effect.catchIf(
    turnToEnd(agent, input, options),
    (error) => options.endsIfPromptTooLong && isPromptTooLong(error) && options.recording.calls() > 0,
    (): Effect.Effect<TurnResult> => {
      const ending = truncatedBy("max_seq_len")
      options.recording.endLastStep(ending)
      return Effect.succeed({ _tag: "Failed", input, ending })
    },
  )

const turnToEnd = Effect.fnUntraced(function* (
  agent: Agent,
  first: AgentInput,
  { recording, tools, stopOnParseError, isLast, maxCalls, context }: TurnOptions,
): Effect.fn.Return<TurnResult, AgentFailure | EnvError | ProtocolError> {
  const turnId = recording.beginTurn()
  const agentStepIds: Array<string> = []
  const maxToolRounds = tools.options.maxToolRounds ?? toolDefaults.maxToolRounds
  const wrong = (problem: string) =>
    new ProtocolError({ protocol: tools.protocol, rollout: recording.id, message: `${turnId}: ${problem}` })

  let input = first
  for (let rounds = 0; ; rounds++) {
    const { calls, outcome } = yield* Effect.provideService(agent.act(input), CallContext, context)
    for (let at = 0; at < calls.length - 1; at++) {
      agentStepIds.push((yield* recording.call({ turnId, call: calls[at] })).id)
    }
    const last = calls.at(-1)
    // The last call is recorded below, so it is not in `recording.calls()` yet.
    const isSpent = recording.calls() + (last === undefined ? 0 : 1) >= maxCalls
    const failureEnding: RolloutEnding = stopOnParseError
      ? terminated
      : isLast || isSpent
        ? truncatedBy("max_steps")
        : notEnded
    const record = Effect.fnUntraced(function* (details: Partial<Parameters<EpisodeRecording["call"]>[0]>) {
      if (last !== undefined) agentStepIds.push((yield* recording.call({ turnId, call: last, ...details })).id)
    })

    if (outcome._tag === "CallTools") {
      const { toolCalls } = outcome
      if (rounds === maxToolRounds || isSpent) {
        const results = refused(toolCalls, isSpent ? noCallsLeft : tooManyRounds(rounds))
        if (last === undefined) return yield* wrong("the agent calls tools endlessly, without calling a model")
        yield* record({ toolResults: results, reward: defaultPenalty, ending: failureEnding })
        return { _tag: "Failed", input: { _tag: "ToolResults", results }, ending: failureEnding }
      }
      const stepId = last === undefined ? null : recording.nextId()
      const results = yield* answers(tools, toolCalls, { rolloutId: recording.id, turnId, stepId })
      yield* record({ toolResults: results })
      input = { _tag: "ToolResults", results }
      continue
    }

    const { reward } = outcome
    if (!isReward(reward)) {
      return yield* wrong(`the agent's parser gave the reward ${reward}; expected ${expectedReward(reward)}`)
    }
    if (outcome._tag === "NoAction") {
      if (last === undefined) return yield* wrong("the agent called no model and gave no action; expected an action")
      yield* record({ reward, ending: failureEnding })
      return { _tag: "Failed", input: { _tag: "Observation", text: outcome.feedback }, ending: failureEnding }
    }
    yield* record({})
    return { _tag: "Act", turnId, agentStepIds, action: outcome.action, reward }
  }
})

/** Passes the result of an action to the agent. Only an agent in training gets the feedback. */
export const observe = (
  agent: Agent,
  action: string,
  { observation, feedback }: TextStep,
  { terminated, truncated }: RolloutEnding,
  context: CallContext,
): Effect.Effect<void, AgentFailure> =>
  agent
    .observe({ action, observation, feedback: agent.training ? feedback : null, done: terminated || truncated })
    .pipe(Effect.provideService(CallContext, context))

/** Makes a clone of an agent to play one episode. It shares the agent's memory, but not its short-term state. */
export const cloneOf = (agent: Agent): Effect.Effect<Agent> =>
  agent.cloneForEpisode({ training: agent.training, shareMemory: true })

/** Ends the episode for an agent, which may reflect on it. Its calls of the model, if any, are recorded as a turn. */
export const reflect = Effect.fnUntraced(function* (agent: Agent, recording: EpisodeRecording, context: CallContext) {
  const calls: ReadonlyArray<ModelCall> = yield* Effect.provideService(agent.endEpisode, CallContext, {
    ...context,
    purpose: "reflection",
  })
  if (calls.length === 0) return
  const turnId = recording.beginTurn()
  for (const call of calls) yield* recording.call({ turnId, call })
})
