/**
 * Reads tool calls as Mistral's models write them: `[TOOL_CALLS] [{"name": …, "arguments": …}, …]`. The tag is a special token,
 * which the text of an answer lacks, so an answer that begins with such a list is read in the same way.
 */
import { BufferedReader, passable } from "./BufferedReader.ts"
import type { AnswerEvent, ToolFormat } from "./ToolFormat.ts"

const tag = "[TOOL_CALLS]"
/** Matches the beginning of a list of calls, up to its first object. */
const list = /^\s*\[\s*(?=\{)/
/** Matches a text that may become the beginning of a list. */
const listBegun = /^\s*(\[\s*)?$/

class MistralReader extends BufferedReader {
  /** The position in the answer. `opening`: after the tag; `calling`: inside an object; `between`: after an object. */
  private state: "begin" | "text" | "opening" | "calling" | "between" = "begin"
  /** The text before the object that is being read, which belongs to the answer's text if the object is no call. */
  private before = ""

  end(): ReadonlyArray<AnswerEvent> {
    if (this.state === "calling") return this.call.end().map(this.withBefore)
    const isSeparator = this.state === "between" && /^[\s,]*$/.test(this.buffer)
    const left = (this.state === "opening" ? this.before : "") + this.buffer
    return left === "" || isSeparator ? [] : [{ _tag: "Text", text: left }]
  }

  protected step(events: Array<AnswerEvent>): boolean {
    switch (this.state) {
      case "begin": {
        const trimmed = this.buffer.trimStart()
        if (listBegun.test(this.buffer) || (tag.startsWith(trimmed) && trimmed !== tag)) return false
        if (!this.openList("")) this.state = "text"
        return true
      }
      case "text":
        return this.readText(events)
      case "opening":
        if (listBegun.test(this.buffer)) return false
        if (!this.openList(this.before)) {
          // No list follows the tag, so the tag is text.
          events.push({ _tag: "Text", text: this.before })
          this.state = "text"
        }
        return true
      case "calling":
        return this.readObject(events)
      case "between":
        return this.readSeparator()
    }
  }

  /** Begins to read a list of calls, if the buffer begins with one. */
  private openList(before: string): boolean {
    const match = list.exec(this.buffer)
    if (match === null) return false
    this.before = before + match[0]
    this.state = "calling"
    this.beginCall(this.buffer.slice(match[0].length))
    return true
  }

  private readText(events: Array<AnswerEvent>): boolean {
    const at = this.buffer.indexOf(tag)
    const until = at < 0 ? passable(this.buffer, tag) : this.buffer.slice(0, at).trimEnd().length
    if (until > 0) events.push({ _tag: "Text", text: this.buffer.slice(0, until) })
    if (at >= 0) this.before = this.buffer.slice(until, at) + tag
    this.buffer = this.buffer.slice(at < 0 ? until : at + tag.length)
    if (at < 0) return false
    this.state = "opening"
    return true
  }

  private readObject(events: Array<AnswerEvent>): boolean {
    const read = this.readCall()
    for (const event of read.events) events.push(this.withBefore(event))
    if (!read.isComplete) return false
    // If the object is not a call, the rest of the list is text, too.
    this.state = read.events.some(({ _tag }) => _tag === "Text") ? "text" : "between"
    return true
  }

  private readSeparator(): boolean {
    const rest = this.buffer.replace(/^[\s,]*/, "")
    if (rest === "") return false
    if (rest.startsWith("{")) {
      this.before = ""
      this.state = "calling"
      this.beginCall(rest)
      return true
    }
    this.buffer = rest.startsWith("]") ? rest.slice(1).trimStart() : rest
    this.state = "text"
    return true
  }

  private readonly withBefore = (event: AnswerEvent): AnswerEvent =>
    event._tag === "Text" ? { _tag: "Text", text: this.before + event.text } : event
}

export const mistral: ToolFormat = {
  name: "mistral",
  opening: (tool) => (tool === null ? `${tag} [{"name": "` : `${tag} [{"name": ${JSON.stringify(tool)}, "arguments": `),
  object: { before: `${tag} [`, argumentsKey: "arguments" },
  reader: (options) => new MistralReader(options),
}
