/**
 * Renders conversations by the chat template of a model: a program in Jinja that is stored with the tokenizer. Rendering
 * depends on its arguments only: `strftime_now`, which some templates call for the date, is not defined here, and these
 * templates then use a date of their own, or the variable `date_string`.
 *
 * @example
 * ```ts
 * const template = yield* make({ default: chatMl }, { path: "chat_template.jinja" })
 * const messages = [{ role: "user", content: "Hello!" }]
 * yield* template.render({ messages, addGenerationPrompt: true })
 * // "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n"
 * ```
 */
import { Environment, parse, tokenize } from "@huggingface/jinja"
import { Effect } from "effect"
import { FormatError } from "../formats/FormatError.ts"
import { messageOf, parsedJson } from "../text/text.ts"
import { isPlain } from "../config/plain.ts"
import { BoundedInterpreter, type ParsedTemplate } from "./templateWork.ts"

/**
 * A message as templates read it, which is also how OpenAI's protocol writes it: `role`, `content`, and for tools
 * `tool_calls` and `tool_call_id`. The arguments of a call are an object, or the JSON text that a model wrote.
 */
export type TemplateMessage = Readonly<Record<string, unknown>>

/** A tool as OpenAI's protocol writes it: `type: "function"`, and `function` with a name and a JSON Schema. */
export type TemplateTool = Readonly<Record<string, unknown>>

export interface ChatRenderOptions {
  readonly messages: ReadonlyArray<TemplateMessage>
  /** The tools that the model can call. An empty list is the same as none. */
  readonly tools?: ReadonlyArray<TemplateTool> | undefined
  /** Ends the text with the beginning of an answer of the assistant. Default: false. */
  readonly addGenerationPrompt?: boolean | undefined
  /** Ends the text inside the last message, so that a model continues that message. Default: false. */
  readonly continueFinalMessage?: boolean | undefined
  /** Further variables of the template, e.g. `{ date_string: "26 Jul 2024", enable_thinking: false }`. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined
}

export interface ChatTemplate {
  readonly path: string
  /** The text of the default template. Other code reads in it how the model writes tool calls. */
  readonly source: string
  readonly render: (options: ChatRenderOptions) => Effect.Effect<string, FormatError>
}

export interface TemplateOptions {
  /** The file of the template, for messages. */
  readonly path: string
  /** The names of special tokens, which templates refer to, e.g. `{ bos_token: "<s>" }`. */
  readonly tokens?: Readonly<Record<string, string>> | undefined
}

/** The source of the ChatML template, for models that have none of their own. */
export const chatMl = `{%- if tools -%}
{{- '<|im_start|>system\\n' -}}
{%- if messages and messages[0].role == 'system' -%}{{- messages[0].content + '\\n\\n' -}}{%- endif -%}
{{- 'You can call these functions:\\n<tools>' -}}
{%- for tool in tools -%}{{- '\\n' + (tool | tojson) -}}{%- endfor -%}
{{- '\\n</tools>\\n\\nTo call one, write its name and arguments as JSON within <tool_call></tool_call> tags:\\n' -}}
{{- '<tool_call>\\n{"name": <name>, "arguments": <arguments>}\\n</tool_call><|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if not (tools and loop.first and message.role == 'system') -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}
{%- if message.content or not loop.first -%}{{- '\\n' -}}{%- endif -%}
{{- '<tool_call>\\n' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) -}}
{{- '\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
`

/**
 * Makes a template from its source, or from several by name: `tool_use` is for requests with tools, and `default` for
 * others. Fails if a source is not valid.
 */
