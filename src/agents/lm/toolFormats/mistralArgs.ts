/**
 * Reads tool calls as Mistral's newer models write them: `[TOOL_CALLS]name[ARGS]{…}`, one after another, in some models with
 * `[CALL_ID]id` after the name. The tags are special tokens, which the text of an answer lacks, so a name of a tool with an
 * object after it, at the beginning of an answer or after a call, is read in the same way.
 */
import { passable } from "./BufferedReader.ts"
import { ObjectEnd } from "./callReader.ts"
import type { AnswerEvent, ReaderOptions, ToolFormat, ToolReader } from "./ToolFormat.ts"

const tag = "[TOOL_CALLS]"
/** Matches the beginning of a call after the tag, up to its arguments. */
const header = /^\s*([\w.-]{1,256})(?:\[CALL_ID\]\w{0,64})?(?:\[ARGS\])?\s*(?=\{)/
/** Matches a text that may become such a beginning. */
const headerBegun = /^\s*[\w.-]{0,256}(?:\[[A-Z_]{0,7}(?:\]\w{0,64})?){0,2}\s*$/
/** Matches the end of a beginning without the tag, after the name. The id of a call has nine characters. */
const untaggedEnd = /^(?:\w{0,9}|\[[A-Z_]{0,7}(?:\]\w{0,64})?(?:\[[A-Z]{0,4}\]?)?)\s*$/
const idLength = 9

class MistralArgsReader implements ToolReader {
  private readonly tools: ReadonlyArray<string>
  /** The position in the answer. `begin`: before its first character; `next`: after a call; `opening`: after the tag. */
  private state: "begin" | "next" | "text" | "opening" | "calling" = "begin"
  /** The text that is not yet read. */
  private buffer = ""
  /** The text before the call that is being read, which belongs to the answer's text if no call follows. */
  private before = ""
  private object = new ObjectEnd()

  constructor({ tools }: ReaderOptions) {
    this.tools = tools
  }

  push(text: string): ReadonlyArray<AnswerEvent> {
    this.buffer += text
    const events: Array<AnswerEvent> = []
    while (this.step(events));
    return events
  }

  end(): ReadonlyArray<AnswerEvent> {
    // The arguments of a call that was cut off have been passed on.
    const isSeparator = this.state === "next" && this.buffer.trim() === ""
    const left = (this.state === "opening" ? this.before : "") + this.buffer
    return left === "" || isSeparator ? [] : [{ _tag: "Text", text: left }]
  }

  /** Reads a part of the buffer. Returns whether more of the buffer can be read now. */
  private step(events: Array<AnswerEvent>): boolean {
    switch (this.state) {
      case "text":
        return this.readText(events)
      case "opening":
        return this.readTagged(events)
      case "calling":
        return this.readArguments(events)
      default:
        return this.readBeginning(events)
    }
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

  private readTagged(events: Array<AnswerEvent>): boolean {
    const match = header.exec(this.buffer)
    if (match !== null) {
      this.beginCall(events, this.toolOf(match[1]) ?? match[1], match[0])
      return true
    }
    if (headerBegun.test(this.buffer)) return false
    // No call follows the tag, so the tag is text.
    events.push({ _tag: "Text", text: this.before })
    this.state = "text"
    return true
  }

  /** Reads the beginning of an answer, or the text after a call: a tag, the name of a tool without it, or text. */
  private readBeginning(events: Array<AnswerEvent>): boolean {
    const trimmed = this.buffer.trimStart()
    if (tag.startsWith(trimmed) && trimmed !== tag) return false
    const match = header.exec(this.buffer)
    const tool = match === null ? undefined : this.toolOf(match[1])
    if (match !== null && tool !== undefined) {
      this.beginCall(events, tool, match[0])
      return true
    }
    if (match === null && this.mayBecomeCall(trimmed)) return false
    // Whitespace between a call and a text belongs to neither.
    if (this.state === "next") this.buffer = trimmed
    this.state = "text"
    return true
  }

  private mayBecomeCall(text: string): boolean {
    return this.tools.some(
      (name) => name.startsWith(text) || (text.startsWith(name) && untaggedEnd.test(text.slice(name.length))),
    )
  }

  /** Returns the tool of a name, which an id may follow. */
  private toolOf(written: string): string | undefined {
    const withId = written.slice(0, -idLength)
    return this.tools.find((name) => name === written) ?? this.tools.find((name) => name === withId)
  }

  private beginCall(events: Array<AnswerEvent>, name: string, beginning: string): void {
    events.push({ _tag: "Call", name })
    this.buffer = this.buffer.slice(beginning.length)
    this.object = new ObjectEnd()
    this.state = "calling"
  }

  private readArguments(events: Array<AnswerEvent>): boolean {
    const end = this.object.find(this.buffer, 0)
    const text = end < 0 ? this.buffer : this.buffer.slice(0, end)
    if (text !== "") events.push({ _tag: "Arguments", text })
    this.buffer = end < 0 ? "" : this.buffer.slice(end)
    if (end < 0) return false
    this.state = "next"
    return true
  }
}

export const mistralArgs: ToolFormat = {
  name: "mistral-args",
  opening: (tool) => (tool === null ? tag : `${tag}${tool}[ARGS]`),
  object: null,
  reader: (options) => new MistralArgsReader(options),
}
