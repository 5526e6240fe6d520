/**
 * Defines what the gateway must know of a protocol in which agents call it: how to decode a request, and how to encode an
 * answer or a failure. `chatCompletions.ts`, `responses.ts` and `messages.ts` are such protocols. All of this is pure.
 */
import { Effect, Result, Schema, SchemaIssue } from "effect"
import type { Plain } from "../../../base/config/plain.ts"
import type { ChatMessage, Completion, LmRequest, ToolSpec } from "../../lm/Chat.ts"
import { badRequest, type GatewayError } from "../GatewayError.ts"

/** A decoded request of an agent. */
export interface ClientRequest {
  /** The name of the model that the agent asks for. */
  readonly model: string
  readonly messages: ReadonlyArray<ChatMessage>
  /** The messages that a later request of the session may continue by the id of the answer; left out if none can. */
  readonly conversation?: ReadonlyArray<ChatMessage>
  /** The settings that the agent has chosen; those that it left out are left out here. */
  readonly settings: Partial<Omit<LmRequest, "model" | "messages">>
  /** Whether the answer is streamed. */
  readonly stream: boolean
  /** The number of answers that the agent wants; 1 if left out. */
  readonly choices?: number
  /** Whether a streamed answer ends with the numbers of tokens. Only OpenAI's chat completions let clients choose it. */
  readonly streamUsage: boolean
  /**
   * The parts of the request that have no place in our own form of requests, such as images. Only a model whose server
   * speaks the same protocol gets them.
   */
  readonly unmodelled: ReadonlyArray<string>
}

/** Facts about an answer that are not part of its completion. */
export interface AnswerFacts {
  /** The id of the answer, without the prefix that a protocol has. */
  readonly id: string
  /** The time of the answer, in seconds since 1970. */
  readonly created: number
  readonly streamUsage: boolean
}

/** Returns the messages of the conversation up to an earlier answer of the session; undefined for an unknown id. */
export type EarlierAnswers = (id: string) => ReadonlyArray<ChatMessage> | undefined

export interface ClientProtocol {
  readonly decode: (body: Plain, earlier: EarlierAnswers) => Effect.Effect<ClientRequest, GatewayError>
  /** Encodes a whole answer as the JSON body of a response. */
  readonly whole: (facts: AnswerFacts, completion: Completion) => object
  /** Encodes a whole answer as the text of all events of a stream. */
  readonly events: (facts: AnswerFacts, completion: Completion) => string
  /** Encodes a failure as the JSON body of a response. */
  readonly failure: (error: GatewayError) => object
  /** Encodes a failure after the beginning of a stream as the text of an event. */
  readonly failureEvent: (error: GatewayError) => string
  /** Returns the id by which a later request may continue an answer; left out if none can. */
  readonly answerId?: (id: string) => string
}

/** A field that clients may leave out or set to null. */
export const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** Makes the settings of a request from optional fields: leaves out those that are null or undefined. */
export const settingsOf = (fields: {
  readonly [K in keyof ClientRequest["settings"]]: ClientRequest["settings"][K] | null | undefined
}): ClientRequest["settings"] =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))

/** The largest numbers of messages and tools; far fewer fit into the context of any model. */
const most: Readonly<Record<string, number>> = { messages: 20_000, input: 20_000, tools: 2048, stop: 64 }

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Makes the error for a body, or for a part of it at a path, that a Schema refuses. It names the first wrong key. */
const wrong = ({ issue }: Schema.SchemaError, at: ReadonlyArray<PropertyKey> = []): GatewayError => {
  const [{ message, path = [] }] = issuesOf(issue).issues
  const keys = [...at, ...path].map((part) => String(typeof part === "object" ? part.key : part)).join(".")
  return badRequest(`${keys === "" ? "body" : keys}: ${message.charAt(0).toLowerCase()}${message.slice(1)}`)
}

/** Makes the function that decodes a list item by item. An object that it has decoded before is not decoded again. */
const listDecoder = (item: Schema.Codec<unknown, unknown>) => {
  const decode = Schema.decodeUnknownResult(item)
  const decoded = new WeakMap<object, unknown>()
  return (key: string, list: ReadonlyArray<unknown>): Result.Result<ReadonlyArray<unknown>, GatewayError> => {
    const values: Array<unknown> = []
    for (const [at, one] of list.entries()) {
      const isObject = typeof one === "object" && one !== null
      const result = isObject && decoded.has(one) ? Result.succeed(decoded.get(one)) : decode(one)
      if (Result.isFailure(result)) return Result.fail(wrong(result.failure, [key, at]))
      if (isObject) decoded.set(one, result.success)
      values.push(result.success)
    }
    return Result.succeed(values)
  }
}

/**
 * Makes a function that decodes a body. It fails with an error that names the first wrong key. `items` has the Schemas of the items
 * of long lists, which the requests of a session repeat as the same objects (`SharedItems`): each object is decoded once.
 */
export const decoder = <S extends Schema.Codec<object, unknown>>(
  schema: S,
  items: Readonly<Record<string, Schema.Codec<unknown, unknown>>>,
): ((body: Plain) => Effect.Effect<S["Type"], GatewayError>) => {
  const decode = Schema.decodeUnknownResult(schema)
  const decoders = Object.entries(items).map(([key, item]) => [key, listDecoder(item)] as const)
  return (body) => {
    for (const [key, limit] of Object.entries(most)) {
      const list = body[key]
      if (Array.isArray(list) && list.length > limit) {
        return Effect.fail(badRequest(`${key}: expected at most ${limit} items, found ${list.length}`))
      }
    }
    const lists: Record<string, ReadonlyArray<unknown>> = {}
    // The Schema of the body sees only the first item, because an empty list may be wrong.
    const firsts: Record<string, ReadonlyArray<unknown>> = {}
    for (const [key, decodeList] of decoders) {
      const list = body[key]
      if (!Array.isArray(list)) continue
      const decoded = decodeList(key, list)
      if (Result.isFailure(decoded)) return Effect.fail(decoded.failure)
      lists[key] = decoded.success
      firsts[key] = list.slice(0, 1)
    }
    const whole = decode({ ...body, ...firsts })
    return Result.isFailure(whole)
      ? Effect.fail(wrong(whole.failure))
      : Effect.succeed(Object.assign(whole.success, lists))
  }
}

/** Lists the keys of a body that would change the answer, but that our own form of requests does not have. */
export const unmodelledKeys = (
  body: Plain,
  keys: Readonly<Record<string, (value: unknown) => boolean>>,
): ReadonlyArray<string> =>
  Object.entries(keys).flatMap(([key, isHarmless]) => {
    const value = body[key]
    return value === undefined || value === null || isHarmless(value) ? [] : [key]
  })

/** If a request demands the call of one tool, leaves only this tool, because our requests can only demand some call. */
export const onlyTool = (tools: ReadonlyArray<ToolSpec>, name: string | undefined): ReadonlyArray<ToolSpec> =>
  name === undefined ? tools : tools.filter((tool) => tool.name === name)

/** Returns the names of the tools that an assistant's messages called, by the ids of the calls. */
export const calledTools = (): {
  readonly add: (id: string, name: string) => void
  readonly of: (id: string) => string
} => {
  const names = new Map<string, string>()
  return { add: (id, name) => void names.set(id, name), of: (id) => names.get(id) ?? "" }
}

/** Encodes data as one server-sent event. */
export const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`
