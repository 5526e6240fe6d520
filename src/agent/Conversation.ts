/**
 * What is said between an agent and its model, in order, and only ever added to: each request holds the one before it,
 * with what was answered. All language-model agents talk through it; they differ in what they say, and in when they
 * begin anew.
 */
import { Effect, Schema } from "effect"
import { display } from "../config/Config.ts"
import { messageOf } from "../config/text.ts"
import { asMessage, type ChatMessage, type Completion, LmRequest, type ToolCall, type ToolSpec } from "../lm/Chat.ts"
import type { LmService } from "../lm/Lm.ts"
import { withheld } from "../lm/LmError.ts"
import type { AgentFailure, ModelCall, ToolResult, Turn } from "./Agent.ts"
import { AgentError } from "./AgentError.ts"
import { defaultPenalty, type Parser, ParseResult, whole } from "./Parser.ts"
import { failed, type Tool } from "./Tool.ts"

/** What every agent that asks a model is told. */
export interface AgentSettings extends Partial<
  Pick<LmRequest, "temperature" | "topP" | "maxOutputTokens" | "stop" | "seed" | "traceTokens">
> {
  readonly model: string
  /** Null: none. */
  readonly systemPrompt?: string | null
  /** How an action is found in what the model says; all of the text, unless given. */
  readonly parser?: Parser
  /** What was cut at its length isn't acted upon; true unless given. */
  readonly rejectIncompleteCompletions?: boolean
}

/** How calls of tools are told apart from all else that is said, and how their results are given. */
export interface ToolForm {
  /** False: the model isn't told of any tools with the request, but by words. */
  readonly native: boolean
  /** `external` are the tools that others than the agent answer. */
  readonly callsIn: (completion: Completion, external: ReadonlyArray<ToolSpec>) => ReadonlyArray<ToolCall>
  /** The words by which the model is told of the tools of others, before what it is shown; none unless given. */
  readonly introduce?: (external: ReadonlyArray<ToolSpec>) => string
  readonly tell: (results: ReadonlyArray<ToolResult>) => ReadonlyArray<ChatMessage>
}

export interface ConversationOptions {
  /** The agent's type. */
  readonly agent: string
  readonly settings: AgentSettings
  readonly lm: LmService
  /** Run by the agent; the model goes on with their results. */
  readonly tools?: ReadonlyArray<Tool>
  /** How often a model is asked for one observation; 1 unless given. */
  readonly maxCalls?: number
  /** In the last call of those, ask for an answer without tools. They stay in the prompt, which only grows. */
  readonly shotClock?: boolean
  /** As servers have it, unless given. */
  readonly form?: ToolForm
}

export interface Conversation {
  /** Nothing has been said. */
  readonly isNew: () => boolean
  /** Forgets all. */
  readonly reset: () => void
  /** Something to see, and what may be called outside. A failure leaves the conversation as it was. */
  readonly say: (text: string, externalTools?: ReadonlyArray<ToolSpec>) => Effect.Effect<Turn, AgentFailure>
  /** The results of the calls that the last turn ended with. */
  readonly answer: (results: ReadonlyArray<ToolResult>) => Effect.Effect<Turn, AgentFailure>
}

/** The request of an agent, without what it says. */
export const requestOf = ({
  model,
  temperature = null,
  topP = null,
  maxOutputTokens = null,
  stop = [],
  seed = null,
  traceTokens = false,
}: AgentSettings): Omit<LmRequest, "messages"> => ({
  ...LmRequest.defaults,
  model,
  temperature,
  topP,
  maxOutputTokens,
  stop,
  seed,
  traceTokens,
})

/** The messages that a conversation begins with. */
export const systemMessages = (prompt: string | null | undefined): ReadonlyArray<ChatMessage> =>
  prompt === null || prompt === undefined || prompt === "" ? [] : [{ role: "system", content: prompt }]

export const incompleteFeedback =
  "Your answer was longer than it may be and was cut off, so it was not acted upon. Answer more briefly."

