import { Effect, Layer } from "effect"
import type { Agent, StepResult, AgentTurn } from "../../../src/agents/agent/Agent.ts"
import type { AgentMemory } from "../../../src/agents/agent/memory/Memory.ts"
import type { Feedback } from "../../../src/agents/task/Feedback.ts"
import type { Completion, LmRequest } from "../../../src/agents/lm/Chat.ts"
import { CallContext, Lm } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"

/** A completion as most are. */
export const said = (content: string, more: Partial<Completion> = {}): Completion => ({
  content,
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
  tokens: null,
  model: "scripted",
  attempts: 1,
  ...more,
})

/** A completion that calls tools: `calls(["1", "add", { a: 1 }])`. */
export const calls = (...all: ReadonlyArray<readonly [id: string, name: string, args: unknown]>): Completion =>
  said("", {
    finishReason: "tool_calls",
    toolCalls: all.map(([id, name, args]) => ({
      id,
      name,
      arguments: typeof args === "string" ? args : JSON.stringify(args),
    })),
  })

export const broken = new LmError({
  model: "scripted",
  reason: "exhausted",
  attempts: 6,
  message: "scripted: no answer after 6 tries",
})

export interface Script {
  readonly requests: Array<LmRequest>
  readonly purposes: Array<string>
  readonly layer: Layer.Layer<Lm>
}

/** A model that answers by a function of the request and of how many came before; null is a failure. */
export const scripted = (answer: (request: LmRequest, index: number) => Completion | string | null): Script => {
  const requests: Array<LmRequest> = []
  const purposes: Array<string> = []
  const layer = Layer.succeed(Lm, {
    complete: (request) =>
      Effect.gen(function* () {
        const { purpose } = yield* CallContext
        const made = answer(request, requests.length)
        requests.push(request)
        purposes.push(purpose)
        if (made === null) return yield* broken
        return typeof made === "string" ? said(made) : made
      }),
  })
  return { requests, purposes, layer }
}

/** Answers with these, one after another. */
export const inTurn = (...answers: ReadonlyArray<Completion | string | null>): Script =>
  scripted((_, index) => {
    const answer = answers[index]
    if (answer === undefined) throw new Error(`the script has no answer ${index}`)
    return answer
  })

export const told = (score: number, message = score >= 1 ? "Correct." : "Wrong."): Feedback => ({
  score,
  target: null,
  message,
})

export const look = (text: string) => ({ _tag: "Observation", text }) as const

/** Gives the content of the last message of a request. */
export const lastOf = (request: LmRequest | undefined): string => request?.messages.at(-1)?.content ?? ""

export interface ScriptedStep {
  readonly observation: string | null
  readonly feedback: Feedback
}

/** Plays an episode the way a runtime does: parses that fail are shown again, and step nothing. */
export const play = (agent: Agent, first: string, steps: ReadonlyArray<ScriptedStep>) =>
  Effect.gen(function* () {
    yield* agent.reset
    let seen: string = first
    const turns: Array<AgentTurn> = []
    for (const [index, step] of steps.entries()) {
      let turn = yield* agent.act(look(seen))
      turns.push(turn)
      while (turn.outcome._tag === "NoAction") {
        turn = yield* agent.act(look(turn.outcome.feedback))
        turns.push(turn)
      }
      const stepped: StepResult = {
        action: turn.outcome._tag === "Act" ? turn.outcome.action : "",
        observation: step.observation,
        feedback: agent.training ? step.feedback : null,
        done: index === steps.length - 1,
      }
      yield* agent.observe(stepped)
      seen = step.observation ?? ""
    }
    const looking = yield* agent.endEpisode
    return { turns, looking }
  })

/** The lines of a memory, shortly: `Observation: A door.` */
export const linesOf = (memory: AgentMemory | null) =>
  memory === null
    ? Effect.succeed<ReadonlyArray<string>>([])
    : Effect.map(memory.entries, (entries) =>
        entries.map(
          ({ type, content }) => `${type}: ${typeof content === "string" ? content : JSON.stringify(content)}`,
        ),
      )
