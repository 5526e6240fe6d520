/**
 * Defines the model `scripted:reader` for tests and examples. It answers a question from its prompt, otherwise with "I don't
 * know.". In the prompt, it uses
 *
 * - a rule in a reflection, `RULE: [subject] -> answer`, for every question with that `[subject]`; for a question without
 *   brackets the subject is the whole question
 * - an earlier observation of the same question, if its feedback names the target or says that the action was right
 *
 * When it is asked to reflect, it states the rules that the episodes show, and those that it was told. So an agent with a memory scores better than one
 * without, and an agent that reflects scores best.
 */
import type { LmRequest } from "../Chat.ts"

interface ContentEntry {
  readonly type: string
  readonly content: string
}

const plain = (text: string): string => text.trim().replace(/\s+/g, " ")

/**
 * Splits a prompt into entries. An entry is a line with a label, such as `ACTION:`, and the lines after it, up to an
 * empty line; its type is the label (`Q:` counts as OBSERVATION). The type of text without a label is "".
 */
const entriesOf = (text: string): ReadonlyArray<ContentEntry> => {
  const entries: Array<{ type: string; lines: Array<string> }> = []
  for (const line of text.split("\n")) {
    const labelled = /^\s*(OBSERVATION|ACTION|FEEDBACK|REFLECTION|Q):(.*)$/.exec(line)
    const last = entries.at(-1)
    if (labelled !== null) {
      entries.push({ type: labelled[1] === "Q" ? "OBSERVATION" : labelled[1], lines: [labelled[2]] })
    } else if (line.trim() === "") {
      // Text after an empty line has no label.
      if (last !== undefined && last.type !== "") entries.push({ type: "", lines: [] })
    } else if (last === undefined) entries.push({ type: "", lines: [line] })
    else last.lines.push(line)
  }
  return entries
    .map(({ type, lines }) => ({ type, content: plain(lines.join(" ")) }))
    .filter(({ content }) => content !== "")
}

/** Returns the subject of a question: the text in square brackets, otherwise the whole question. */
const subjectOf = (question: string): string => {
  const bracketed = /\[[^\]]+\]/.exec(question)
  return bracketed === null ? `[${question}]` : bracketed[0]
}

/** Finds the expected answer in the text of a feedback; undefined if the text names none. */
const targetOf = (feedback: string): string | undefined => {
  const json = /"target"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)/.exec(feedback)
  if (json !== null) return json[1].startsWith('"') ? String(JSON.parse(json[1])) : json[1]
  // The greedy prefix makes this match the last answer in "Your answer was: 3. The answer is: 4".
  const sentence =
    /^.*\b(?:target|answer|expected)(?:\s+(?:is|was|answer is|answer was))?\s*[:=]?\s+["'`“]?(.+?)["'`”]?\s*[.!]?$/i
  return sentence.exec(feedback)?.[1]
}

const praised = (feedback: string): boolean =>
  /^(correct|right|yes)\b/i.test(feedback) || /"score"\s*:\s*1\b/.test(feedback)

/**
 * Returns the right answer to the observation with the index `at`, according to its feedback: the target, or the action if
 * the feedback calls it right. Returns undefined if there is no such feedback before the next observation.
 */
const learntFrom = (entries: ReadonlyArray<ContentEntry>, at: number): string | undefined => {
  let action: string | undefined
  for (const entry of entries.slice(at + 1)) {
    if (entry.type === "OBSERVATION") return undefined
    if (entry.type === "ACTION") action = entry.content
    if (entry.type === "FEEDBACK")
      return praised(entry.content) && action !== undefined ? action : targetOf(entry.content)
  }
  return undefined
}

const rules = (entries: ReadonlyArray<ContentEntry>): ReadonlyMap<string, string> =>
  new Map(
    entries.flatMap(({ content }) =>
      [...content.matchAll(/RULE: (\[[^\]]+\]) -> ([^;`]+)/g)].map(([, subject, answer]) => [subject, answer.trim()]),
    ),
  )

const reflection = (entries: ReadonlyArray<ContentEntry>): string => {
  const shown = entries.flatMap(({ type, content }, at) => {
    const answer = type === "OBSERVATION" ? learntFrom(entries, at) : undefined
    return answer === undefined ? [] : [[subjectOf(content), answer] as const]
  })
  const known = new Map([...rules(entries), ...shown])
  return known.size === 0
    ? "Nothing to learn."
    : [...known].map(([subject, answer]) => `RULE: ${subject} -> ${answer}`).join("; ")
}

/** Answers the last question of a request that has no answer yet, or states rules if the request asks to reflect. */
export const reader = (request: LmRequest): string => {
  const text = request.messages
    .filter(({ role }) => role !== "assistant")
    .map(({ content }) => content)
    .join("\n\n")
  const entries = entriesOf(text)
  const last = entries.findLastIndex(({ type }) => type === "OBSERVATION")
  const answered = entries.slice(last + 1).some(({ type }) => type === "FEEDBACK" || type === "ACTION")
  const trailing = entries.at(-1)
  const question = last >= 0 && !answered ? entries[last].content : trailing?.type === "" ? trailing.content : undefined
  const toReflect = request.messages.some(({ content }) => /\breflect\b/i.test(content))
  if (toReflect && (last < 0 || answered)) return reflection(entries)
  if (question === undefined) return "I don't know."
  const rule = rules(entries).get(subjectOf(question))
  if (rule !== undefined) return rule
  for (let at = entries.length - 1; at >= 0; at--) {
    if (entries[at].type !== "OBSERVATION" || entries[at].content !== question) continue
    const learnt = learntFrom(entries, at)
    if (learnt !== undefined) return learnt
  }
  return "I don't know."
}
