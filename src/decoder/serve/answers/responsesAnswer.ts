/** Encodes answers of `POST /v1/responses`: whole ones, and the events of streamed ones. These are pure functions. */
import type { Generated } from "../../inference/Engine.ts"
import type { AnswerEvent, ToolReader } from "../../../agents/lm/toolFormats/ToolFormat.ts"
import type { ApiError } from "../ApiError.ts"
import type { ChoiceEvent } from "./choices.ts"
import type { ResponsesBody } from "./responsesBody.ts"
import { fingerprint, weightsBody } from "../weightsUsed.ts"

/** The parts of a request on which its answer depends. */
interface ResponseQuestion {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly body: ResponsesBody
  readonly promptTokens: number
  /** The number of messages in the conversation. It makes the ids of calls different in each turn. */
  readonly turns: number
  readonly reader: ToolReader
}

interface MessageItem {
  readonly type: "message"
  readonly id: string
  text: string
}

interface CallItem {
  readonly type: "function_call"
  readonly id: string
  readonly callId: string
  readonly name: string
  text: string
}

type Item = MessageItem | CallItem

type Status = "in_progress" | "completed" | "incomplete"

const textPart = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })

const itemBody = (item: Item, status: Status) =>
  item.type === "message"
    ? {
        type: "message",
        id: item.id,
        status,
        role: "assistant",
        content: status === "in_progress" ? [] : [textPart(item.text)],
      }
    : {
        type: "function_call",
        id: item.id,
        call_id: item.callId,
        name: item.name,
        arguments: status === "in_progress" ? "" : item.text,
        status,
      }

/** The events of an answer, and the answer itself. Each event is the data of one server-sent event. */
export class ResponseEvents {
  private readonly question: ResponseQuestion
  private readonly items: Array<Item> = []
  private calls = 0
  private sequence = 0
  private generated: Generated | undefined

  constructor(question: ResponseQuestion) {
    this.question = question
  }

  /** Returns the events before the first token. */
  begin(): ReadonlyArray<object> {
    const response = this.response("in_progress")
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })]
  }

  push({ event }: ChoiceEvent): ReadonlyArray<object> {
    const { reader } = this.question
    const begun = this.sequence === 0 ? this.begin() : []
    if (event._tag === "Token") return [...begun, ...this.read(reader.push(event.text))]
    this.generated = event.generated
    const rest = this.read([...reader.push(event.text), ...reader.end()])
    // An answer without any text still has a message.
    const message = this.items.length === 0 ? this.open({ type: "message", id: this.itemId("msg"), text: "" }) : []
    return [...begun, ...rest, ...message, ...this.close()]
  }

  end(): ReadonlyArray<object> {
    const status = this.status
    return [this.event(`response.${status}`, { response: this.response(status) })]
  }

  failed({ code, message, param }: ApiError): object {
    return this.event("error", { code, message, param })
  }

  /** Returns the whole answer after `push` of its events. */
  whole(): object {
    return this.response(this.status)
  }

  private get status(): "completed" | "incomplete" {
    return this.generated?.finishReason === "length" ? "incomplete" : "completed"
  }

  private read(events: ReadonlyArray<AnswerEvent>): ReadonlyArray<object> {
    const all: Array<object> = []
    for (const event of events) {
      const last = this.items.at(-1)
      if (event._tag === "Call") {
        this.calls++
        if (!this.isKept) continue
        const { turns } = this.question
        const callId = `call_${turns}_${this.calls - 1}`
        all.push(
          ...this.close(),
          ...this.open({ type: "function_call", id: this.itemId("fc"), callId, name: event.name, text: "" }),
        )
      } else if (event._tag === "Arguments") {
        if (this.isKept && last?.type === "function_call") all.push(this.add(last, event.text))
      } else {
        let message = last
        if (message?.type !== "message") {
          message = { type: "message", id: this.itemId("msg"), text: "" }
          all.push(...this.close(), ...this.open(message))
        }
        all.push(this.add(message, event.text))
      }
    }
    return all
  }

  /** Whether the last call is part of the answer: without parallel calls, only the first one is. */
  private get isKept(): boolean {
    return this.calls <= 1 || this.question.body.parallel_tool_calls !== false
  }

  private itemId(prefix: string): string {
    return `${prefix}_${this.question.id.replace(/^resp_/, "")}_${this.items.length}`
  }

  private open(item: Item): ReadonlyArray<object> {
    this.items.push(item)
    const place = { output_index: this.items.length - 1 }
    const added = this.event("response.output_item.added", { ...place, item: itemBody(item, "in_progress") })
    if (item.type === "function_call") return [added]
    const part = { item_id: item.id, ...place, content_index: 0, part: textPart("") }
    return [added, this.event("response.content_part.added", part)]
  }

  private add(item: Item, delta: string): object {
    item.text += delta
    const place = { item_id: item.id, output_index: this.items.length - 1 }
    return item.type === "message"
      ? this.event("response.output_text.delta", { ...place, content_index: 0, delta, logprobs: [] })
      : this.event("response.function_call_arguments.delta", { ...place, delta })
  }

  /** Ends the last item. */
  private close(): ReadonlyArray<object> {
    const item = this.items.at(-1)
    if (item === undefined) return []
    const place = { item_id: item.id, output_index: this.items.length - 1 }
    const { text } = item
    const status = this.generated === undefined ? "completed" : this.status
    const parts =
      item.type === "function_call"
        ? [this.event("response.function_call_arguments.done", { ...place, name: item.name, arguments: text })]
        : [
            this.event("response.output_text.done", { ...place, content_index: 0, text, logprobs: [] }),
            this.event("response.content_part.done", { ...place, content_index: 0, part: textPart(text) }),
          ]
    const done = { output_index: place.output_index, item: itemBody(item, status) }
    return [...parts, this.event("response.output_item.done", done)]
  }

  private event(type: string, data: object): object {
    return { type, sequence_number: this.sequence++, ...data }
  }

  private response(status: Status): object {
    const { id, created, model, body, promptTokens } = this.question
    const { generated } = this
    const outputTokens = generated?.tokens.length ?? 0
    const last = this.items.length - 1
    return {
      id,
      object: "response",
      created_at: created,
      status,
      error: null,
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      model,
      output: this.items.map((item, index) => itemBody(item, index === last ? status : "completed")),
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      store: false,
      temperature: body.temperature ?? 1,
      text: { format: body.text?.format ?? { type: "text" } },
      tool_choice: body.tool_choice ?? "auto",
      tools: body.tools ?? [],
      top_p: body.top_p ?? 1,
      truncation: "disabled",
      usage:
        generated === undefined
          ? null
          : {
              input_tokens: promptTokens,
              input_tokens_details: { cached_tokens: 0 },
              output_tokens: outputTokens,
              output_tokens_details: { reasoning_tokens: 0 },
              total_tokens: promptTokens + outputTokens,
            },
      metadata: {},
      ...(generated === undefined
        ? {}
        : { weights: weightsBody(generated.weights), system_fingerprint: fingerprint([generated.weights]) }),
    }
  }
}
