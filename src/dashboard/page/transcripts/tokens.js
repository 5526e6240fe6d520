/**
 * What a model said, token by token, coloured by what each was worth. Colour alone says nothing: what is worth less than
 * nothing is underlined by dashes, and every part has its numbers as its title.
 */
import { el } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"

const levels = 4

/** More parts than these are drawn as one. */
const mostParts = 4000

/** `up3`, `down1`, `none`: a sign and how far from 0 on the way to the largest. */
const levelOf = (advantage, largest) => {
  if (advantage === 0 || largest === 0) return "none"
  const level = Math.max(1, Math.ceil((Math.abs(advantage) / largest) * levels))
  return (advantage > 0 ? "up" : "down") + level
}

const signed = (value) => (value > 0 ? "+" : "") + number(value)

const partOf = (run, largest) => {
  const { text, ids, advantage, logprob } = run
  const sort = `token ${levelOf(advantage, largest)}`
  const numbers = `advantage ${signed(advantage)}${logprob === null ? "" : `, log-probability ${number(logprob)}`}`
  const shown = `${ids.slice(0, 12).join(" ")}${ids.length > 12 ? " …" : ""}`
  const title = `${counted(ids.length, "token")} (${shown}), ${numbers}`
  // Behind the words: the end, or calls, which stand below.
  const rest = ids.length === 1 ? "end" : counted(ids.length, "more token")
  if (text === "") return el("span", { class: `${sort} rest`, title }, rest)
  return el("span", { class: sort, title }, text ?? ids.map((id) => `${id} `).join(""))
}

/** The words of a call, or its tokens' numbers where nobody knows what they stand for. */
export const tokensOf = (runs, largest) => {
  const parts = runs.slice(0, mostParts).map((run) => partOf(run, largest))
  const left = runs.length - parts.length
  return left > 0 ? [...parts, el("span", { class: "quiet" }, ` and ${counted(left, "more part")}`)] : parts
}

/** Are all words of a call among its tokens? */
export const haveWords = (runs) => runs !== null && runs.every(({ text }) => text !== null)

export const makeLegend = (largest, from) => {
  const step = (level) => {
    const value = (largest * level) / levels
    return el("span", { class: `token ${levelOf(value, largest)}`, title: `advantage ${signed(value)}` }, signed(value))
  }
  const steps = largest === 0 ? [0] : [-4, -2, 0, 2, 4]
  return el(
    "p",
    { class: "legend" },
    el(
      "span",
      { class: "quiet" },
      from === "tokens" ? "tokens by advantage " : "tokens by advantage (credit × weight) ",
    ),
    steps.map(step),
  )
}
