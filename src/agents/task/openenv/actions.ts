/**
 * Makes the actions that a server of OpenEnv understands from what an agent writes: the server's JSON Schema says whether an
 * answer is the value of a single property, or an object of JSON. Servers with tools of the Model Context Protocol have actions
 * of the types `list_tools` and `call_tool`.
 */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { jsonValue } from "../../../base/text/text.ts"
import {
  alternativesOf,
  constantOf,
  propertiesOf,
  scalarType,
  schemaProblem,
} from "../../../spread/openenv/jsonSchemas.ts"
import { quoted } from "../../../spread/openenv/messages.ts"

/** How the answers of an agent become actions. */
export interface ActionForm {
  /** Whether the env has tools, which are listed by an action. */
  readonly hasTools: boolean
  /** A text that tells the agent how to answer; empty if any text is an answer. */
  readonly instruction: string
  /** Makes an action from an answer, or says what is wrong with it; null if answers are no actions but end the episode. */
  readonly action: ((answer: string) => Plain | { readonly problem: string }) | null
}

interface ActionSettings {
  readonly actionKey: string | null
  readonly actionDefaults: Plain
}

/** The property with data about an action, which all servers have and which does nothing. */
const metadata = "metadata"

const isToolAction = (schema: Plain): boolean =>
  ["call_tool", "list_tools"].some((type) => constantOf(schema, "type") === type)

/** Tells whether a Schema describes any action, as that of a server does whose only actions are calls of tools. */
const isGeneral = (schema: Plain): boolean =>
  isPlain(schema["properties"]) && Object.keys(propertiesOf(schema)).every((key) => key === metadata)

/** Returns the text in a fence of Markdown. One expression for all of it would take a square of time for a long run of spaces. */
const withoutFence = (answer: string): string => {
  const text = answer.trim()
  const [opening] = /^```(?:json)?\s*\n/i.exec(text) ?? []
  return opening !== undefined && text.length >= opening.length + 3 && text.endsWith("```")
    ? text.slice(opening.length, -3)
    : answer
}

const parsed = (answer: string): unknown => {
  try {
    return jsonValue(withoutFence(answer))
  } catch {
    return undefined
  }
}

/** Converts an answer to the type of a property. An answer that has another type stays a text, which the check refuses. */
const valueOf = (property: unknown, answer: string): unknown => {
  const type = scalarType(property)
  if (type === undefined || type === "string") return answer
  const value = parsed(answer.trim())
  return value === undefined ? answer : value
}

/** Returns the only property of an action that is not set already; undefined if there are several. */
const onlyKey = (schema: Plain, defaults: Plain): string | undefined => {
  const properties = propertiesOf(schema)
  const keys = Object.keys(properties).filter((key) => key !== metadata && !Object.hasOwn(defaults, key))
  return keys.length === 1 && scalarType(properties[keys[0]]) !== undefined ? keys[0] : undefined
}

const shownSchema = (schema: Plain): string => {
  const { [metadata]: _, ...properties } = propertiesOf(schema)
  const { properties: _all, title: _title, description: _description, ...rest } = schema
  return JSON.stringify({ ...rest, properties })
}

/** Returns how answers become actions, by the Schema of a server's actions. Returns what is wrong with a setting. */
export const actionForm = (
  actions: Plain,
  { actionKey, actionDefaults }: ActionSettings,
): ActionForm | { readonly problem: string } => {
  const alternatives = alternativesOf(actions)
  const own = alternatives.filter((one) => !isToolAction(one) && !isGeneral(one))
  const hasTools = alternatives.some((one) => isToolAction(one) || isGeneral(one))
  const schema = own.length === 1 ? own[0] : undefined
  const check = (action: Plain): Plain | { readonly problem: string } => {
    const problem = schemaProblem(schema ?? actions, action, actions)
    return problem === undefined ? action : { problem }
  }
  const known = schema === undefined ? {} : propertiesOf(schema)
  if (actionKey !== null && isPlain(schema?.["properties"]) && !Object.hasOwn(known, actionKey)) {
    const expected = Object.keys(known).filter((key) => key !== metadata)
    return { problem: `expected one of ${quoted(expected.join(", ")) || "no key"}, found "${actionKey}"` }
  }
  if (own.length === 0)
    return { hasTools, action: null, instruction: "Act by calling functions. Your answer ends the episode." }
  const key = actionKey ?? (schema === undefined ? undefined : onlyKey(schema, actionDefaults))
  if (key !== undefined) {
    const action = (answer: string) => check({ ...actionDefaults, [key]: valueOf(known[key], answer) })
    return { hasTools, action, instruction: "" }
  }
  return {
    hasTools,
    instruction: `Answer with an object of JSON by this schema: ${shownSchema(schema ?? actions)}`,
    action: (answer) => {
      const value = parsed(answer)
      return isPlain(value) ? check({ ...actionDefaults, ...value }) : { problem: "expected an object of JSON" }
    },
  }
}
