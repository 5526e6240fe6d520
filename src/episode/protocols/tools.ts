/** Who answers the calls of tools that aren't an agent's own: handlers by name, and the env for the others. */
import { Cause, Duration, Effect } from "effect"
import type { AgentInput, ToolResult } from "../../agent/Agent.ts"
import { messageOf } from "../../config/text.ts"
import type { EnvError } from "../../env/EnvError.ts"
import type { CallResult, TextEpisode } from "../../task/TextEnv.ts"
import type { ToolCall, ToolSpec } from "../../lm/Chat.ts"
import { ProtocolError } from "../ProtocolError.ts"

/** Where a call comes from. */
export interface CallSite {
  readonly rolloutId: string
  readonly turnId: string
  /** The agent's step that the call is in; null for an agent that asks no model. */
  readonly stepId: string | null
}

/** A failure is a result that the model sees, by its message; what is thrown fails the episode, and no other one. */
export type ToolHandler = (call: ToolCall, from: CallSite) => Effect.Effect<CallResult, { readonly message: string }>

export interface ToolOptions {
  /** What agents are told that `handlers` answer; of the env's own tools they are told anyway. */
  readonly tools?: ReadonlyArray<ToolSpec>
  /** By the tool's name. Calls of others go to the env, if it has tools. */
  readonly handlers?: Readonly<Record<string, ToolHandler>>
  /** How often in a turn tools are answered; what is called then isn't, and the turn is a failed one. */
  readonly maxToolRounds?: number
  /** After that long a call's result says that there was no answer. */
  readonly toolTimeout?: Duration.Input
  /** How many of the calls of one completion are answered at a time; more than one only where no tool minds. */
  readonly toolConcurrency?: number
}

export const toolDefaults = { maxToolRounds: 16, toolTimeout: "60 seconds", toolConcurrency: 1 } as const

/** What an agent can call, as far as a protocol knows. */
export interface Toolbox {
  readonly protocol: string
  readonly options: ToolOptions
  /** Null where the env has no tools. */
  readonly env: Pick<TextEpisode, "call"> | null
}

const resultOf = (call: ToolCall, { content, isError = false }: CallResult): ToolResult => ({
  toolCallId: call.id,
  toolName: call.name,
  content,
  isError,
})

/** Instead of an answer. */
export const refused = (calls: ReadonlyArray<ToolCall>, why: string): ReadonlyArray<ToolResult> =>
  calls.map((call) => resultOf(call, { content: `Not called: ${why}`, isError: true }))

export const tooManyRounds = (rounds: number): string =>
  `tools were called ${rounds === 1 ? "once" : `${rounds} times`} already in this turn. Answer now.`

export const noCallsLeft = "the model may be asked no more, so nobody would see the answer."

/** All that an agent may call outside: the env's tools and those with handlers. */
export const offered = (
  { tools: own = [] }: { readonly tools?: ReadonlyArray<ToolSpec> },
  { tools = [] }: ToolOptions,
): ReadonlyArray<ToolSpec> => [...own, ...tools]

/** The first thing that an agent is shown, with what it may call. */
export const opening = (text: string, tools: ReadonlyArray<ToolSpec>): AgentInput =>
  tools.length === 0 ? { _tag: "Observation", text } : { _tag: "Observation", text, tools }

export const answers = (
  { protocol, options, env }: Toolbox,
  calls: ReadonlyArray<ToolCall>,
  from: CallSite,
): Effect.Effect<ReadonlyArray<ToolResult>, EnvError | ProtocolError> => {
  const { handlers = {}, toolTimeout, toolConcurrency } = { ...toolDefaults, ...options }
  const names = Object.keys(handlers)
  const answer = (call: ToolCall): Effect.Effect<CallResult, EnvError | ProtocolError> => {
    const handler = Object.hasOwn(handlers, call.name) ? handlers[call.name] : undefined
    if (handler !== undefined) {
      const broken = (problem: string, stack?: string) =>
        new ProtocolError({
          protocol,
          rollout: from.rolloutId,
          message: `${from.turnId}: the handler of the tool "${call.name}" ${problem}; expected a result, or a failure with a message`,
          ...(stack === undefined ? {} : { userStack: stack }),
        })
      return Effect.suspend(() => handler(call, from)).pipe(
        Effect.catch(({ message }) => Effect.succeed({ content: message, isError: true })),
        Effect.catchDefect((defect) =>
          Effect.fail(broken(`threw: ${messageOf(defect)}`, defect instanceof Error ? defect.stack : undefined)),
        ),
        // It interrupted itself: an interruption from outside isn't caught here.
        Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(broken("was interrupted"))),
      )
    }
    if (env !== null) return env.call(call)
    if (names.length === 0) {
      const message = `${from.turnId}: the agent calls the tool "${call.name}", and nobody answers: its env has no tools, and there are no handlers`
      return Effect.fail(new ProtocolError({ protocol, rollout: from.rolloutId, message }))
    }
    return Effect.succeed({
      content: `There is no tool "${call.name}"; there are ${names.join(", ")}.`,
      isError: true,
    })
  }
  const late = (name: string): CallResult => ({
    content: `The tool "${name}" gave no answer within ${Duration.format(Duration.fromInputUnsafe(toolTimeout))}.`,
    isError: true,
  })
  return Effect.forEach(
    calls,
    (call) =>
      answer(call).pipe(
        Effect.timeoutOrElse({ duration: toolTimeout, orElse: () => Effect.succeed(late(call.name)) }),
        Effect.map((result) => resultOf(call, result)),
      ),
    { concurrency: toolConcurrency },
  )
}
