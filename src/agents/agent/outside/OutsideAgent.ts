/**
 * Makes agents with code of their own: functions (`FunctionAgent.ts`), programs (`CommandAgent.ts`) and servers
 * (`HttpAgent.ts`). Such an agent gets an observation and returns an action, and asks whatever it likes in between. The calls
 * of a model that it makes through us are recorded; if it makes none, its answer is recorded as one call.
 */
import { Effect, FiberSet, Redacted, Schedule, Scope, type Semaphore } from "effect"
import { stream } from "../../../base/rng/Rng.ts"
import { within } from "../../../spread/programs/timeLimit.ts"
import { CallRecorder, Gateway, type GatewaySession } from "../../gateway/Gateway.ts"
import type { ChatMessage, Completion, LmRequest } from "../../lm/Chat.ts"
import { CallContext, type LmService } from "../../lm/Lm.ts"
import { LmError } from "../../lm/LmError.ts"
import { repeatSeeds, type SeedOfRequest } from "../../lm/middleware/repeats.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import type { Agent, AgentFailure, AgentInput, AgentTurn, ModelCall, StepResult } from "../Agent.ts"
import { AgentError } from "../AgentError.ts"
import { incompleteFeedback, isIncomplete } from "../Conversation.ts"
import { type Parser, refused } from "../Parser.ts"
import { answerOf, describe, type OutsideAnswer, type OutsideTask } from "./answers.ts"
import { makeOutages } from "./outages.ts"

/** The model of an agent with code of its own. All its calls pass our limits, budget, retries and cache, and are recorded. */
export interface AgentModel {
  /** The name of the model, as `lm_config` has it. */
  readonly name: string
  /** Asks the model, and returns the text of its answer. */
  readonly ask: (prompt: string | ReadonlyArray<ChatMessage>) => Promise<string>
  /** Asks the model. Settings that are left out are those of `lm_config`. */
  readonly complete: (request: Partial<LmRequest> & Pick<LmRequest, "messages">) => Promise<Completion>
  /**
   * Returns the address and the key for the client of a library, e.g. `new OpenAI(await lm.connect())` or
   * `createOpenAI(await lm.connect())`. For clients of Anthropic's API, pass `"anthropic"`.
   */
  readonly connect: (api?: "openai" | "anthropic") => Promise<{ readonly baseURL: string; readonly apiKey: string }>
}

/** One turn of an agent with code of its own. */
export interface OutsideTurn {
  readonly task: OutsideTask
  readonly model: AgentModel
  /** Opens the address for the agent's calls of its model; null if it has no model. */
  readonly session: Effect.Effect<GatewaySession | null, AgentError>
  /** A seed for the agent's own random numbers: the same for the same turn of the same episode. */
  readonly seed: number
}

/** Asks the agent, and returns what it answered, undecoded. Everything that it has started ends with the scope. */
export type AskOutside = (turn: OutsideTurn) => Effect.Effect<unknown, AgentFailure, Scope.Scope>

interface OutsideParts {
  readonly type: string
  /** The model; null if the config names none. */
  readonly lm: { readonly service: LmService; readonly base: Omit<LmRequest, "messages"> } | null
  readonly parser: Parser
  /** Whether an answer is refused that is the text of a call which was cut off at its length limit. */
  readonly rejectIncompleteCompletions: boolean
  readonly timeoutS: number
  readonly maxRetries: number
  /** Limits the turns that are taken at the same time; null sets no limit. */
  readonly atOnce: Semaphore.Semaphore | null
  readonly ask: AskOutside
}

/** The short-term state of an agent. */
interface OutsideState {
  turns: OutsideTask["turns"]
  text: string
  tools: OutsideTask["tools"]
  toolResults: OutsideTask["toolResults"]
  refused: OutsideTask["refused"]
  /** The answer of the last turn if it could not be used; null otherwise. */
  unusable: string | null
}

const newState = (): OutsideState => ({
  turns: [],
  text: "",
  tools: [],
  toolResults: [],
  refused: [],
  unusable: null,
})

const failure = (type: string, problem: string) => new AgentError({ agent: type, message: `${type}: ${problem}` })

const noModel = (type: string) => failure(type, "the agent has no model; name one in lm_config")

