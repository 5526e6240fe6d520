/**
 * An engine without a model: it writes what a script says, byte by byte, and gives other fibers a turn after each token. It
 * keeps which requests ran, and an answer's tokens show the weights that it came from: their log-probability is −(step + 1).
 */
import { Effect, Stream } from "effect"
import {
  EngineError,
  type EngineService,
  type Generated,
  type GeneratedToken,
  type GenerateEvent,
  type GenerateRequest,
  type WeightsUsed,
} from "../../../src/decoder/inference/Engine.ts"
import { makeStepWaiters } from "../../../src/decoder/inference/stepWaiters.ts"
import type { ChatModel } from "../../../src/decoder/engine/ChatModel.ts"
import { hermes } from "../../../src/agents/lm/toolFormats/hermes.ts"
import { stream as randomStream } from "../../../src/base/rng/Rng.ts"

/** The id of the token that ends an answer; those below it are bytes. */
export const eos = 256
const encoder = new TextEncoder()

export const tokens: ChatModel["tokens"] = {
  longestToken: 1,
  encode: (text, options) => [...(options?.addSpecial === true ? [eos + 1] : []), ...encoder.encode(text)],
  decode: (ids) => new TextDecoder().decode(Uint8Array.from([...ids].filter((id) => id < eos))),
  bytesOf: (id) => (id < eos ? Uint8Array.of(id) : encoder.encode(id === eos ? "<eos>" : "<bos>")),
}

/** A chat model whose template writes each message as `role: content`, and tools and calls as JSON. */
export const chat: ChatModel = {
  tokens,
  toolFormat: hermes,
  template: {
    render: ({ messages, tools = [], addGenerationPrompt, variables }) => {
      if (messages.some(({ content }) => content === "refuse")) return Effect.fail({ message: "roles must alternate" })
      const lines = messages.map((message) => {
        const calls = message.tool_calls === undefined ? "" : JSON.stringify(message.tool_calls)
        const name = message.name === undefined ? "" : ` (${String(message.name)})`
        return `${String(message.role)}${name}: ${String(message.content)}${calls}\n`
      })
      const shown = tools.length === 0 ? "" : `tools: ${JSON.stringify(tools)}\n`
      const more = variables === undefined ? "" : `${JSON.stringify(variables)}\n`
      return Effect.succeed(`${shown}${more}${lines.join("")}${addGenerationPrompt ? "assistant: " : ""}`)
    },
  },
}

/** Returns the answer to a request; undefined stands for letters that the seed determines. */
export type Script = (prompt: string, request: GenerateRequest) => string | undefined

export interface FakeEngine extends EngineService {
  readonly requests: ReadonlyArray<GenerateRequest>
  /** The number of requests that were interrupted. */
  readonly interrupted: () => number
  readonly active: () => number
  /** The largest number of requests that ran at the same time. */
  readonly mostActive: () => number
}

interface Options {
  readonly script?: Script
  /** An effect before each token. */
  readonly pause?: Effect.Effect<void>
  readonly maxLength?: number
}

