/** Reads tool calls as Hermes and Qwen models write them: `<tool_call>{"name": …, "arguments": …}</tool_call>`. */
import { BufferedReader, passable } from "./BufferedReader.ts"
import type { AnswerEvent, ToolFormat } from "./ToolFormat.ts"

const opened = "<tool_call>"
const closed = "</tool_call>"

class HermesReader extends BufferedReader {
  /**
   * The position in the answer. `opening`: after the opening tag; `calling`: inside the JSON object; `closing`: before the
   * closing tag.
   */
  private state: "text" | "opening" | "calling" | "closing" = "text"
  /** The whitespace before the last opening tag. */
  private gap = ""

  end(): ReadonlyArray<AnswerEvent> {
    if (this.state === "calling") return this.call.end().map(this.withTag)
    const left = this.state === "opening" ? this.gap + opened + this.buffer : this.state === "text" ? this.buffer : ""
    return left === "" ? [] : [{ _tag: "Text", text: left }]
  }

  protected step(events: Array<AnswerEvent>): boolean {
    if (this.state === "text") {
      const at = this.buffer.indexOf(opened)
      // Line feeds between a text and a call belong to neither. If no call follows, `gap` becomes text.
      const until = at < 0 ? passable(this.buffer, opened) : this.buffer.slice(0, at).trimEnd().length
      if (until > 0) events.push({ _tag: "Text", text: this.buffer.slice(0, until) })
      if (at >= 0) this.gap = this.buffer.slice(until, at)
      this.buffer = this.buffer.slice(at < 0 ? until : at + opened.length)
      if (at < 0) return false
      this.state = "opening"
      return true
    }
    if (this.state === "opening") {
      const trimmed = this.buffer.trimStart()
      if (trimmed === "") return false
      if (!trimmed.startsWith("{")) {
        // No object follows the tag, so the tag is text.
        events.push({ _tag: "Text", text: this.gap + opened })
        this.state = "text"
        return true
      }
      this.state = "calling"
      this.beginCall(trimmed)
    }
    if (this.state === "calling") {
      const read = this.readCall()
      for (const event of read.events) events.push(this.withTag(event))
      if (!read.isComplete) return false
      this.state = "closing"
    }
    const trimmed = this.buffer.trimStart()
    if (trimmed === "" || (closed.startsWith(trimmed) && trimmed !== closed)) return false
    // Some models forget to close the tag.
    this.buffer = trimmed.startsWith(closed) ? trimmed.slice(closed.length) : trimmed
    this.state = "text"
    return true
  }

  /** Puts the tag before the text of an object that is not a call. */
  private readonly withTag = (event: AnswerEvent): AnswerEvent =>
    event._tag === "Text" ? { _tag: "Text", text: this.gap + opened + event.text } : event
}

export const hermes: ToolFormat = {
  name: "hermes",
  opening: (tool) =>
    tool === null ? `${opened}\n{"name": "` : `${opened}\n{"name": ${JSON.stringify(tool)}, "arguments": `,
  object: { before: `${opened}\n`, argumentsKey: "arguments" },
  reader: (options) => new HermesReader(options),
}