/** Opens a session of the gateway for this turn. */
const openSession = Effect.fnUntraced(function* ({ type, lm }: OutsideParts, recorder: CallRecorder) {
  if (lm === null) return null
  const gateway = yield* Gateway
  if (gateway === null)
    return yield* failure(type, "there is no gateway for its calls; provide `platform` or `gateway` of effect-rl/node")
  const { phase, episode, step } = yield* CallContext
  // The name only has to differ from those of other open sessions, and is in no result.
  const id = `${phase._tag}-${episode}-${step}-${crypto.randomUUID().slice(0, 8)}`
  return yield* gateway.open({ id, lm: lm.service, base: lm.base, recorder })
})

/** The calls that an agent makes in a turn through `lm`, and the seeds of these calls. */
interface TurnRecords {
  readonly recorder: CallRecorder
  readonly seedOf: SeedOfRequest
}

/** Calls the model for the agent, and records the call. */
const completion = Effect.fnUntraced(function* (
  { service, base }: NonNullable<OutsideParts["lm"]>,
  { recorder, seedOf }: TurnRecords,
  wanted: Partial<LmRequest> & Pick<LmRequest, "messages">,
) {
  const request: LmRequest = { ...base, ...wanted }
  const { index, end } = recorder.begin()
  const completion = yield* service.complete({ ...request, seed: yield* seedOf(request) })
  end({
    purpose: "action",
    target: "internal",
    loopIndex: index,
    messages: request.messages,
    ...(request.tools.length === 0 ? {} : { tools: request.tools }),
    completion,
    toolResults: [],
    parsed: null,
    incomplete: false,
  })
  return completion
})

/**
 * Marks a promise as handled: an agent need not await it, and a rejection that nobody handles would end the whole process.
 * The rejection still reaches all who await the promise.
 */
const handled = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(() => {})
  return promise
}

/** Makes the model as the agent's code sees it. Its promises are rejected with the library's errors. */
const modelFor = Effect.fnUntraced(function* (
  { type, lm }: OutsideParts,
  recorder: CallRecorder,
  session: OutsideTurn["session"],
) {
  const records = { recorder, seedOf: repeatSeeds() }
  const run = yield* FiberSet.makeRuntimePromise<never, unknown, AgentFailure>()
  const complete: AgentModel["complete"] = (request) =>
    handled(lm === null ? run(noModel(type)) : run(completion(lm, records, request)))
  const model: AgentModel = {
    name: lm?.base.model ?? "",
    complete,
    ask: (prompt) => {
      const messages = typeof prompt === "string" ? [{ role: "user", content: prompt } as const] : prompt
      return handled(complete({ messages }).then(({ content }) => content))
    },
    connect: (api = "openai") =>
      handled(
        run(
          Effect.flatMap(session, (opened) => {
            if (opened === null) return Effect.fail(noModel(type))
            const baseURL = api === "anthropic" ? opened.baseUrl.replace(/\/v1$/, "") : opened.baseUrl
            return Effect.succeed({ baseURL, apiKey: Redacted.value(opened.apiKey) })
          }),
        ),
      ),
  }
  return model
})

/** Asks the agent once, and reads its answer. Returns it with the recorded calls and the agent's own reward. */
const attempt = Effect.fnUntraced(function* (unwatched: OutsideParts, task: OutsideTask) {
  const { type, timeoutS, ask, lm } = unwatched
  const { watched, reported } = makeOutages()
  const parts = lm === null ? unwatched : { ...unwatched, lm: { ...lm, service: watched(lm.service) } }
  const recorder = new CallRecorder()
  let opened: GatewaySession | null = null
  const scope = yield* Effect.scope
  const session = yield* Effect.cached(
    openSession(parts, recorder).pipe(
      Effect.tap((made) => Effect.sync(() => (opened = made))),
      Effect.provideService(Scope.Scope, scope),
    ),
  )
  const { step } = yield* CallContext
  const seed = stream((yield* SamplingSeed) ?? 0, "agent", step, task.toolResults.length).uint32() >>> 1
  const model = yield* modelFor(parts, recorder, session)
  const late = Effect.suspend(() => failure(type, `it gave no answer within ${timeoutS} s (timeout_s)`))
  const answer = yield* within(ask({ task, model, session, seed }), timeoutS, late).pipe(
    Effect.flatMap((returned) => answerOf(type, returned)),
    reported,
  )
  const reward = opened === null ? 0 : ((yield* rewardOf(opened)) ?? 0)
  return { answer, calls: recorder.calls(), reward }
}, Effect.scoped)

const rewardOf = ({ reward }: GatewaySession): Effect.Effect<number | null> => reward

/** The pauses between the attempts of a turn. */
const pauses = Schedule.exponential("500 millis")

