/**
 * Makes the conversation between an agent and its model: calls the model and the agent's tools, and finds the action in the
 * answer. Messages are only appended, so each request begins with the previous request and the answer to it. All built-in
 * agents use it. They differ in the messages that they add, and in the moments at which they reset the conversation.
 */
import { Effect, Schema } from "effect"
import { display } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { asMessage, type ChatMessage, type Completion, LmRequest, type ToolCall, type ToolSpec } from "../lm/Chat.ts"
import { inToolSpan } from "../lm/genAi.ts"
import type { LmService } from "../lm/Lm.ts"
import { withheld } from "../lm/LmError.ts"
import type { AgentFailure, ModelCall, ToolResult, AgentTurn } from "./Agent.ts"
import { AgentError } from "./AgentError.ts"
import { type Parser, ParseResult, refused, whole } from "./Parser.ts"
import { failed, type Tool } from "./Tool.ts"

/** The settings of an agent that calls a model. */
export interface AgentSettings extends Partial<
  Pick<LmRequest, "temperature" | "topP" | "maxOutputTokens" | "stop" | "seed" | "traceTokens">
> {
  readonly model: string
  readonly systemPrompt?: string | null
  /** Finds the action in an answer; by default it is the whole answer. */
  readonly parser?: Parser
  /** Whether the agent refuses to act upon an answer that was cut off at its length limit; true by default. */
  readonly rejectIncompleteCompletions?: boolean
  /** Descriptions that replace those of the agent's and the task's tools, by the tools' names. */
  readonly toolDescriptions?: Readonly<Record<string, string>>
}

/** Replaces the description of a tool, if the settings have another one for its name. */
export const described = (spec: ToolSpec, { toolDescriptions = {} }: AgentSettings): ToolSpec =>
  Object.hasOwn(toolDescriptions, spec.name) ? { ...spec, description: toolDescriptions[spec.name] } : spec

/** The format in which the model calls tools and gets their results. */
export interface CallFormat {
  /** Whether requests list the tools in the provider's own format; if not, the text of the prompt describes them. */
  readonly native: boolean
  /** Finds the calls in a completion. The agent does not run the `external` tools itself. */
  readonly callsIn: (completion: Completion, external: ReadonlyArray<ToolSpec>) => ReadonlyArray<ToolCall>
  /** Describes new external tools to the model, in a text before the observation. */
  readonly introduce?: (external: ReadonlyArray<ToolSpec>) => string
  /** Makes the messages that carry the results of calls to the model. */
  readonly resultMessages: (results: ReadonlyArray<ToolResult>) => ReadonlyArray<ChatMessage>
}

export interface ConversationOptions {
  /** The agent's type, for error messages. */
  readonly agent: string
  readonly settings: AgentSettings
  readonly lm: LmService
  /** The tools that the agent runs itself. The model continues with their results. */
  readonly tools?: ReadonlyArray<Tool>
  /** The largest number of calls of the model for one observation, 1 by default. */
  readonly maxCalls?: number
  /**
   * Whether the last of the `maxCalls` requests forbids tool calls, so that the model has to act; false by default. This
   * request still describes the tools, so that it begins with the text of the request before.
   */
  readonly shotClock?: boolean
  /** The format of tool calls; by default the provider's own. */
  readonly format?: CallFormat
}

export interface Conversation {
  /** Tells whether the conversation has no messages yet, except the system prompt. */
  readonly isNew: () => boolean
  /** Removes all messages except the system prompt. */
  readonly reset: () => void
  /**
   * Adds a user message with this text, sets the external tools, and takes a turn. If the turn fails, the conversation is
   * unchanged.
   */
  readonly say: (text: string, externalTools?: ReadonlyArray<ToolSpec>) => Effect.Effect<AgentTurn, AgentFailure>
  /** Adds the results of the external calls that ended the last turn, and takes the next turn. */
  readonly answer: (results: ReadonlyArray<ToolResult>) => Effect.Effect<AgentTurn, AgentFailure>
}

/** Makes the request that an agent sends to its model, without the messages. */
export const requestOf = ({
  model,
  temperature = null,
  topP = null,
  maxOutputTokens = null,
  stop = [],
  seed = null,
  traceTokens = false,
}: AgentSettings): Omit<LmRequest, "messages"> => {
  // The defaults are in the parameter list, because these also replace keys that are present but undefined.
  return { ...LmRequest.defaults, model, temperature, topP, maxOutputTokens, stop, seed, traceTokens }
}

