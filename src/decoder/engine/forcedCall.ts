/**
 * Makes the JSON Schema to which an answer is held that must call a tool. The prompt ends with the beginning of the call, so
 * the answer has only the rest: the arguments of the only tool, or a JSON object with the name of a tool and its arguments.
 *
 * A schema that the engine cannot hold an answer to, because it has other keywords, is replaced with one of any JSON object;
 * if the tool is `strict`, the request is refused instead.
 */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import type { ToolFormat } from "../../agents/lm/toolFormats/ToolFormat.ts"
import { compileJsonSchema } from "../constrained/jsonSchema.ts"
import { CompileWork } from "../constrained/Network.ts"
import { EngineError } from "../inference/EngineError.ts"

/** A tool of a request. */
export interface ForcedTool {
  readonly name: string
  /** The JSON Schema of the arguments. */
  readonly parameters?: unknown
  readonly strict?: unknown
}

/** The beginning of a call that the prompt has, and the schema of the rest; null if the rest can be any text. */
interface ForcedCall {
  readonly opening: string
  readonly schema: Plain | null
}

const anyObject: Plain = { type: "object" }

/** The keywords beside which a schema needs no type. */
const typing = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"]

/** Returns why the engine cannot hold an answer to a schema; undefined if it can. */
const problemOf = (schema: Plain, work?: CompileWork): string | undefined => {
  try {
    compileJsonSchema(schema, work)
    return undefined
  } catch (error) {
    if (error instanceof EngineError) return error.message
    throw error
  }
}

const refused = (tools: string, problem: string): EngineError =>
  new EngineError({ reason: "invalidRequest", part: "tools", message: `${tools} with strict: ${problem}` })

/** Returns the schema of a tool's arguments, which are an object. */
const parametersOf = ({ parameters }: ForcedTool): Plain => {
  if (!isPlain(parameters)) return anyObject
  return typing.some((keyword) => parameters[keyword] !== undefined) ? parameters : { type: "object", ...parameters }
}

/** Returns the same schema, or any object if that is not supported. Throws an `EngineError` if the tool is strict. */
const supportedOf = (tool: ForcedTool, work?: CompileWork): Plain => {
  const schema = parametersOf(tool)
  const problem = problemOf(schema, work)
  if (problem === undefined) return schema
  if (tool.strict === true) throw refused(`the parameters of ${tool.name}`, problem)
  return anyObject
}

/** The keywords whose values are data, in which a key `$ref` is no reference. */
const data = ["const", "enum", "default", "examples"]

/** Writes the references of a schema for the place that it has inside another one. */
const moved = (value: unknown, place: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => moved(item, place))
  if (!isPlain(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key === "$ref" && typeof inner === "string") return [key, inner.replace(/^#/, `#${place}`)]
      return [key, data.includes(key) ? inner : moved(inner, place)]
    }),
  )
}

/** The largest number of tools whose schemas are checked one by one. `CompileWork` limits the time of all of them together. */
const mostChecked = 16

/** Makes the schema of an object that calls one of the tools. */
const anyCall = (tools: ReadonlyArray<ForcedTool>, key: "arguments" | "parameters"): Plain => {
  const callOf = (name: Plain, values: unknown): Plain => ({
    type: "object",
    properties: { name, [key]: values },
    required: ["name", key],
    additionalProperties: false,
  })
  const oneOfThem = (schemaOf: (tool: ForcedTool) => Plain): Plain => ({
    anyOf: tools.map((tool, at) =>
      callOf({ const: tool.name }, moved(schemaOf(tool), `/anyOf/${at}/properties/${key}`)),
    ),
  })
  const whole = oneOfThem(parametersOf)
  const problem = problemOf(whole)
  if (problem === undefined) return whole
  if (tools.length <= mostChecked) {
    const work = new CompileWork()
    const supported = oneOfThem((tool) => supportedOf(tool, work))
    if (problemOf(supported) === undefined) return supported
  }
  if (tools.some(({ strict }) => strict === true)) throw refused("tools", problem)
  return callOf({ enum: tools.map(({ name }) => name) }, anyObject)
}

/** Returns the beginning of a call and the schema of its rest. `only` is the tool that must be called; null for any of them. */
export const forcedCall = (format: ToolFormat, tools: ReadonlyArray<ForcedTool>, only: string | null): ForcedCall => {
  const tool = tools.find(({ name }) => name === only)
  if (tool !== undefined) return { opening: format.opening(tool.name), schema: supportedOf(tool) }
  const { object } = format
  if (object === null) return { opening: format.opening(null), schema: null }
  return { opening: object.before, schema: anyCall(tools, object.argumentsKey) }
}