/** Makes the only call of a turn whose calls of a model did not pass through us. */
const wholeCall = (type: string, task: OutsideTask, answer: OutsideAnswer): ModelCall => {
  const before = task.turns.flatMap(({ observation, action }): ReadonlyArray<ChatMessage> => [
    { role: "user", content: observation },
    { role: "assistant", content: action },
  ])
  const toolCalls = [...answer.toolCalls, ...answer.call]
  return {
    purpose: "action",
    target: "env",
    loopIndex: 0,
    messages: [...before, { role: "user", content: task.text }],
    ...(task.tools.length === 0 ? {} : { tools: task.tools }),
    completion: {
      content: answer.text,
      toolCalls,
      finishReason: answer.call.length > 0 ? "tool_calls" : "stop",
      usage: answer.usage,
      tokens: null,
      model: type,
      attempts: 0,
    },
    toolResults: answer.toolResults,
    parsed: null,
    incomplete: false,
  }
}

/** Takes a turn: asks the agent, again after a failure if it may, and converts its answer to an outcome. */
const turn = Effect.fnUntraced(function* (
  parts: OutsideParts,
  state: OutsideState,
): Effect.fn.Return<AgentTurn, AgentFailure> {
  const { type, parser, maxRetries, atOnce } = parts
  const { unusable: _, ...task } = state
  const asking = Effect.retry(attempt(parts, task), {
    times: maxRetries,
    schedule: pauses,
    while: (error) => error._tag === "AgentError",
  })
  const { answer, calls: made, reward } = yield* atOnce === null ? asking : atOnce.withPermit(asking)
  const recorded = made.length === 0 ? [wholeCall(type, task, answer)] : made
  const last = recorded[recorded.length - 1]
  const ending = (end: Pick<ModelCall, "target" | "parsed"> & Partial<Pick<ModelCall, "incomplete">>) => [
    ...recorded.slice(0, -1),
    { ...last, ...end },
  ]
  if (answer.call.length > 0)
    return {
      calls: ending({ target: "external", parsed: null }),
      outcome: { _tag: "CallTools", toolCalls: answer.call },
    }
  const incomplete = isIncomplete(last.completion, parts) && last.completion.content.trim() === answer.text.trim()
  const parsed = incomplete ? refused(incompleteFeedback) : parser(answer.text)
  const calls = ending({ target: "env", parsed, incomplete })
  if (parsed._tag === "Parsed")
    return { calls, outcome: { _tag: "Act", action: parsed.action, reward: parsed.reward + reward } }
  state.unusable = answer.text
  return { calls, outcome: { _tag: "NoAction", feedback: parsed.feedback, reward: parsed.reward } }
})

/** Takes the next input. After an answer that could not be used, that is the feedback, and the observation stays. */
const take = (state: OutsideState, input: AgentInput): void => {
  if (input._tag === "ToolResults") {
    state.toolResults = [...state.toolResults, ...input.results]
    return
  }
  if (state.unusable === null) Object.assign(state, { text: input.text, refused: [] })
  else state.refused = [...state.refused, { answer: state.unusable, feedback: input.text }]
  Object.assign(state, { toolResults: [], unusable: null, ...(input.tools && { tools: input.tools }) })
}

const observe = (state: OutsideState, { action, feedback }: StepResult): void => {
  state.turns = [...state.turns, { observation: state.text, action, feedback: feedback?.message ?? null }]
}

/** Makes the agent. Its clones share its model and its limit on simultaneous turns, but not the turns of their episodes. */
export const make = (parts: OutsideParts, training = true): Agent => {
  const state = newState()
  return {
    type: parts.type,
    model: parts.lm?.base.model ?? null,
    training,
    memory: null,
    reset: Effect.sync(() => void Object.assign(state, newState())),
    act: (input) =>
      Effect.suspend(() => {
        take(state, input)
        return turn(parts, state)
      }),
    observe: (result) => Effect.sync(() => observe(state, result)),
    endEpisode: Effect.succeed([]),
    cloneForEpisode: ({ training }) => Effect.sync(() => make(parts, training)),
  }
}

/** Converts an exception of the agent's own code to an error. An error of a model stays as it is. */
export const thrown = (type: string, error: unknown): AgentFailure => {
  if (error instanceof LmError || error instanceof AgentError) return error
  const { reason, ...stack } = describe(error)
  return new AgentError({ agent: type, message: `${type}: it failed: ${reason}`, ...stack })
}
