/**
 * Shows a model's answer in spans that are coloured by advantage; negative advantages are also underlined with dashes. A span
 * is a part of the answer: one or more tokens (`ids`) with equal advantages, and their text, which is null if it is not
 * known. `largest` is the largest absolute advantage in the episode. A tooltip shows the numbers of a span.
 */
import { el } from "../parts/dom.js"
import { counted, number, signed } from "../parts/format.js"

/** The number of colours for positive advantages, and for negative ones. */
const levels = 4

/** The largest number of spans of an answer that are shown. */
const mostSpans = 4000

/** Returns the CSS class for an advantage relative to the largest: `up1` to `up4`, `down1` to `down4`, or `none`. */
export const levelOf = (advantage, largest) => {
  if (advantage === 0 || largest === 0) return "none"
  const level = Math.max(1, Math.ceil((Math.abs(advantage) / largest) * levels))
  return (advantage > 0 ? "up" : "down") + level
}

const elementOf = (span, largest) => {
  const { text, ids, advantage, logprob } = span
  const classes = `token ${levelOf(advantage, largest)}`
  const numbers = `advantage ${signed(advantage)}${logprob === null ? "" : `, log-probability ${number(logprob)}`}`
  const shown = `${ids.slice(0, 12).join(" ")}${ids.length > 12 ? " …" : ""}`
  const title = `${counted(ids.length, "token")} (${shown}), ${numbers}`
  // An empty text represents tokens of tool calls, which are shown below the answer, or the token that ends the answer.
  const rest = ids.length === 1 ? "end" : counted(ids.length, "more token")
  if (text === "") return el("span", { class: `${classes} rest`, title }, rest)
  return el("span", { class: classes, title }, text ?? ids.map((id) => `${id} `).join(""))
}

/** Makes an advantage as a number in its colour. */
export const makeAdvantage = (advantage, largest) =>
  el(
    "span",
    { class: `token ${levelOf(advantage, largest)}`, title: `advantage ${signed(advantage)}` },
    signed(Number(advantage.toPrecision(3))),
  )

/** Makes the elements of spans. A span without a text shows the ids of its tokens. */
export const tokensOf = (spans, largest) => {
  const parts = spans.slice(0, mostSpans).map((span) => elementOf(span, largest))
  const left = spans.length - parts.length
  return left > 0 ? [...parts, el("span.quiet", ` and ${counted(left, "more part")}`)] : parts
}

/** Tells whether the text of every token is known. */
export const haveWords = (spans) => spans !== null && spans.every(({ text }) => text !== null)

/** The names of the parts that are coloured, by the source of the advantages (`advantages` of a transcript). */
const coloured = {
  tokens: "tokens by advantage ",
  credit: "tokens by advantage (credit × weight) ",
  episode: "answers by advantage ",
}

/** Makes the legend; `from` is the source of the advantages. */
export const makeLegend = (largest, from) => {
  const step = (level) => {
    const value = (largest * level) / levels
    return makeAdvantage(value, largest)
  }
  const steps = largest === 0 ? [0] : [-4, -2, 0, 2, 4]
  return el("p.legend", el("span.quiet", coloured[from]), steps.map(step))
}