/** Returns the first messages of a conversation: the system prompt, if there is one. */
export const systemMessages = (prompt: string | null | undefined): ReadonlyArray<ChatMessage> =>
  prompt === null || prompt === undefined || prompt === "" ? [] : [{ role: "system", content: prompt }]

export const incompleteFeedback =
  "Your answer was longer than it may be and was cut off, so it was not acted upon. Answer more briefly."

/** Tells whether a completion was cut off at its length limit and must therefore be refused. */
export const isIncomplete = (
  { finishReason }: Pick<Completion, "finishReason">,
  settings: Pick<AgentSettings, "rejectIncompleteCompletions">,
): boolean => finishReason === "length" && settings.rejectIncompleteCompletions !== false

const asToolMessage = ({ toolCallId, toolName, content, isError }: ToolResult): ChatMessage => ({
  role: "tool",
  toolCallId,
  toolName,
  content,
  ...(isError ? { isError } : {}),
})

/** The provider's own format of tools: calls are part of the completion, and each result is a message. */
export const nativeTools: CallFormat = {
  native: true,
  callsIn: ({ toolCalls }) => toolCalls,
  resultMessages: (results) => results.map(asToolMessage),
}

const expectedOfParsers = "expected an action, or a failure with feedback"
const isParseResult = Schema.is(ParseResult)

/** Converts the parser's result to the outcome of the turn. */
const outcomeOf = (parsed: ParseResult): AgentTurn["outcome"] =>
  parsed._tag === "Parsed"
    ? { _tag: "Act", action: parsed.action, reward: parsed.reward }
    : { _tag: "NoAction", feedback: parsed.feedback, reward: parsed.reward }

/** The state of a conversation. */
interface ConversationState extends Required<
  Pick<ConversationOptions, "agent" | "settings" | "lm" | "maxCalls" | "shotClock" | "format">
> {
  /** Finds the action in an answer. */
  readonly parser: Parser
  /** The request without its messages and tools. */
  readonly base: Omit<LmRequest, "messages">
  readonly system: ReadonlyArray<ChatMessage>
  /** The tools that the agent runs itself, by name. */
  readonly ownTools: ReadonlyMap<string, Tool>
  /** The descriptions of the agent's own tools, if requests list them. */
  readonly ownSpecs: ReadonlyArray<ToolSpec>
  messages: Array<ChatMessage>
  /** The external tools, which the agent does not run itself. */
  external: ReadonlyArray<ToolSpec>
  /** The external tool calls that have no result yet. */
  openCalls: ReadonlyArray<ToolCall>
  /** The number of calls of the model since the last observation. */
  callCount: number
}

const makeState = (options: ConversationOptions): ConversationState => {
  const { agent, settings, lm, tools = [], maxCalls = 1, shotClock = false, format = nativeTools } = options
  const system = systemMessages(settings.systemPrompt)
  return {
    agent,
    settings,
    lm,
    maxCalls,
    shotClock,
    format,
    parser: settings.parser ?? whole,
    base: requestOf(settings),
    system,
    ownTools: new Map(tools.map((tool) => [tool.spec.name, tool])),
    ownSpecs: format.native ? tools.map(({ spec }) => described(spec, settings)) : [],
    messages: [...system],
    external: [],
    openCalls: [],
    callCount: 0,
  }
}

const wrong = ({ agent }: ConversationState, problem: string, more: { readonly userStack?: string } = {}): AgentError =>
  new AgentError({ agent, message: `${agent}: ${problem}`, ...more })

const isExternal = (state: ConversationState, { name }: ToolCall): boolean =>
  state.external.some((spec) => spec.name === name)

/** Runs one of the agent's own tools. If no tool has this name, the model sees an error. */
const runTool = (state: ConversationState, call: ToolCall): Effect.Effect<ToolResult> => {
  const tool = state.ownTools.get(call.name)
  if (tool !== undefined) return tool.call(call)
  const names = [...new Set([...state.ownTools.keys(), ...state.external.map(({ name }) => name)])].join(", ")
  return Effect.succeed(failed(call, `There is no tool "${call.name}"${names === "" ? "" : `; there are ${names}`}.`))
}

/** Parses the text of an answer. Fails if the parser throws or does not return a `ParseResult`. */
const read = (state: ConversationState, text: string): Effect.Effect<ParseResult, AgentError> =>
  Effect.try({
    try: () => state.parser(text),
    catch: (error) =>
      wrong(
        state,
        `the parser threw: ${messageOf(error)}; ${expectedOfParsers}`,
        error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {},
      ),
  }).pipe(
    Effect.filterOrFail(isParseResult, (result) =>
      wrong(state, `the parser gave ${display(result)}; ${expectedOfParsers}`),
    ),
  )