export const fakeEngine = ({ script = () => undefined, pause, maxLength = 1000 }: Options = {}): FakeEngine => {
  const requests: Array<GenerateRequest> = []
  const steps = new Map<string, number>([["base", 0]])
  const waiters = makeStepWaiters((model) => steps.get(model))
  let interrupted = 0
  let active = 0
  let mostActive = 0
  let unseeded = 1000
  const turn = Effect.andThen(pause ?? Effect.void, Effect.yieldNow)

  const textOf = (request: GenerateRequest): string => {
    const text = script(tokens.decode(Array.from(request.promptIds)), request)
    const random = randomStream(request.sampling?.seed ?? unseeded++, "token")
    return text ?? Array.from({ length: 10 }, () => String.fromCharCode(97 + random.integer(26))).join("")
  }

  const generating = function* (request: GenerateRequest, weights: WeightsUsed): Generator<GenerateEvent> {
    const { maxTokens = null, stop = [], topLogprobs = 0 } = request.sampling ?? {}
    const room = maxLength - request.promptIds.length
    const ids = [...encoder.encode(textOf(request)), eos]
    const generated: Array<GeneratedToken> = []
    const decoder = new TextDecoder()
    let text = ""
    let sent = 0
    const finished = (finishReason: "stop" | "length", stopReason: string | number | null): GenerateEvent => ({
      _tag: "Finished",
      text: text.slice(sent),
      generated: { tokens: generated, text, finishReason, stopReason, weights },
    })
    for (const id of ids) {
      const top = Array.from({ length: topLogprobs }, (_, rank) => ({ id: (id + rank) % eos, logprob: -rank - 1 }))
      const token = { id, logprob: -weights.step - 1, top }
      generated.push(token)
      if (id === eos) {
        yield { _tag: "Token", token, text: "", weights }
        return yield finished("stop", eos)
      }
      text += decoder.decode(Uint8Array.of(id), { stream: true })
      const found = stop.find((word) => text.includes(word))
      if (found !== undefined) {
        text = text.slice(0, text.indexOf(found))
        yield { _tag: "Token", token, text: "", weights }
        return yield finished("stop", found)
      }
      // Text that may become a stop string is held back.
      const longest = Math.max(0, ...stop.map((word) => word.length - 1))
      const until = Math.max(sent, text.length - longest)
      yield { _tag: "Token", token, text: text.slice(sent, until), weights }
      sent = until
      if (generated.length === Math.min(maxTokens ?? room, room)) return yield finished("length", null)
    }
  }

  const stream = (request: GenerateRequest): Stream.Stream<GenerateEvent, EngineError> =>
    Stream.suspend(() => {
      requests.push(request)
      const step = steps.get(request.model)
      if (step === undefined) {
        const { model } = request
        return Stream.fail(new EngineError({ model, reason: "unknownModel", message: `${model}: unknown` }))
      }
      active++
      mostActive = Math.max(mostActive, active)
      const events = generating(request, { model: request.model, step, baseStep: steps.get("base") ?? 0 })
      const text = tokens.decode(Array.from(request.promptIds))
      if (text.includes("backend fails")) {
        active--
        const message = "secret: the device at 0xdead failed"
        return Stream.fail(new EngineError({ model: request.model, reason: "backend", message }))
      }
      return Stream.fromIterable(events).pipe(
        Stream.rechunk(1),
        Stream.tap(() => turn),
        Stream.zipWithIndex,
        Stream.mapEffect(([event, index]) =>
          index === 3 && text.includes("fails in the middle")
            ? Effect.fail(new EngineError({ model: request.model, reason: "notFinite", message: "secret" }))
            : Effect.succeed(event),
        ),
        Stream.onExit((exit) =>
          Effect.sync(() => {
            active--
            if (exit._tag === "Failure" && exit.cause.reasons.some(({ _tag }) => _tag === "Interrupt")) interrupted++
          }),
        ),
      )
    })

  const set = (model: string, step: number): Effect.Effect<void> =>
    Effect.sync(() => {
      steps.set(model, step)
      waiters.look()
    })

  return {
    requests,
    interrupted: () => interrupted,
    active: () => active,
    mostActive: () => mostActive,
    stream,
    generate: (request) =>
      Effect.flatMap(
        Stream.runFold(
          stream(request),
          (): Generated | undefined => undefined,
          (last, event) => (event._tag === "Finished" ? event.generated : last),
        ),
        (generated) => (generated === undefined ? Effect.die("no end") : Effect.succeed(generated)),
      ),
    models: Effect.sync(() =>
      Array.from(steps, ([name, step]) => ({ name, base: name === "base" ? null : "base", step, maxLength })),
    ),
    status: Effect.sync(() => ({
      running: active,
      waiting: 0,
      steps: 0,
      promptTokens: 0,
      cachedPromptTokens: 0,
      generatedTokens: 0,
      pages: { used: 0, kept: 0, free: 0 },
    })),
    awaitStep: waiters.await,
    loadAdapter: ({ name, step }) => set(name, step),
    unloadAdapter: (name) =>
      steps.delete(name)
        ? Effect.void
        : Effect.fail(new EngineError({ model: name, reason: "unknownModel", message: `${name}: unknown` })),
    loadWeights: ({ step }) => set("base", step),
  }
}
