/** Reads the formats of answers: OpenAI's `response_format`, and vLLM's `structured_outputs`. */
import { Effect, Option, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import type { EngineError, RequestedSampling } from "../inference/Engine.ts"
import { type ApiError, badRequest } from "./ApiError.ts"
import { type ChatBody, decoder, maybe } from "./requests.ts"

type Formats = Pick<ChatBody, "response_format" | "structured_outputs">
type AnswerFormat = Pick<RequestedSampling, "jsonSchema" | "textFormat">

const param = "structured_outputs"

/** The supported keys of `structured_outputs`, of which a request has one. */
const StructuredOutputs = Schema.Struct({
  json: maybe(Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.String])),
  json_object: maybe(Schema.Boolean),
  regex: maybe(Schema.NonEmptyString),
  choice: maybe(Schema.NonEmptyArray(Schema.NonEmptyString)),
})
type StructuredOutputs = typeof StructuredOutputs.Type

const decodeOutputs = decoder(StructuredOutputs, param)
const decodeJson = Schema.decodeUnknownOption(jsonText(Schema.Record(Schema.String, Schema.Unknown)))

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false

/** Returns the JSON Schema of the answers by `response_format`; null if they can be any text. */
const jsonSchemaOf = ({ response_format: format }: Formats) => {
  if (!format || format.type === "text") return null
  return format.type === "json_schema" ? format.json_schema.schema : { type: "object" }
}

/** Returns the format of the answers to a request; without any, they can be any text. */
export const answerFormatOf = Effect.fnUntraced(function* (request: Formats): Effect.fn.Return<AnswerFormat, ApiError> {
  const jsonSchema = jsonSchemaOf(request)
  const { structured_outputs: structured } = request
  if (structured === undefined || structured === null) return jsonSchema === null ? {} : { jsonSchema }
  if (jsonSchema !== null) return yield* badRequest(`${param}: expected no response_format beside it`, param)
  const keys = Object.keys(structured).filter((key) => isSet(structured[key]))
  const [key] = keys
  const supported = Object.keys(StructuredOutputs.fields)
  if (keys.length !== 1 || !supported.includes(key)) {
    const found =
      keys.length === 0
        ? "none"
        : keys
            .slice(0, 8)
            .map((one) => one.slice(0, 64))
            .join(", ")
    return yield* badRequest(`${param}: expected one of ${supported.join(", ")}; found ${found}`, param)
  }
  return yield* formatOf(yield* decodeOutputs(structured))
})

const formatOf = Effect.fnUntraced(function* ({
  json,
  regex,
  choice,
}: StructuredOutputs): Effect.fn.Return<AnswerFormat, ApiError> {
  if (typeof regex === "string") return { textFormat: { type: "regex", regex } }
  if (Array.isArray(choice)) return { textFormat: { type: "choice", choices: choice } }
  if (json === undefined || json === null) return { jsonSchema: { type: "object" } }
  if (typeof json !== "string") return { jsonSchema: json }
  const jsonSchema = Option.getOrNull(decodeJson(json))
  if (jsonSchema !== null) return { jsonSchema }
  return yield* badRequest(`${param}.json: expected a JSON Schema, as an object or as its text`, `${param}.json`)
})

/** Converts a format that the engine refuses to an error that names its key. */
export const formatRefusedAs =
  (key: string) =>
  (error: EngineError): EngineError | ApiError =>
    error.part === "jsonSchema" ? badRequest(error.message, key) : error

/** Returns the key of a request that says in which format its answers are. */
export const formatKey = ({ structured_outputs: structured }: Formats): string =>
  structured === undefined || structured === null ? "response_format" : param
