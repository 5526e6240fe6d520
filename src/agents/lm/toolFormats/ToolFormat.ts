/**
 * Defines how a family of models writes calls of tools into its text, and reads them out again while the text arrives.
 * The chat template of a model decides its format: `formatOf` finds it.
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

/** Splits an answer that arrives in pieces. Whatever is no call, also a call that cannot be read, is text. */
export interface ToolReader {
  readonly push: (text: string) => ReadonlyArray<AnswerEvent>
  /** Ends the answer, and gives what was held back. */
  readonly end: () => ReadonlyArray<AnswerEvent>
}

export interface ReaderOptions {
  /** The names of the tools that the request offers. */
  readonly tools: ReadonlyArray<string>
}

export const formatNames = ["hermes", "llama3"] as const
export type FormatName = (typeof formatNames)[number]

export interface ToolFormat {
  readonly name: FormatName
  /**
   * The beginning of an answer that calls a tool: this one or, for null, any. A server that puts it before the model's
   * answer makes the model call a tool.
   */
  readonly opening: (tool: string | null) => string
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
