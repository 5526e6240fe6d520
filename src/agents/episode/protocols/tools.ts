/**
 * Answers calls of external tools, which an agent does not run itself: with the user's functions (handlers), otherwise with
 * the env. The protocols use it.
 */
import { Cause, Duration, Effect } from "effect"
import type { AgentInput, ToolResult } from "../../agent/Agent.ts"
import { messageOf } from "../../../base/text/text.ts"
import type { EnvError } from "../../../base/EnvError.ts"
import type { CallResult, TextEpisode } from "../../task/TextEnv.ts"
import type { ToolCall, ToolSpec } from "../../lm/Chat.ts"
import { inToolSpan } from "../../lm/genAi.ts"
import { ProtocolError } from "../ProtocolError.ts"

/** Identifies the step in which a tool is called. */
export interface CallSite {
  readonly rolloutId: string
  readonly turnId: string
  /** The id of the agent step in which the call was made; null for an agent without a model. */
  readonly stepId: string | null
}

/** Answers a call of a tool. If it fails, the model gets the message as the result; if it throws, the episode fails. */
export type ToolHandler = (call: ToolCall, caller: CallSite) => Effect.Effect<CallResult, { readonly message: string }>

export interface ToolOptions {
  /** The descriptions of the tools that `handlers` answer. Agents always get the descriptions of the env's tools. */
  readonly tools?: ReadonlyArray<ToolSpec>
  /** The handlers by the names of the tools. Calls of other tools go to the env, if it has tools. */
  readonly handlers?: Readonly<Record<string, ToolHandler>>
  /**
   * The number of times in one turn that tool calls are answered, 16 by default. After that, the turn ends without an action.
   */
  readonly maxToolRounds?: number
  /** The time limit of a call, 60 seconds by default. After this time, the model gets the result that there was no answer. */
  readonly toolTimeout?: Duration.Input
  /** The number of calls of one completion that are answered at the same time, 1 by default. */
  readonly toolConcurrency?: number
}

export const toolDefaults = { maxToolRounds: 16, toolTimeout: "60 seconds", toolConcurrency: 1 } as const

/** The external tools of an episode. */
export interface Toolbox {
  readonly protocol: string
  readonly options: ToolOptions
  /** The env's function that answers calls of its tools; null if it has no tools. */
  readonly env: Pick<TextEpisode, "call"> | null
}

const resultOf = (call: ToolCall, { content, isError = false }: CallResult): ToolResult => ({
  toolCallId: call.id,
  toolName: call.name,
  content,
  isError,
})

const errorOf = (content: string): Effect.Effect<CallResult> => Effect.succeed({ content, isError: true })

/** Makes the results of calls that are not carried out: each result tells the model the `reason`. */
export const refused = (calls: ReadonlyArray<ToolCall>, reason: string): ReadonlyArray<ToolResult> =>
  calls.map((call) => resultOf(call, { content: `Not called: ${reason}`, isError: true }))

export const tooManyRounds = (rounds: number): string =>
  `tools were called ${rounds === 1 ? "once" : `${rounds} times`} already in this turn. Answer now.`

export const noCallsLeft = "the model may be asked no more, so nobody would see the answer."

/** Returns the descriptions of all external tools: the env's tools, and the tools with handlers. */
export const externalTools = (
  env: Pick<ToolOptions, "tools">,
  { tools = [] }: ToolOptions,
): ReadonlyArray<ToolSpec> => [...(env.tools ?? []), ...tools]

/** Makes the first input of an agent: the observation and the external tools. */
export const firstInput = (text: string, tools: ReadonlyArray<ToolSpec>): AgentInput =>
  tools.length === 0 ? { _tag: "Observation", text } : { _tag: "Observation", text, tools }

/** Answers calls of tools, and returns the results in the same order. Fails if there are no tools, or if a handler throws. */
export const answers = (
  { protocol, options, env }: Toolbox,
  calls: ReadonlyArray<ToolCall>,
  caller: CallSite,
): Effect.Effect<ReadonlyArray<ToolResult>, EnvError | ProtocolError> => {
  const { handlers = {}, toolTimeout, toolConcurrency } = { ...toolDefaults, ...options }
  const names = Object.keys(handlers)
  const answer = (call: ToolCall): Effect.Effect<CallResult, EnvError | ProtocolError> => {
    const handler = Object.hasOwn(handlers, call.name) ? handlers[call.name] : undefined
    const wrong = (problem: string, stack?: string) =>
      Effect.fail(
        new ProtocolError({
          protocol,
          rollout: caller.rolloutId,
          message: `${caller.turnId}: ${problem}`,
          ...(stack === undefined ? {} : { userStack: stack }),
        }),
      )
    if (handler !== undefined) {
      const broken = (problem: string, stack?: string) => {
        const expected = "expected a result, or a failure with a message"
        return wrong(`the handler of the tool "${call.name}" ${problem}; ${expected}`, stack)
      }
      return Effect.suspend(() => handler(call, caller)).pipe(
        Effect.catch(({ message }) => errorOf(message)),
        Effect.catchDefect((defect) =>
          broken(`threw: ${messageOf(defect)}`, defect instanceof Error ? defect.stack : undefined),
        ),
        // Only a handler that interrupts itself gets here: if the episode is interrupted, this code is, too.
        Effect.catchCauseIf(Cause.hasInterruptsOnly, () => broken("was interrupted")),
      )
    }
    if (env !== null) return env.call(call)
    return names.length === 0
      ? wrong(`nothing answers the call of the tool "${call.name}": the env has no tools, and there are no handlers`)
      : errorOf(`There is no tool "${call.name}"; there are ${names.join(", ")}.`)
  }
  const limit = Duration.format(Duration.fromInputUnsafe(toolTimeout))
  const answerInTime = (call: ToolCall) => {
    const orElse = () => errorOf(`The tool "${call.name}" gave no answer within ${limit}.`)
    const inTime = Effect.timeoutOrElse(answer(call), { duration: toolTimeout, orElse })
    return Effect.map(inToolSpan(call, inTime), (result) => resultOf(call, result))
  }
  return Effect.forEach(calls, answerInTime, { concurrency: toolConcurrency })
}
