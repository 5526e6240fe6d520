/**
 * A server on this machine that speaks OpenAI's protocols, and the messages of Anthropic's, and goes wrong in whatever
 * way it is told. It keeps what it was asked.
 *
 * @example
 * ```ts
 * const server = yield* serve({ say: () => "Hello", fault: faults({ seed: 1, share: 0.05 }) })
 * const lm = yield* OpenAi.make({ model: "local", baseUrl: server.url })
 * ```
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"
import type { ToolCall } from "../../../src/agents/lm/Chat.ts"
import { bytes } from "../../../src/base/tokens/words.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { serveHttp } from "../../servers/listen.ts"

export interface Body {
  readonly model: string
  readonly messages: ReadonlyArray<{ readonly role: string; readonly [key: string]: unknown }>
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
  readonly logprobs?: boolean
  readonly return_token_ids?: boolean
  readonly [key: string]: unknown
}

export interface Answer {
  readonly content?: string | null
  readonly toolCalls?: ReadonlyArray<ToolCall>
  /** In the words of the protocol. */
  readonly finish?: string | null
  /** The reason why the server does not answer. */
  readonly refusal?: string
}

/** The ways in which an answer goes wrong; a `slow` one is right, but late. */
export type Fault =
  | { readonly kind: "none" | "hung" | "stalled" | "reset" | "dropped" | "garbled" }
  | { readonly kind: "slow"; readonly milliseconds: number }
  | {
      readonly kind: "status"
      readonly status: number
      readonly body?: string
      readonly headers?: Readonly<Record<string, string>>
    }
  | {
      readonly kind: "body"
      readonly body: string | Uint8Array
      readonly headers?: Readonly<Record<string, string>>
    }
  /** Goes on for ever. */
  | { readonly kind: "endless"; readonly status: number; readonly chunk: string }

export const none: Fault = { kind: "none" }
export const busy: Fault = {
  kind: "status",
  status: 429,
  body: '{"error":{"message":"Too fast.","code":"rate_limit_exceeded"}}',
  headers: { "retry-after": "2" },
}
export const overloaded: Fault = { kind: "status", status: 500, body: '{"error":{"message":"It broke."}}' }

export interface Asked {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: Body
  readonly fault: Fault
}

export interface Options {
  /** The answer to a request that came `before` times already. */
  readonly say?: (body: Body, before: number) => string | Answer
  readonly fault?: (text: string, before: number) => Fault
  /** The key that is right; any is, if left out. */
  readonly key?: string
  /** The server whose form of token ids is used. */
  readonly as?: "vllm" | "llama.cpp" | "openai"
}

export interface Server {
  readonly url: string
  readonly asked: ReadonlyArray<Asked>
  /** Counts the answers that the client didn't wait for. */
  readonly left: () => number
  /** Waits until a request arrives or is closed. */
  readonly until: (condition: () => boolean) => Effect.Effect<void>
}

/** A share of all tries goes wrong: the same for the same request and try, in whatever order they come. */
export const faults = (options: {
  readonly seed: number
  readonly share: number
  readonly kinds?: ReadonlyArray<Fault>
}): ((text: string, before: number) => Fault) => {
  const kinds = options.kinds ?? [busy, overloaded, { kind: "garbled" }, { kind: "dropped" }, { kind: "reset" }]
  return (text, before) => {
    const chance = stream(options.seed, "fault", text, before)
    return chance.uniform() < options.share ? kinds[chance.integer(kinds.length)] : none
  }
}

const usage = (body: Body, content: string) => ({
  prompt_tokens: bytes.encode(JSON.stringify(body.messages)).length,
  completion_tokens: bytes.encode(content).length,
  completion_tokens_details: { reasoning_tokens: 0 },
})

const wireCalls = (calls: ReadonlyArray<ToolCall>) =>
  calls.map((call, index) => ({
    index,
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }))

/** Gives the tokens of a request and its answer, in the form of the server. */
const traced = (body: Body, content: string, as: NonNullable<Options["as"]>) => {
  const ids = bytes.encode(content)
  const logprobs = {
    content: ids.map((id, at) => ({
      token: String.fromCharCode(id - 5),
      logprob: -at / 8,
      ...(as === "llama.cpp" ? { id } : {}),
    })),
  }
  const withIds = as === "vllm" && body.return_token_ids === true
  return {
    choice: { ...(body.logprobs === true ? { logprobs } : {}), ...(withIds ? { token_ids: ids } : {}) },
    top: withIds ? { prompt_token_ids: bytes.encode(JSON.stringify(body.messages)) } : {},
  }
}

const pieces = (text: string): ReadonlyArray<string> => text.match(/\s*\S+|\s+/g) ?? []

