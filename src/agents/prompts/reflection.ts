/**
 * Makes the prompt that asks the reflection model for a better text, and finds the text in its answer. These are pure
 * functions.
 *
 * @example
 * ```ts
 * textIn("Answer with one word.") // the whole answer, since it has no fenced block
 * ```
 */
import type { Completion } from "../lm/Chat.ts"
import type { Reflection, TextToImprove } from "./search.ts"

/** The names that a reflection prompt must have in braces. */
export const placeholders = ["text", "examples"] as const

/** The reflection prompt that is used if the config has none. `{name}` is the name of the text. */
export const defaultPrompt = `An assistant works with the text below, which is called {name}. Reflect on how it did in the examples, and write a
better version of the text.

The text now:

\`\`\`
{text}
\`\`\`

The examples: what the assistant saw, what it did, and the feedback on it.

{examples}

Find out what the task is, what form its inputs and its answers have, and why some answers were good and others not. Put
into the new text all facts and rules that the feedback reveals, since the assistant sees nothing else of it later, and a
way of working that succeeded. Keep what is still right in the text as it is now. Do not write about single examples if a
rule covers them. Write the whole new text between two lines with three backticks.`

/** The largest length of a new text in characters. */
const mostOfText = 100_000

/** Fills the placeholders of a reflection prompt. A text is inserted as it is, even if it has braces. */
export const promptFor = ({ name, texts, trials }: TextToImprove, template: string): string => {
  const examples = trials
    .map(({ score, example }, at) => `Example ${at + 1} (score ${Number(score.toFixed(4))})\n\n${example}`)
    .join("\n\n")
  const values: Readonly<Record<string, string>> = { name, text: texts[name], examples }
  return template.replace(/\{(name|text|examples)\}/g, (_, key: string) => values[key])
}

/**
 * Finds the new text in an answer: the outermost fenced block, from the first fence to the last, without the name of a
 * language after the first. A missing fence is replaced by the end of the answer; without any fence, the whole answer is the
 * text.
 */
export const textIn = (answer: string): string => {
  const fence = "```"
  const start = answer.indexOf(fence)
  const end = answer.lastIndexOf(fence)
  if (start >= 0 && start + fence.length <= end)
    return answer
      .slice(start + fence.length, end)
      .replace(/^\S*\n/, "")
      .trim()
  const whole = answer.trim()
  if (whole.startsWith(fence)) return whole.replace(/^```\S*\n?/, "").trim()
  return whole.endsWith(fence) ? whole.slice(0, -fence.length).trim() : whole
}

/** Reads the answer of the reflection model: a new text, or the reason why it cannot be used. */
export const reflectionOf = (
  { content, finishReason }: Pick<Completion, "content" | "finishReason">,
  before: string,
): Reflection["answer"] => {
  if (finishReason === "content_filter") return { _tag: "None", reason: "withheld" }
  if (finishReason === "length") return { _tag: "None", reason: "cut_off" }
  const text = textIn(content)
  if (text === "") return { _tag: "None", reason: "no_text" }
  if (text.length > mostOfText) return { _tag: "None", reason: "too_long" }
  return text === before.trim() ? { _tag: "None", reason: "same_text" } : { _tag: "Text", text }
}