/** One call of the model. */
interface AskedCompletion {
  readonly loopIndex: number
  /** The messages and tools of the request. */
  readonly prompt: ReadonlyArray<ChatMessage>
  readonly specs: ReadonlyArray<ToolSpec>
  readonly completion: Completion
  /** Whether the answer was cut off, so that the agent refuses it. */
  readonly incomplete: boolean
}

/** Calls the model, and adds its answer to the messages. */
const ask = Effect.fnUntraced(function* (
  state: ConversationState,
  specs: ReadonlyArray<ToolSpec>,
  { isLast }: { readonly isLast: boolean },
): Effect.fn.Return<AskedCompletion, AgentFailure> {
  const { base, lm, settings, shotClock } = state
  const loopIndex = state.callCount
  const prompt = state.messages.slice()
  const completion = yield* lm.complete({
    ...base,
    messages: prompt,
    tools: specs,
    toolChoice: isLast && shotClock && specs.length > 0 ? "none" : "auto",
  })
  // Our own providers fail if a filter withholds the answer. Other services, and old cached answers, may not fail.
  if (completion.finishReason === "content_filter") return yield* withheld(settings.model)
  state.callCount++
  state.messages.push(asMessage(completion))
  const incomplete = isIncomplete(completion, settings)
  if (completion.finishReason === "length") {
    const limit = base.maxOutputTokens === null ? "" : ` (max_output_tokens: ${base.maxOutputTokens})`
    const consequence = incomplete ? ", so the agent does not act upon it" : ""
    yield* Effect.logWarning(`${settings.model}: an answer was cut off at its length${limit}${consequence}`)
  }
  return { loopIndex, prompt, specs, completion, incomplete }
})

/** Adds a call to the turn's calls, and the results of its tools to the messages. */
const record = (
  state: ConversationState,
  calls: Array<ModelCall>,
  { loopIndex, prompt, specs, completion, incomplete }: AskedCompletion,
  result: Pick<ModelCall, "target" | "parsed" | "toolResults">,
  resultMessages: CallFormat["resultMessages"] = state.format.resultMessages,
): void => {
  const toolList = specs.length === 0 ? {} : { tools: specs }
  calls.push({ purpose: "action", loopIndex, messages: prompt, ...toolList, completion, incomplete, ...result })
  for (const message of resultMessages(result.toolResults)) state.messages.push(message)
}

/** The reasons for which an answer is refused: the feedback to the model, and the result of each of its tool calls. */
interface RefusedAnswer {
  readonly feedback: string
  readonly callResult: string
}

const cutOff: RefusedAnswer = { feedback: incompleteFeedback, callResult: "Not run: the answer was cut off." }
const noTools: RefusedAnswer = {
  feedback: "There are no tools to call. Answer in words.",
  callResult: "Not run: there are no tools.",
}
const tooManyCalls: RefusedAnswer = {
  feedback: "No more tools can be called for this. Answer without one.",
  callResult: "Not run: too many calls.",
}

/** Ends the turn without an action. The next request has the feedback, and an error for each of the answer's tool calls. */
const refuse = (
  state: ConversationState,
  calls: Array<ModelCall>,
  asked: AskedCompletion,
  { feedback, callResult }: RefusedAnswer,
): AgentTurn => {
  const parsed = refused(feedback)
  // Servers refuse a conversation in which a call has no result.
  const toolResults = asked.completion.toolCalls.map((call) => failed(call, callResult))
  record(state, calls, asked, { target: "env", parsed, toolResults }, nativeTools.resultMessages)
  return { calls, outcome: outcomeOf(parsed) }
}

/** Runs the agent's own tools among the calls. Returns the calls of external tools, which end the turn. */
const runTools = Effect.fnUntraced(function* (
  state: ConversationState,
  calls: Array<ModelCall>,
  asked: AskedCompletion,
  toolCalls: ReadonlyArray<ToolCall>,
) {
  const externalCalls = toolCalls.filter((call) => isExternal(state, call))
  const toolResults = yield* Effect.forEach(
    toolCalls.filter((call) => !isExternal(state, call)),
    (call) => inToolSpan(call, runTool(state, call)),
  )
  const isInternal = externalCalls.length === 0
  // Text beside a tool call is not an action, so it does not matter if the parser throws.
  const parsed = isInternal ? yield* Effect.orElseSucceed(read(state, asked.completion.content), () => null) : null
  record(state, calls, asked, { target: isInternal ? "internal" : "external", parsed, toolResults })
  return externalCalls
})

