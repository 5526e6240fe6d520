import { Effect } from "effect"
import type { Agent, ModelCall, StepResult, AgentInput, AgentTurn } from "../../../src/agents/agent/Agent.ts"
import { AgentError } from "../../../src/agents/agent/AgentError.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { type ChatMessage, type Completion, type FinishReason, type ToolCall } from "../../../src/agents/lm/Chat.ts"
import type { EpisodeToPlay } from "../../../src/agents/episode/Protocol.ts"

/** The answer of a scripted model: text that is an action, text that is none, or calls of tools; or it breaks. */
export type ScriptedAnswer =
  | { readonly act: string; readonly reward?: number; readonly finish?: FinishReason; readonly inside?: string }
  | { readonly fail: string; readonly reward?: number; readonly finish?: FinishReason }
  | { readonly tools: ReadonlyArray<readonly [name: string, args: string]> }
  | { readonly broken: string }

export interface AgentLog {
  readonly shown: ReadonlyArray<AgentInput>
  readonly seen: ReadonlyArray<StepResult>
  readonly log: ReadonlyArray<string>
}

/** A token a character, and conversations that only grow. */
export const tokensOf = (text: string): Array<number> => Array.from(text, (letter) => letter.codePointAt(0) ?? 0)

export const rendered = (messages: ReadonlyArray<ChatMessage>): string =>
  messages.map(({ role, content }) => `${role}:${content}\n`).join("")

export interface ScriptOptions {
  readonly training?: boolean
  readonly type?: string
  /** The calls of the model at the end of the episode. */
  readonly reflections?: ReadonlyArray<string>
  readonly logprobs?: boolean
  /** Before every answer. */
  readonly before?: Effect.Effect<unknown>
  /** Forgets its conversation at every observation, so that contexts aren't append-only. */
  readonly forgetful?: boolean
}

/** An agent whose model's answers are a function of how many came before and of what was shown. */
export const scripted = (
  script: (index: number, shown: AgentInput, messages: ReadonlyArray<ChatMessage>) => ScriptedAnswer,
  options: ScriptOptions = {},
): Agent & AgentLog => {
  const { training = true, type = "scripted", reflections = [], logprobs = true } = options
  const shownAll: Array<AgentInput> = []
  const seen: Array<StepResult> = []
  const log: Array<string> = []
  let messages: Array<ChatMessage> = []
  let index = 0

  const ask = (content: string, toolCalls: ReadonlyArray<ToolCall>, finishReason: FinishReason) => {
    const prompt = [...messages]
    const completionIds = tokensOf(content)
    const completion: Completion = {
      content,
      toolCalls,
      finishReason,
      usage: { inputTokens: prompt.length, outputTokens: completionIds.length, reasoningTokens: 0 },
      tokens: {
        promptIds: tokensOf(`${rendered(prompt)}assistant:`),
        completionIds,
        logprobs: logprobs ? completionIds.map((id) => -id / 1000) : null,
      },
      model: "scripted",
      attempts: 1,
    }
    messages.push({ role: "assistant", content, ...(toolCalls.length === 0 ? {} : { toolCalls }) })
    return { prompt, completion }
  }
  const callOf = (
    content: string,
    about: Partial<ModelCall>,
    toolCalls: ReadonlyArray<ToolCall> = [],
    finishReason: FinishReason = "stop",
  ): ModelCall => {
    const { prompt, completion } = ask(content, toolCalls, finishReason)
    return {
      purpose: "action",
      target: "env",
      loopIndex: 0,
      messages: prompt,
      completion,
      toolResults: [],
      parsed: null,
      incomplete: finishReason === "length",
      ...about,
    }
  }

  const turnOf = (said: Exclude<ScriptedAnswer, { readonly broken: string }>): AgentTurn => {
    if ("tools" in said) {
      const toolCalls = said.tools.map(([name, args], at) => ({ id: `call-${index}-${at}`, name, arguments: args }))
      return {
        calls: [callOf(`call ${index}`, { target: "external" }, toolCalls, "tool_calls")],
        outcome: { _tag: "CallTools", toolCalls },
      }
    }
    if ("fail" in said) {
      const { fail: feedback, reward = -0.1, finish } = said
      return {
        calls: [callOf(`mumble ${index}`, { parsed: { _tag: "Failed", feedback, reward } }, [], finish)],
        outcome: { _tag: "NoAction", feedback, reward },
      }
    }
    const { act: action, reward = 0, inside, finish } = said
    const before = inside === undefined ? [] : [callOf(inside, { target: "internal" })]
    if (inside !== undefined) messages.push({ role: "user", content: "go on" })
    const parsed = { _tag: "Parsed", action, reward } as const
    return {
      calls: [...before, callOf(action, { parsed, loopIndex: before.length }, [], finish)],
      outcome: { _tag: "Act", action, reward },
    }
  }

  const begin = (): void => {
    messages = [{ role: "system", content: "play" }]
    index = 0
  }
  begin()
  return {
    type,
    model: "scripted",
    training,
    memory: null,
    shown: shownAll,
    seen,
    log,
    reset: Effect.sync(() => {
      log.push("reset")
      begin()
    }),
    act: (shown) =>
      Effect.andThen(
        options.before ?? Effect.void,
        Effect.suspend(() => {
          log.push("act")
          shownAll.push(shown)
          if (options.forgetful === true && shown._tag === "Observation") messages = messages.slice(0, 1)
          if (shown._tag === "Observation") messages.push({ role: "user", content: shown.text })
          else for (const result of shown.results) messages.push({ role: "tool", ...result })
          const said = script(index++, shown, messages)
          if ("broken" in said) return Effect.fail(new AgentError({ agent: type, message: said.broken }))
          return Effect.succeed(turnOf(said))
        }),
      ),
    observe: (what) =>
      Effect.sync(() => {
        log.push("observe")
        seen.push(what)
      }),
    endEpisode: Effect.sync(() => {
      log.push("endEpisode")
      return reflections.map((text) => {
        messages.push({ role: "user", content: "what did you learn?" })
        return callOf(text, { purpose: "reflection", target: "internal" })
      })
    }),
    cloneForEpisode: ({ training: trains }) => Effect.sync(() => scripted(script, { ...options, training: trains })),
  }
}

/** Counts up to a goal; every count is worth its number's tenth. `stop` truncates; `lookup` may be called. */
export const counting = (goal: number, about: Partial<TextEnv.TextRules<number>> = {}): TextEnv.TextEnv =>
  TextEnv.make<number>({
    id: `count-${goal}`,
    type: "count",
    begin: () => ({ state: 0, observation: "count from 0" }),
    step: (state, action) => {
      const next = state + 1
      const done = next === goal
      return {
        state: next,
        observation: done ? null : `at ${next}`,
        feedback: { score: next / 10, target: null, message: action },
        terminated: done,
        truncated: action === "stop",
      }
    },
    ...about,
  })

export const withTools = (goal: number): TextEnv.TextEnv =>
  counting(goal, {
    tools: [{ name: "lookup", description: "finds", parameters: {} }],
    call: (state, call) => ({ state, content: `${call.name} ${call.arguments} at ${state}` }),
  })

export const episodeOf = (env: TextEnv.TextEnv, about: Partial<EpisodeToPlay> = {}): EpisodeToPlay => ({
  id: "e",
  env,
  envSeed: 1,
  samplingSeed: 2,
  ...about,
})
