/**
 * Reads calls of tools as Llama 3 models write them: the whole answer is `{"name": …, "parameters": …}`, or several of
 * these with `;` between them, sometimes after `<|python_tag|>`.
 */
import { CallReader } from "./callReader.ts"
import type { AnswerEvent, ReaderOptions, ToolFormat, ToolReader } from "./ToolFormat.ts"

const tag = "<|python_tag|>"

class Llama3Reader implements ToolReader {
  private readonly tools: ReadonlyArray<string>
  private buffer = ""
  /** `begin`: before the answer's first character; `next`: after a call. */
  private state: "begin" | "calling" | "next" | "text" = "begin"
  private call: CallReader

  constructor({ tools }: ReaderOptions) {
    this.tools = tools
    this.call = new CallReader(tools)
  }

  push(text: string): ReadonlyArray<AnswerEvent> {
    this.buffer += text
    const events: Array<AnswerEvent> = []
    while (this.step(events));
    return events
  }

  end(): ReadonlyArray<AnswerEvent> {
    if (this.state === "calling") return this.call.end()
    // Whitespace and separators after the last call are no text.
    const isSeparator = this.state === "next" && /^[\s;]*$/.test(this.buffer)
    return this.buffer === "" || isSeparator ? [] : [{ _tag: "Text", text: this.buffer }]
  }

  /** Reads a part of the buffer. Returns whether the rest of the buffer can be read. */
  private step(events: Array<AnswerEvent>): boolean {
    switch (this.state) {
      case "text":
        if (this.buffer !== "") events.push({ _tag: "Text", text: this.buffer })
        this.buffer = ""
        return false
      case "calling": {
        const pushed = this.call.push(this.buffer)
        events.push(...pushed.events)
        this.buffer = pushed.rest ?? ""
        if (pushed.rest === null) return false
        // If the object was no call, the answer is JSON for people, and so is what follows.
        this.state = pushed.events.some(({ _tag }) => _tag === "Text") ? "text" : "next"
        return true
      }
      default: {
        const blank = this.state === "begin" ? /^\s*/ : /^[\s;]*/
        const rest = this.buffer.replace(blank, "")
        if (rest === "" || (tag.startsWith(rest) && rest !== tag)) return false
        if (rest.startsWith(tag)) {
          this.buffer = rest.slice(tag.length)
          return this.buffer !== ""
        }
        if (rest.startsWith("{")) {
          this.state = "calling"
          this.call = new CallReader(this.tools)
          this.buffer = rest
        } else this.state = "text"
        return true
      }
    }
  }
}

export const llama3: ToolFormat = {
  name: "llama3",
  opening: (tool) => (tool === null ? '{"name": "' : `{"name": ${JSON.stringify(tool)}, "parameters": `),
  reader: (options) => new Llama3Reader(options),
}