/** Calls the model until it acts, calls an external tool, or gives an answer that is refused. */
const turn = Effect.fnUntraced(function* (state: ConversationState): Effect.fn.Return<AgentTurn, AgentFailure> {
  const { format, maxCalls, ownTools, ownSpecs, external } = state
  const calls: Array<ModelCall> = []
  const specs = format.native ? [...ownSpecs, ...external] : []
  while (true) {
    const isLast = state.callCount + 1 >= maxCalls
    const asked = yield* ask(state, specs, { isLast })
    if (asked.incomplete) return refuse(state, calls, asked, cutOff)

    const toolCalls = format.callsIn(asked.completion, external)
    if (toolCalls.length === 0) {
      const parsed = yield* read(state, asked.completion.content)
      record(state, calls, asked, { target: "env", parsed, toolResults: [] })
      return { calls, outcome: outcomeOf(parsed) }
    }
    if (isLast)
      return refuse(state, calls, asked, external.length === 0 && ownTools.size === 0 ? noTools : tooManyCalls)

    const externalCalls = yield* runTools(state, calls, asked, toolCalls)
    if (externalCalls.length > 0) {
      state.openCalls = externalCalls
      return { calls, outcome: { _tag: "CallTools", toolCalls: externalCalls } }
    }
  }
})

/** Applies a change to the conversation and takes a turn. If the turn fails, restores the earlier conversation. */
const turnAfter = (state: ConversationState, change: () => void): Effect.Effect<AgentTurn, AgentFailure> => {
  const { openCalls, callCount, external } = state
  const { length } = state.messages
  change()
  return Effect.onError(turn(state), () =>
    Effect.sync(() => {
      state.messages.length = length
      Object.assign(state, { openCalls, callCount, external })
    }),
  )
}

/** Adds an observation, and takes a turn. */
const say = (state: ConversationState, text: string, externalTools: ReadonlyArray<ToolSpec> | undefined) =>
  Effect.suspend(() => {
    if (state.openCalls.length > 0) {
      const names = state.openCalls.map(({ id, name }) => `${name} (${id})`).join(", ")
      return Effect.fail(wrong(state, `expected the results of its calls ${names}, found an observation`))
    }
    return turnAfter(state, () => {
      state.callCount = 0
      const before = new Set(state.external.map((spec) => JSON.stringify(spec)))
      if (externalTools !== undefined)
        state.external = externalTools
          .filter(({ name }) => !state.ownTools.has(name))
          .map((spec) => described(spec, state.settings))
      const added = state.external.filter((spec) => !before.has(JSON.stringify(spec)))
      const introduction = added.length === 0 ? undefined : state.format.introduce?.(added)
      state.messages.push({ role: "user", content: introduction === undefined ? text : `${introduction}\n\n${text}` })
    })
  })

/** Adds the results of the open calls, and takes a turn. */
const answer = (state: ConversationState, results: ReadonlyArray<ToolResult>) =>
  Effect.suspend(() => {
    const expected = state.openCalls.map(({ id }) => id)
    const answered = results.map(({ toolCallId }) => toolCallId)
    if (expected.length === 0 || expected.toSorted().join("\n") !== answered.toSorted().join("\n")) {
      const found = answered.join(", ")
      return Effect.fail(
        wrong(state, `expected the results of the calls [${expected.join(", ")}], found those of [${found}]`),
      )
    }
    // Sort the results in the order of the calls. Several calls may have the same id; each result is used once.
    const byId = Map.groupBy(results, ({ toolCallId }) => toolCallId)
    const inOrder = expected.flatMap((id) => byId.get(id)?.shift() ?? [])
    return turnAfter(state, () => {
      for (const message of state.format.resultMessages(inOrder)) state.messages.push(message)
      state.openCalls = []
    })
  })

/** Makes a conversation that holds only the system prompt. */
export const make = (options: ConversationOptions): Conversation => {
  const state = makeState(options)
  return {
    isNew: () => state.messages.length === state.system.length,
    reset: () => {
      state.messages = [...state.system]
      state.external = []
      state.openCalls = []
      state.callCount = 0
    },
    say: (text, externalTools) => say(state, text, externalTools),
    answer: (results) => answer(state, results),
  }
}