export const make = Effect.fnUntraced(function* (
  sources: Readonly<Record<string, string>>,
  { path, tokens = {} }: TemplateOptions,
): Effect.fn.Return<ChatTemplate, FormatError> {
  const wrong = (problem: string): FormatError => new FormatError({ path, message: `${path}: ${problem}` })
  const programs = new Map<string, ParsedTemplate>()
  for (const [name, source] of Object.entries(sources)) {
    const problem = problemOfSource(source)
    if (problem !== undefined) return yield* wrong(`the template is not valid: ${problem}`)
    const program = yield* Effect.try({
      try: (): ParsedTemplate => parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })),
      catch: (error) => wrong(`the template is not valid: ${messageOf(error)}`),
    })
    programs.set(name, program)
  }
  const render: ChatTemplate["render"] = Effect.fnUntraced(function* ({
    messages,
    tools = [],
    addGenerationPrompt = false,
    continueFinalMessage = false,
    variables = {},
  }: ChatRenderOptions) {
    const program = (tools.length === 0 ? undefined : programs.get("tool_use")) ?? programs.get("default")
    if (program === undefined) {
      return yield* wrong(`expected a template named "default", found ${[...programs.keys()].join(", ") || "none"}`)
    }
    if (addGenerationPrompt && continueFinalMessage) {
      return yield* wrong("addGenerationPrompt and continueFinalMessage exclude each other; set one of them")
    }
    const shown = messages.map(withParsedArguments)
    const last = shown.at(-1)
    if (continueFinalMessage && typeof last?.content !== "string") {
      return yield* wrong("continueFinalMessage: expected a last message whose content is a text")
    }
    const marked = continueFinalMessage && last !== undefined ? [...shown.slice(0, -1), withMark(last)] : shown
    const text = yield* Effect.try({
      try: () =>
        run(program, {
          ...tokens,
          messages: marked,
          tools: tools.length === 0 ? null : tools,
          documents: null,
          add_generation_prompt: addGenerationPrompt,
          ...variables,
        }),
      catch: (error) => wrong(messageOf(error)),
    })
    if (!continueFinalMessage) return text
    const at = text.lastIndexOf(mark.trimEnd())
    if (at < 0) return yield* wrong("continueFinalMessage: the template does not show the content of the last message")
    // If the template trims contents, it has trimmed the mark's own space, too.
    return text.startsWith(mark, at) ? text.slice(0, at) : text.slice(0, at).trimEnd()
  })
  return { path, source: Object.values(sources).join("\n"), render }
})

/**
 * This text temporarily marks the end of the last message. It ends with a space, which shows whether the template trims
 * contents.
 */
const mark = "\u{F8FF}end of the last message\u{F8FF} "

const withMark = (message: TemplateMessage): TemplateMessage => ({
  ...message,
  content: `${typeof message.content === "string" ? message.content : ""}${mark}`,
})

/** Parses the arguments of a tool call if they are JSON text, since templates write them as JSON themselves. */
const withParsedArguments = (message: TemplateMessage): TemplateMessage => {
  if (!Array.isArray(message.tool_calls)) return message
  const calls = message.tool_calls.map((call: unknown) => {
    if (!isPlain(call) || !isPlain(call.function)) return call
    const text = call.function.arguments
    const parsed = typeof text === "string" ? parsedJson(text) : undefined
    return isPlain(parsed) ? { ...call, function: { ...call.function, arguments: parsed } } : call
  })
  return { ...message, tool_calls: calls }
}

/** The names that every template can use. `strftime_now` is left out, because a text must not depend on the clock. */
const globals: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  raise_exception: (message: unknown) => {
    throw new Error(typeof message === "string" ? message.slice(0, mostInMessage) : "the template refuses this")
  },
  range: (first: number, stop: number | null = null, step = 1): ReadonlyArray<number> => {
    const [from, to] = stop === null ? [0, first] : [first, stop]
    for (const value of [from, to, step]) if (!Number.isInteger(value)) throw new Error("range: expected whole numbers")
    if (step === 0) throw new Error("range: expected a step that is not 0")
    if (Math.abs(to - from) / Math.abs(step) > mostInRange) {
      throw new Error(`range: expected at most ${mostInRange} numbers`)
    }
    return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => from + index * step)
  },
}

const run = (program: ParsedTemplate, variables: Readonly<Record<string, unknown>>): string => {
  const environment = new Environment()
  for (const [name, value] of Object.entries({ ...globals, ...variables })) environment.set(name, value)
  const { value } = new BoundedInterpreter(environment).run(program)
  return String(value)
}

/** The largest number of items of a `range`, and of characters in a message that a template raises. */
const mostInRange = 100_000
const mostInMessage = 1000

/**
 * The largest number of characters in a template (models have some ten thousand), and of white-space characters in a
 * row: after each, the library searches for a tag.
 */
const mostInSource = 2 ** 18
const longestSpace = /\s{1001}/u

const problemOfSource = (source: string): string | undefined => {
  if (source.length > mostInSource) return `expected at most ${mostInSource} characters, found ${source.length}`
  return longestSpace.test(source) ? "expected at most 1000 characters of white space in a row, found more" : undefined
}
