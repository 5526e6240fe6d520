import { Effect } from "effect"
import { type Agent, type AgentFailure, type ModelCall, type AgentInput } from "../../agent/Agent.ts"
import { defaultPenalty } from "../../agent/Parser.ts"
import type { EnvError } from "../../env/EnvError.ts"
import { CallContext } from "../../lm/Lm.ts"
import { ProtocolError } from "../ProtocolError.ts"
import type { Recording } from "./recording.ts"
import { type Ending, goesOn, terminated, truncatedBy } from "../Rollout.ts"
import { answers, noCallsLeft, refused, type Toolbox, toolDefaults, tooManyRounds } from "./tools.ts"

/** What came of a turn: something to do, or what is shown next without anything done. */
export type TurnResult =
  | {
      readonly _tag: "Act"
      readonly turnId: string
      readonly agentStepIds: ReadonlyArray<string>
      readonly action: string
      readonly reward: number
    }
  | { readonly _tag: "Failed"; readonly shown: AgentInput; readonly ending: Ending }

export interface TurnOptions {
  readonly recording: Recording
  readonly tools: Toolbox
  /** If it fails, the episode ends by it. */
  readonly stopOnParseError: boolean
  /** There is no step after it. */
  readonly isLast: boolean
  /** Of the model, in the whole episode. What is asked for beyond them isn't answered. */
  readonly maxCalls: number
  readonly context: CallContext
}

/** Asks an agent until it acts or fails to, answers its calls of tools, and records every call of the model. */
export const turn = Effect.fnUntraced(function* (
  agent: Agent,
  first: AgentInput,
  { recording, tools, stopOnParseError, isLast, maxCalls, context }: TurnOptions,
): Effect.fn.Return<TurnResult, AgentFailure | EnvError | ProtocolError> {
  const turnId = recording.beginTurn()
  const agentStepIds: Array<string> = []
  const maxToolRounds = tools.options.maxToolRounds ?? toolDefaults.maxToolRounds
  const wrong = (what: string) =>
    new ProtocolError({ protocol: tools.protocol, rollout: recording.id, message: `${turnId}: ${what}` })

  let shown = first
  for (let rounds = 0; ; rounds++) {
    const { calls, outcome } = yield* Effect.provideService(agent.act(shown), CallContext, context)
    for (let at = 0; at < calls.length - 1; at++) {
      agentStepIds.push((yield* recording.call({ turnId, call: calls[at] })).id)
    }
    const last = calls.at(-1)
    const isSpent = recording.calls() + (last === undefined ? 0 : 1) >= maxCalls
    const failedBy: Ending = stopOnParseError ? terminated : isLast || isSpent ? truncatedBy("max_steps") : goesOn
    const record = Effect.fnUntraced(function* (about: Partial<Parameters<Recording["call"]>[0]>) {
      if (last !== undefined) agentStepIds.push((yield* recording.call({ turnId, call: last, ...about })).id)
    })

    if (outcome._tag === "CallTools") {
      const { toolCalls } = outcome
      if (rounds === maxToolRounds || isSpent) {
        const results = refused(toolCalls, isSpent ? noCallsLeft : tooManyRounds(rounds))
        if (last === undefined) return yield* wrong("the agent calls tools for ever, without asking a model")
        yield* record({ toolResults: results, reward: defaultPenalty, ending: failedBy })
        return { _tag: "Failed", shown: { _tag: "ToolResults", results }, ending: failedBy }
      }
      const stepId = last === undefined ? null : recording.nextId()
      const results = yield* answers(tools, toolCalls, { rolloutId: recording.id, turnId, stepId })
      yield* record({ toolResults: results })
      shown = { _tag: "ToolResults", results }
      continue
    }

    const { reward } = outcome
    if (!Number.isFinite(reward)) {
      return yield* wrong(`the agent's parser gave the reward ${reward}; expected a finite number`)
    }
    if (outcome._tag === "NoAction") {
      if (last === undefined) return yield* wrong("the agent asked no model, and has no action")
      yield* record({ reward, ending: failedBy })
      return { _tag: "Failed", shown: { _tag: "Observation", text: outcome.feedback }, ending: failedBy }
    }
    yield* record({})
    return { _tag: "Act", turnId, agentStepIds, action: outcome.action, reward }
  }
})

/** Lets an agent look back when all is over. */
export const lookBack = Effect.fnUntraced(function* (agent: Agent, recording: Recording, context: CallContext) {
  const calls: ReadonlyArray<ModelCall> = yield* Effect.provideService(agent.endEpisode, CallContext, {
    ...context,
    purpose: "reflection",
  })
  if (calls.length === 0) return
  const turnId = recording.beginTurn()
  for (const call of calls) yield* recording.call({ turnId, call })
})