export const isIncomplete = ({ finishReason }: Completion, settings: AgentSettings): boolean =>
  finishReason === "length" && settings.rejectIncompleteCompletions !== false

const refusal = (feedback: string): ParseResult => ({ _tag: "Failed", feedback, reward: defaultPenalty })

const asToolMessage = ({ toolCallId, toolName, content, isError }: ToolResult): ChatMessage => ({
  role: "tool",
  toolCallId,
  toolName,
  content,
  ...(isError ? { isError } : {}),
})

/** Calls are part of the completion, and results are messages of their own. */
export const nativeTools: ToolForm = {
  native: true,
  callsIn: ({ toolCalls }) => toolCalls,
  tell: (results) => results.map(asToolMessage),
}

const isParseResult = Schema.is(ParseResult)

/** How a turn ends with a completion that is for the env. */
const outcomeOf = (parsed: ParseResult): Turn["outcome"] =>
  parsed._tag === "Parsed"
    ? { _tag: "Act", action: parsed.action, reward: parsed.reward }
    : { _tag: "NoAction", feedback: parsed.feedback, reward: parsed.reward }

export const make = (options: ConversationOptions): Conversation => {
  const { agent, settings, lm, tools = [], maxCalls = 1, shotClock = false, form = nativeTools } = options
  const { parser = whole } = settings
  const base = requestOf(settings)
  const system = systemMessages(settings.systemPrompt)
  const own = new Map(tools.map((tool) => [tool.spec.name, tool]))
  const ownSpecs = form.native ? tools.map(({ spec }) => spec) : []

  let messages: Array<ChatMessage> = [...system]
  /** Tools that others answer. */
  let external: ReadonlyArray<ToolSpec> = []
  /** Calls that somebody outside owes an answer to. */
  let owed: ReadonlyArray<ToolCall> = []
  /** How often the model was asked since it was last shown something. */
  let asked = 0

  const isExternal = ({ name }: ToolCall): boolean => external.some((spec) => spec.name === name)

  const run = (call: ToolCall): Effect.Effect<ToolResult> => {
    const tool = own.get(call.name)
    if (tool !== undefined) return tool.call(call)
    const known = [...new Set([...own.keys(), ...external.map(({ name }) => name)])].join(", ")
    return Effect.succeed(failed(call, `There is no tool "${call.name}"${known === "" ? "" : `; there are ${known}`}.`))
  }

  const read = (text: string): Effect.Effect<ParseResult, AgentError> =>
    Effect.try({
      try: () => parser(text),
      catch: (error) =>
        new AgentError({
          agent,
          message: `${agent}: the parser threw: ${messageOf(error)}; expected an action, or a refusal with feedback`,
          ...(error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {}),
        }),
    }).pipe(
      Effect.filterOrFail(isParseResult, (result) => {
        const message = `${agent}: the parser gave ${display(result)}; expected an action, or a refusal with feedback`
        return new AgentError({ agent, message })
      }),
    )

  const turn = Effect.gen(function* () {
    const calls: Array<ModelCall> = []
    const specs = form.native ? [...ownSpecs, ...external] : []
    while (true) {
      const isLast = asked + 1 >= maxCalls
      const loopIndex = asked
      const prompt = messages.slice()
      const completion = yield* lm.complete({
        ...base,
        messages: prompt,
        tools: specs,
        toolChoice: isLast && shotClock && specs.length > 0 ? "none" : "auto",
      })
      // Our servers fail by it; others, and caches of earlier answers, may not.
      if (completion.finishReason === "content_filter") return yield* withheld(settings.model)
      asked++
      messages.push(asMessage(completion))
      const incomplete = isIncomplete(completion, settings)
      if (completion.finishReason === "length") {
        const limit = base.maxOutputTokens === null ? "" : ` (max_output_tokens: ${base.maxOutputTokens})`
        const so = incomplete ? ", so it isn't acted upon" : ""
        yield* Effect.logWarning(`${settings.model}: an answer was cut off at its length${limit}${so}`)
      }
      const called = (
        about: Pick<ModelCall, "target" | "parsed" | "toolResults">,
        tell: ToolForm["tell"] = form.tell,
      ): void => {
        const told = specs.length === 0 ? {} : { tools: specs }
        calls.push({ purpose: "action", loopIndex, messages: prompt, ...told, completion, incomplete, ...about })
        messages.push(...tell(about.toolResults))
      }

      const refuse = (feedback: string, why: string): Turn => {
        const parsed = refusal(feedback)
        // Every call has its answer in the conversation, else no server takes it.
        const toolResults = completion.toolCalls.map((call) => failed(call, why))
        called({ target: "env", parsed, toolResults }, nativeTools.tell)
        return { calls, outcome: outcomeOf(parsed) }
      }
      if (incomplete) return refuse(incompleteFeedback, "Not run: the answer was cut off.")

      const toolCalls = form.callsIn(completion, external)
      if (toolCalls.length === 0) {
        const parsed = yield* read(completion.content)
        called({ target: "env", parsed, toolResults: [] })
        return { calls, outcome: outcomeOf(parsed) }
      }
      if (isLast) {
        return external.length === 0 && own.size === 0
          ? refuse("There are no tools to call. Answer in words.", "Not run: there are no tools.")
          : refuse("No more tools can be called for this. Answer without one.", "Not run: too many calls.")
      }

      const outside = toolCalls.filter(isExternal)
      const toolResults = yield* Effect.forEach(
        toolCalls.filter((call) => !isExternal(call)),
        run,
      )
      const isInternal = outside.length === 0
      // The text beside a call is for nobody, so a parser that can't read it is no failure.
      const parsed = isInternal ? yield* Effect.orElseSucceed(read(completion.content), () => null) : null
      called({ target: isInternal ? "internal" : "external", parsed, toolResults })
      if (!isInternal) {
        owed = outside
        return { calls, outcome: { _tag: "CallTools", toolCalls: outside } } satisfies Turn
      }
    }
  })

  const undoable = (change: () => void): Effect.Effect<Turn, AgentFailure> => {
    const before = { length: messages.length, owed, asked, external }
    change()
    return Effect.onError(turn, () =>
      Effect.sync(() => {
        messages.length = before.length
        ;({ owed, asked, external } = before)
      }),
    )
  }

  return {
    isNew: () => messages.length === system.length,
    reset: () => {
      messages = [...system]
      external = []
      owed = []
      asked = 0
    },
    say: (text, externalTools) =>
      Effect.suspend(() => {
        if (owed.length > 0) {
          const names = owed.map(({ id, name }) => `${name} (${id})`).join(", ")
          const message = `${agent} was shown an observation, but still waits for the results of its calls: ${names}`
          return Effect.fail(new AgentError({ agent, message }))
        }
        return undoable(() => {
          asked = 0
          const known = new Set(external.map((spec) => JSON.stringify(spec)))
          if (externalTools !== undefined) external = externalTools.filter(({ name }) => !own.has(name))
          const unknown = external.filter((spec) => !known.has(JSON.stringify(spec)))
          const introduced = unknown.length === 0 ? undefined : form.introduce?.(unknown)
          messages.push({ role: "user", content: introduced === undefined ? text : `${introduced}\n\n${text}` })
        })
      }),
    answer: (results) =>
      Effect.suspend(() => {
        const expected = owed.map(({ id }) => id)
        const given = results.map(({ toolCallId }) => toolCallId)
        if (expected.length === 0 || expected.toSorted().join("\n") !== given.toSorted().join("\n")) {
          const message = `${agent} waits for the results of [${expected.join(", ")}], found those of [${given.join(", ")}]`
          return Effect.fail(new AgentError({ agent, message }))
        }
        // In the order in which they were asked for, whatever order they came in.
        const left = [...results]
        const inOrder = expected.flatMap((id) =>
          left.splice(
            left.findIndex(({ toolCallId }) => toolCallId === id),
            1,
          ),
        )
        return undoable(() => {
          messages.push(...form.tell(inOrder))
          owed = []
        })
      }),
  }
}
