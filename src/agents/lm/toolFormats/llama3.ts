/**
 * Reads tool calls as Llama 3 models write them: the whole answer is `{"name": …, "parameters": …}`, or several of these with
 * `;` between them, sometimes after `<|python_tag|>`.
 */
import { BufferedReader } from "./BufferedReader.ts"
import type { AnswerEvent, ToolFormat } from "./ToolFormat.ts"

const tag = "<|python_tag|>"

class Llama3Reader extends BufferedReader {
  /** The position in the answer. `begin`: before its first character; `next`: after a call. */
  private state: "begin" | "calling" | "next" | "text" = "begin"

  end(): ReadonlyArray<AnswerEvent> {
    if (this.state === "calling") return this.call.end()
    // Whitespace and separators after the last call are not text.
    const isSeparator = this.state === "next" && /^[\s;]*$/.test(this.buffer)
    return this.buffer === "" || isSeparator ? [] : [{ _tag: "Text", text: this.buffer }]
  }

  protected step(events: Array<AnswerEvent>): boolean {
    switch (this.state) {
      case "text":
        if (this.buffer !== "") events.push({ _tag: "Text", text: this.buffer })
        this.buffer = ""
        return false
      case "calling": {
        const read = this.readCall()
        for (const event of read.events) events.push(event)
        if (!read.isComplete) return false
        // If the object is not a call, the answer is JSON for people, and the rest of it is text, too.
        this.state = read.events.some(({ _tag }) => _tag === "Text") ? "text" : "next"
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
          this.beginCall(rest)
        } else this.state = "text"
        return true
      }
    }
  }
}

export const llama3: ToolFormat = {
  name: "llama3",
  opening: (tool) => (tool === null ? '{"name": "' : `{"name": ${JSON.stringify(tool)}, "parameters": `),
  object: { before: "", argumentsKey: "parameters" },
  reader: (options) => new Llama3Reader(options),
}