const openAi = (body: Body, answer: Answer, as: NonNullable<Options["as"]>): ReadonlyArray<string> => {
  const { toolCalls = [], finish = toolCalls.length > 0 ? "tool_calls" : "stop" } = answer
  const content = answer.content ?? null
  const all = traced(body, content ?? "", as)
  const about = { id: "1", model: `${body.model}-2026` }
  const calls = wireCalls(toolCalls)
  if (body.stream !== true) {
    const refused = answer.refusal === undefined ? {} : { refusal: answer.refusal }
    const message = { role: "assistant", content, ...refused, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
    const choices = [{ index: 0, message, finish_reason: finish, ...all.choice }]
    return [
      JSON.stringify({ ...about, object: "chat.completion", choices, usage: usage(body, content ?? ""), ...all.top }),
    ]
  }
  const piece = (choices: ReadonlyArray<unknown>, more: object = {}): string =>
    `data: ${JSON.stringify({ ...about, object: "chat.completion.chunk", choices, ...more })}\n\n`
  return [
    ": a comment, to keep the connection\n\n",
    piece([{ index: 0, delta: { role: "assistant", content: content === null ? null : "" } }], all.top),
    ...pieces(content ?? "").map((text) =>
      piece([{ index: 0, delta: { content: text }, ...traced(body, text, as).choice }]),
    ),
    ...calls.flatMap((call) => {
      const { name, arguments: said } = call.function
      const half = Math.ceil(said.length / 2)
      return [
        piece([{ index: 0, delta: { tool_calls: [{ ...call, function: { name, arguments: "" } }] } }]),
        ...[said.slice(0, half), said.slice(half)].map((part) =>
          piece([{ index: 0, delta: { tool_calls: [{ index: call.index, function: { arguments: part } }] } }]),
        ),
      ]
    }),
    ...pieces(answer.refusal ?? "").map((refusal) => piece([{ index: 0, delta: { refusal } }])),
    piece([{ index: 0, delta: {}, finish_reason: finish }]),
    ...(body.stream_options?.include_usage === true ? [piece([], { usage: usage(body, content ?? "") })] : []),
    "data: [DONE]\n\n",
  ]
}

const anthropic = (body: Body, { content = null, toolCalls = [], finish }: Answer): ReadonlyArray<string> => {
  const about = { type: "message", role: "assistant", model: `${body.model}-2026` }
  const used = { input_tokens: 7, cache_read_input_tokens: 3 }
  const stop_reason = finish === undefined ? (toolCalls.length > 0 ? "tool_use" : "end_turn") : finish
  const thought = { type: "thinking", thinking: "Hm.", signature: "x" }
  const called = toolCalls.map(({ id, name, arguments: said }) => ({ part: { type: "tool_use", id, name }, said }))
  if (body.stream !== true) {
    const parts = [
      thought,
      ...(content === null ? [] : [{ type: "text", text: content }]),
      ...called.map(({ part, said }) => ({ ...part, input: JSON.parse(said) })),
    ]
    return [JSON.stringify({ ...about, content: parts, stop_reason, usage: { ...used, output_tokens: 5 } })]
  }
  const event = (type: string, more: object = {}): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const block = (index: number, begun: object, deltas: ReadonlyArray<object>): ReadonlyArray<string> => [
    event("content_block_start", { index, content_block: begun }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ]
  return [
    event("message_start", {
      message: { ...about, content: [], stop_reason: null, usage: { ...used, output_tokens: 1 } },
    }),
    event("ping"),
    ...block(0, { ...thought, thinking: "" }, [{ type: "thinking_delta", thinking: "Hm." }]),
    ...(content === null
      ? []
      : block(
          1,
          { type: "text", text: "" },
          pieces(content).map((text) => ({ type: "text_delta", text })),
        )),
    ...called.flatMap(({ part, said }, at) => {
      // For a call without arguments, Anthropic streams an empty text.
      const deltas = (said === "{}" ? [""] : [said.slice(0, 3), said.slice(3)]).map((json) => ({
        type: "input_json_delta",
        partial_json: json,
      }))
      return block(2 + at, { ...part, input: {} }, deltas)
    }),
    event("message_delta", { delta: { stop_reason }, usage: { input_tokens: null, output_tokens: 5 } }),
    event("message_stop"),
  ]
}

/** Answers in OpenAI's responses, with items and events that only this protocol has. */
const responses = (
  body: Body,
  { content = null, toolCalls = [], finish, refusal }: Answer,
  nth: number,
): ReadonlyArray<string> => {
  const thought = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "secret" }
  const parts = [
    ...(content === null ? [] : [{ type: "output_text", text: content, annotations: [] }]),
    ...(refusal === undefined ? [] : [{ type: "refusal", refusal }]),
  ]
  const message = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: parts }
  const calls = toolCalls.map((call, at) => ({
    type: "function_call",
    id: `fc_${at}`,
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
    status: "completed",
  }))
  const isCut = finish === "length"
  const usage = { input_tokens: 7, output_tokens: 5, output_tokens_details: { reasoning_tokens: 2 }, total_tokens: 12 }
  const begun = { id: `resp_server_${nth}`, object: "response", model: `${body.model}-2026`, unknown_field: [1] }
  const whole = {
    ...begun,
    status: isCut ? "incomplete" : "completed",
    error: null,
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output: [thought, ...(parts.length === 0 ? [] : [message]), ...calls],
    usage,
  }
  if (body.stream !== true) return [JSON.stringify(whole)]
  const inText = { item_id: message.id, output_index: 1, content_index: 0 }
  let sequence_number = 0
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more, sequence_number: sequence_number++ })}\n\n`
  return [
    event("response.created", { response: { ...begun, status: "in_progress", output: [] } }),
    event("response.output_item.added", { output_index: 0, item: thought }),
    event("response.output_item.done", { output_index: 0, item: thought }),
    ...(content === null
      ? []
      : [
          event("response.output_item.added", { output_index: 1, item: { ...message, content: [] } }),
          event("response.content_part.added", {
            ...inText,
            part: { type: "output_text", text: "", annotations: [] },
          }),
          ...pieces(content).map((delta) => event("response.output_text.delta", { ...inText, delta })),
        ]),
    ...calls.flatMap((item, at) => [
      event("response.output_item.added", { output_index: 2 + at, item: { ...item, arguments: "" } }),
      event("response.function_call_arguments.delta", { output_index: 2 + at, delta: item.arguments }),
      event("response.output_item.done", { output_index: 2 + at, item }),
    ]),
    event(isCut ? "response.incomplete" : "response.completed", { response: whole }),
  ]
}

const keyOf = (headers: IncomingHttpHeaders): string | undefined =>
  headers["x-api-key"]?.toString() ?? headers.authorization?.replace(/^Bearer /, "")

const readAll = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** In two writes, so that there is a middle to break off in. */
const write = (response: ServerResponse, type: string, parts: ReadonlyArray<string>, fault: Fault): void => {
  const text = parts.join("")
  response.writeHead(200, { "content-type": type, ...(fault.kind === "body" ? fault.headers : {}) })
  const half = text.slice(0, Math.floor(text.length / 2))
  switch (fault.kind) {
    case "stalled":
      response.write(half)
      return
    case "dropped":
      response.write(half, () => setImmediate(() => response.destroy()))
      return
    case "garbled":
      response.end(half)
      return
    case "body":
      response.end(fault.body)
      return
    default:
      for (const part of parts) response.write(part)
      response.end()
  }
}

export const serve = (options: Options = {}): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<Asked> = []
    const seen = new Map<string, number>()
    const watchers = new Set<() => void>()
    const tell = (): void => watchers.forEach((watcher) => watcher())
    let left = 0

    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      let fault: Fault = none
      response.on("close", () => {
        // With these two faults, the server itself closes the connection.
        if (response.writableFinished || fault.kind === "reset" || fault.kind === "dropped") return
        left++
        tell()
      })
      const path = request.url ?? ""
      const text = await readAll(request)
      const body: Body = JSON.parse(text)
      const before = seen.get(text) ?? 0
      seen.set(text, before + 1)
      fault = options.fault?.(text, before) ?? none
      asked.push({ path, headers: request.headers, text, body, fault })
      tell()
      if (fault.kind === "hung") return
      if (fault.kind === "reset") return void request.socket.destroy()
      if (fault.kind === "slow") await pause(fault.milliseconds)
      if (options.key !== undefined && keyOf(request.headers) !== options.key) {
        const message = `Incorrect API key provided: ${keyOf(request.headers)}.\nFind yours in your account.`
        return void response.writeHead(401).end(JSON.stringify({ error: { message, code: "invalid_api_key" } }))
      }
      if (fault.kind === "endless") {
        response.writeHead(fault.status, { "content-type": "application/json" })
        const { chunk } = fault
        const more = (): void => {
          while (!response.destroyed && response.write(chunk));
          if (!response.destroyed) response.once("drain", more)
        }
        return more()
      }
      if (fault.kind === "status") return void response.writeHead(fault.status, fault.headers).end(fault.body)
      if (path.endsWith("/apply-template"))
        return void response.end(JSON.stringify({ prompt: JSON.stringify(body.messages) }))
      if (path.endsWith("/tokenize"))
        return void response.end(JSON.stringify({ tokens: bytes.encode(String(body.content)) }))
      const said = options.say?.(body, before) ?? "Hello"
      const whole = typeof said === "string" ? { content: said } : said
      const type = body.stream === true ? "text/event-stream" : "application/json"
      if (path.endsWith("/v1/responses")) write(response, type, responses(body, whole, asked.length), fault)
      else if (path.endsWith("/v1/messages")) write(response, type, anthropic(body, whole), fault)
      else if (path.endsWith("/v1/chat/completions")) {
        write(response, type, openAi(body, whole, options.as ?? "openai"), fault)
      } else if (path.endsWith("/v1/messages/count_tokens")) write(response, type, ['{"input_tokens":42}'], fault)
      else if (path.endsWith("/v1/embeddings")) write(response, type, ['{"data":[]}'], fault)
      else response.writeHead(404).end('{"detail":"Not Found"}')
    }

    const { url } = yield* serveHttp((request, response) => void answer(request, response))
    return {
      url,
      asked,
      left: () => left,
      until: (condition) =>
        Effect.callback<void>((resume) => {
          const check = (): void => {
            if (!condition()) return
            watchers.delete(check)
            resume(Effect.void)
          }
          watchers.add(check)
          check()
          return Effect.sync(() => watchers.delete(check))
        }),
    }
  })
