/**
 * Shows a model's answer token by token, coloured by the tokens' advantages. Readers who don't see the colours find dashed
 * underlines at negative advantages, and the numbers in each part's title.
 */
import { el } from "../parts/dom.js"
import { counted, number, signed } from "../parts/format.js"

const levels = 4

/** An answer with more parts than this is shown as one text. */
const mostParts = 4000

/** Returns the class of a token, such as `up3` or `none`, by its advantage relative to the largest. */
const levelOf = (advantage, largest) => {
  if (advantage === 0 || largest === 0) return "none"
  const level = Math.max(1, Math.ceil((Math.abs(advantage) / largest) * levels))
  return (advantage > 0 ? "up" : "down") + level
}

const partOf = (run, largest) => {
  const { text, ids, advantage, logprob } = run
  const sort = `token ${levelOf(advantage, largest)}`
  const numbers = `advantage ${signed(advantage)}${logprob === null ? "" : `, log-probability ${number(logprob)}`}`
  const shown = `${ids.slice(0, 12).join(" ")}${ids.length > 12 ? " …" : ""}`
  const title = `${counted(ids.length, "token")} (${shown}), ${numbers}`
  // The rest are the tokens of calls, which are shown below the answer, and tokens that end it.
  const rest = ids.length === 1 ? "end" : counted(ids.length, "more token")
  if (text === "") return el("span", { class: `${sort} rest`, title }, rest)
  return el("span", { class: sort, title }, text ?? ids.map((id) => `${id} `).join(""))
}

/** Shows the tokens' texts; for tokens without a text, it shows their ids. */
export const tokensOf = (runs, largest) => {
  const parts = runs.slice(0, mostParts).map((run) => partOf(run, largest))
  const left = runs.length - parts.length
  return left > 0 ? [...parts, el("span.quiet", ` and ${counted(left, "more part")}`)] : parts
}

/** Tells whether the text of every token is known. */
export const haveWords = (runs) => runs !== null && runs.every(({ text }) => text !== null)

export const makeLegend = (largest, from) => {
  const step = (level) => {
    const value = (largest * level) / levels
    return el("span", { class: `token ${levelOf(value, largest)}`, title: `advantage ${signed(value)}` }, signed(value))
  }
  const steps = largest === 0 ? [0] : [-4, -2, 0, 2, 4]
  return el(
    "p.legend",
    el("span.quiet", from === "tokens" ? "tokens by advantage " : "tokens by advantage (credit × weight) "),
    steps.map(step),
  )
}
