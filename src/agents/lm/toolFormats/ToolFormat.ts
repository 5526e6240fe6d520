/**
 * Defines how a family of models writes tool calls in its text, and reads these calls while the text arrives. The chat
 * template of a model decides its format: `formatOf` finds it.
 *
 * @example
 * ```ts
 * const reader = ToolFormats.hermes.reader({ tools: ["add"] })
 * const events = [...reader.push('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'), ...reader.end()]
 * // [{ _tag: "Call", name: "add" }, { _tag: "Arguments", text: '{"a": 1}' }]
 * ```
 */

/** A part of an answer: text, the beginning of a call, or the next piece of the last call's arguments. */
export type AnswerEvent =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Call"; readonly name: string }
  | { readonly _tag: "Arguments"; readonly text: string }

/** Splits an answer into text and calls while it arrives in pieces. A call that cannot be read is text. */
export interface ToolReader {
  readonly push: (text: string) => ReadonlyArray<AnswerEvent>
  /** Ends the answer, and returns the events of the text that was held back. */
  readonly end: () => ReadonlyArray<AnswerEvent>
}

export interface ReaderOptions {
  /** The names of the tools that the request offers. */
  readonly tools: ReadonlyArray<string>
}

export const formatNames = ["hermes", "llama3", "mistral", "mistral-args"] as const
export type FormatName = (typeof formatNames)[number]

export interface ToolFormat {
  readonly name: FormatName
  /**
   * The beginning of an answer that calls a tool: this tool or, for null, any tool. If a server puts it before the model's
   * answer, the model must call a tool.
   */
  readonly opening: (tool: string | null) => string
  /**
   * If a call is a JSON object with the name of the tool first: the text before it, and the key of the arguments. Null if the
   * name stands outside of the object.
   */
  readonly object: { readonly before: string; readonly argumentsKey: "arguments" | "parameters" } | null
  readonly reader: (options: ReaderOptions) => ToolReader
}

/** The calls and the text of a whole answer. */
export interface ReadAnswer {
  readonly content: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>
}

/** Collects the events of an answer. */
export const collect = (events: Iterable<AnswerEvent>): ReadAnswer => {
  let content = ""
  const calls: Array<{ name: string; arguments: string }> = []
  for (const event of events) {
    if (event._tag === "Text") content += event.text
    else if (event._tag === "Call") calls.push({ name: event.name, arguments: "" })
    else {
      const call = calls.at(-1)
      if (call !== undefined) call.arguments += event.text
    }
  }
  return { content, calls }
}
