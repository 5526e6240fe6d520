/** Defines what an agent with code of its own gets, its task, and what it returns, its answer. */
import { Effect, Schema } from "effect"
import { display } from "../../../base/config/Config.ts"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { type Completion, noTokens, type ToolCall, type ToolSpec } from "../../lm/Chat.ts"
import type { ToolResult } from "../Agent.ts"
import { AgentError } from "../AgentError.ts"

/** An observation to which an agent answers, with what came before it in the episode. */
export interface OutsideTask {
  /** The observation; of a question, the question itself. */
  readonly text: string
  /** The earlier turns of the episode. Only an agent in training sees the feedback. */
  readonly turns: ReadonlyArray<{
    readonly observation: string
    readonly action: string
    readonly feedback: string | null
  }>
  /** The tools of the task, which the agent may call with `call`. */
  readonly tools: ReadonlyArray<ToolSpec>
  /** The results of the tools that the agent has called for this observation. */
  readonly toolResults: ReadonlyArray<ToolResult>
  /** The agent's earlier answers to this observation, which could not be used, with what was wrong with them. */
  readonly refused: ReadonlyArray<{ readonly answer: string; readonly feedback: string }>
}

/** A call of a tool in an answer, by the names of this library or of the AI SDK. */
const CalledTool = Schema.Struct({
  name: Schema.optional(Schema.String),
  toolName: Schema.optional(Schema.String),
  arguments: Schema.optional(Schema.Unknown),
  input: Schema.optional(Schema.Unknown),
  /** The result, which transcripts show. */
  result: Schema.optional(Schema.Unknown),
})

/** A number of tokens; undefined and null mean that it is not known. */
const count = Schema.optional(Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))))

const Answer = Schema.Struct({
  /** The action; for a question, the answer. */
  text: Schema.optional(Schema.NullOr(Schema.String)),
  /** The tokens that the agent has used, if its calls of a model do not pass through the run. */
  usage: Schema.optional(
    Schema.NullOr(Schema.Struct({ inputTokens: count, outputTokens: count, reasoningTokens: count })),
  ),
  /** The tools that the agent has called itself, for the transcript. */
  toolCalls: Schema.optional(Schema.NullOr(Schema.Array(CalledTool))),
  /** Tools of the task to call, in place of a text. The agent is asked again with their results. */
  call: Schema.optional(Schema.NullOr(Schema.Array(CalledTool))),
})

/** The keys of an answer. Only these are read, so that an answer may be any object that has them. */
const keys = Object.keys(Answer.fields)

/** The answer of an agent with code of its own, decoded. */
export interface OutsideAnswer {
  readonly text: string
  readonly usage: Completion["usage"]
  readonly toolCalls: ReadonlyArray<ToolCall>
  /** The results of `toolCalls`. */
  readonly toolResults: ReadonlyArray<ToolResult>
  /** The calls of the task's tools; empty if the agent acts. */
  readonly call: ReadonlyArray<ToolCall>
}

/** The largest number of characters of an answer. */
const mostCharacters = 2 ** 24

const decode = Schema.decodeUnknownEffect(Answer)

const expected = "expected the answer as a text, or an object with text"

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const callsOf = (calls: ReadonlyArray<typeof CalledTool.Type> | null | undefined, prefix: string) =>
  (calls ?? []).map(({ name, toolName, arguments: given, input }, at): ToolCall => ({
    id: `${prefix}_${at}`,
    name: name ?? toolName ?? "",
    arguments: textOf(given ?? input ?? {}),
  }))

/** Copies the keys of an answer from an object, whose properties may be inherited or computed. */
const picked = (value: object): object => Object.fromEntries(keys.map((key) => [key, Reflect.get(value, key)]))

/** Describes something that an agent's code threw, which may be anything: its message in one line, and its stack. */
export const describe = (thrown: unknown): { readonly reason: string; readonly userStack?: string } => {
  const reasonOf = (value: unknown): string => (typeof value === "string" ? oneLine(value) : display(value))
  try {
    if (!(thrown instanceof Error)) return { reason: reasonOf(thrown) }
    const { message, stack }: { readonly message: unknown; readonly stack?: unknown } = thrown
    return { reason: reasonOf(message), ...(typeof stack === "string" ? { userStack: stack } : {}) }
  } catch {
    return { reason: "what it threw cannot be read" }
  }
}

const refusal = (agent: string, problem: string) => new AgentError({ agent, message: `${agent}: ${problem}` })

/**
 * Reads what an agent returned. Fails if it is not an answer, or cannot be read: if a property throws, for example, or JSON
 * cannot hold an argument of a tool.
 */
export const answerOf = (agent: string, returned: unknown): Effect.Effect<OutsideAnswer, AgentError> =>
  Effect.catchDefect(readAnswer(agent, returned), (defect) =>
    refusal(agent, `its answer cannot be read: ${describe(defect).reason}`),
  )

const readAnswer = Effect.fnUntraced(function* (
  agent: string,
  returned: unknown,
): Effect.fn.Return<OutsideAnswer, AgentError> {
  const refuse = (problem: string) => refusal(agent, problem)
  const isObject = typeof returned === "object" && returned !== null
  const value = isObject ? picked(returned) : { text: typeof returned === "number" ? String(returned) : returned }
  const { text, usage, toolCalls, call } = yield* Effect.mapError(decode(value), (error) =>
    refuse(`${expected}, found ${display(returned)}: ${oneLine(messageOf(error))}`),
  )
  const wanted = callsOf(call, "call")
  if (wanted.some(({ name }) => name === "")) return yield* refuse("call: expected the name of a tool in each item")
  if (typeof text !== "string" && wanted.length === 0) return yield* refuse(`${expected}, found ${display(returned)}`)
  const own = callsOf(toolCalls, "own")
  const characters = [text ?? "", ...own.map((one) => one.arguments), ...wanted.map((one) => one.arguments)]
  const length = characters.reduce((sum, one) => sum + one.length, 0)
  if (length > mostCharacters)
    return yield* refuse(`expected an answer of at most ${mostCharacters} characters, found ${length}`)
  return {
    text: text ?? "",
    usage: {
      inputTokens: usage?.inputTokens ?? noTokens.inputTokens,
      outputTokens: usage?.outputTokens ?? noTokens.outputTokens,
      reasoningTokens: usage?.reasoningTokens ?? noTokens.reasoningTokens,
    },
    toolCalls: own,
    toolResults: own.flatMap(({ id, name }, at) => {
      const result = toolCalls?.[at].result
      return result === undefined ? [] : [{ toolCallId: id, toolName: name, content: textOf(result), isError: false }]
    }),
    call: wanted,
  }
})
