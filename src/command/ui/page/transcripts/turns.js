/**
 * Makes the elements of an episode's turns: observations, prompts, answers, calls and rewards. All of them are inserted as
 * text.
 */
import { el } from "../parts/dom.js"
import { counted, number, signed } from "../parts/format.js"
import { endingText } from "./list.js"
import { haveWords, levelOf, makeAdvantage, tokensOf } from "./tokens.js"

/** A text with more characters than this is collapsed. */
const longest = 3000

const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1))

/** Shows a text; the end of a long one is hidden until a button is pressed. */
const words = (text) => {
  if (text.length <= longest) return el("div.words", text)
  const rest = el("button.fold", `Show all ${number(text.length)} letters`)
  const body = el("div.words", { tabindex: "-1" }, `${text.slice(0, longest)} … `, rest)
  rest.addEventListener("click", () => {
    body.replaceChildren(text)
    // The button that had the focus has been removed, so the text gets the focus.
    body.focus({ preventScroll: true })
  })
  return body
}

const part = (name, sort, ...children) =>
  el("div", { class: `part ${sort}` }, el("div.label", name), el("div.value", ...children))

/** Makes a part that `draw` fills when the user first opens it, because prompts are long and rarely read. */
const folded = (key, title, draw) => {
  const details = el("details", { "data-fold": key }, el("summary", title))
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(draw())
  })
  return details
}

const messageText = (message) => {
  const calls = (message.toolCalls ?? []).map(({ name, arguments: text }) => `\n${name}(${text})`).join("")
  return `${message.content}${calls}`
}

const messageOf = (message) =>
  part(message.role === "tool" ? `tool ${message.toolName}` : message.role, "message", words(messageText(message)))

const fact = (name, value) => el("span.fact", el("span.quiet", `${name} `), value)

export const usageText = ({ inputTokens, outputTokens, reasoningTokens }) =>
  `${number(inputTokens)} in, ${number(outputTokens)} out${reasoningTokens > 0 ? `, ${number(reasoningTokens)} thought` : ""}`

/**
 * Makes the elements of the turns and of the episode's credits. A delegated rollout is shown inside the turn whose call
 * delegated it. `address` returns the address of a turn. `largest` is the largest advantage, from which the colours are
 * computed.
 */
export const elementsOf = ({ transcript: { played, largest }, address }) => {
  const isTree = played.turns.some(({ calls }) => calls.some(({ children }) => children.length > 0))
  return {
    turns: turnsOf(played, { largest, address }),
    credits: isTree ? el("p.line", creditFacts(played.credits)) : "",
  }
}

/**
 * Makes the turns of a rollout. `view` has an address only for the episode's own turns, because links can't name other turns.
 */
const turnsOf = (played, view) => {
  const prompts = []
  return played.turns.map((turn, index) => turnOf(turn, index + 1, prompts, view))
}

/** Makes the element of a delegated rollout, which is inside the turn whose call delegated it. */
const childOf = (played, largest) =>
  el(
    "details.child",
    { open: true, "data-fold": played.id },
    el(
      "summary",
      el("b", played.name),
      el("span.quiet", ` ${played.id}, ${counted(played.length, "step")}, ${endingText(played)} `),
      creditFacts(played.credits),
    ),
    turnsOf(played, { largest, address: undefined }),
  )

/** Makes a turn. `prompts` are the prompts of all calls so far; the prompts of this turn are added to them. */
const turnOf = (turn, place, prompts, { largest, address }) => {
  const { observation, calls, action, said, advantage, feedback, seen, ending, reason, info, failed } = turn
  const isReflection = calls.length > 0 && calls.every(({ purpose }) => purpose === "reflection")
  const name = isReflection ? "Looking back" : `Turn ${place}`
  const isLinked = address !== undefined
  const heading = isLinked ? el("a.turnLink", { href: address({ turn: place }) }, name) : name
  return el(
    "section.turn",
    { "data-turn": isLinked ? String(place) : null, tabindex: isLinked ? "-1" : null },
    el("header", el("h4", heading), el("span.facts-line", rewardFacts(turn, largest))),
    observation !== null && part("sees", "observation", words(observation)),
    calls.map((call) => callOf(call, promptOf(call, prompts), largest)),
    said !== null && part("says", "action", answerOf(said, advantage, largest)),
    action !== null && part("does", "action", answerOf(action, advantage, largest)),
    feedback !== null && feedbackOf(feedback),
    failed !== null && part("failed", "problem", words(failed)),
    seen !== null && part("sees then", "observation", words(seen)),
    info !== null && folded(`${place} info`, "info", () => el("pre", json(info))),
    ending !== null && el("p.line.ending", `The episode was ${endingText({ ending, reason })}.`),
  )
}

const rewardFacts = ({ reward, cumulative, credit, weight, advantage }, largest) => [
  fact("reward", signed(reward)),
  fact("so far", number(cumulative)),
  credit !== null && fact("credit", signed(credit)),
  weight !== null && weight !== 1 && fact("weight", number(weight)),
  advantage !== null && fact("advantage", makeAdvantage(advantage, largest)),
]

/**
 * Returns the whole prompt of a call, and adds it to `prompts`. The call itself contains only how much of the previous prompt
 * it keeps, and the new messages.
 */
const promptOf = (call, prompts) => {
  const before = prompts.at(-1) ?? []
  const prompt = [...before.slice(0, call.kept), ...call.messages]
  prompts.push(prompt)
  return prompt
}

const callOf = (call, prompt, largest) => {
  const { id, purpose, messages, tools, refused, usage, failed, children } = call
  const all = counted(prompt.length, "message")
  const title = ["prompt ", el("span.quiet", messages.length === prompt.length ? all : `${all}, ${messages.length} new`)] // prettier-ignore
  const says = el("span", purpose === "reflection" ? "reflects " : "says ", el("span.quiet", call.model))
  return el(
    "div",
    { class: `call ${purpose}` },
    folded(`${id} prompt`, title, () => el("div.prompt", prompt.map(messageOf))),
    failed !== null ? part("failed", "problem", words(failed)) : part(says, "said", saidOf(call, largest)),
    tools.map(toolOf),
    children.map((child) => childOf(child, largest)),
    refused !== null &&
      part("not understood", "refused", words(refused.feedback), el("span.quiet", ` ${signed(refused.reward)}`)),
    el("p.quiet.line.foot", [...notesOf(call), `${usageText(usage)} tokens`].join(" · ")),
  )
}

/** Describes what is unusual about a call. */
const notesOf = ({ purpose, attempts, finish, incomplete }) =>
  [
    purpose === "reflection" && "looks back",
    attempts > 1 && `${attempts} tries`,
    !["stop", "tool_calls", "unknown"].includes(finish) && `ended by ${finish}`,
    incomplete && "incomplete",
  ].filter(Boolean)

const saidOf = ({ id, said, tokens }, largest) => {
  if (tokens !== null && haveWords(tokens)) return el("div.words", tokensOf(tokens, largest))
  if (said === "" && tokens === null) return el("span.quiet", "no words")
  const count = tokens?.reduce((sum, { ids }) => sum + ids.length, 0)
  return [
    words(said),
    tokens !== null &&
      folded(`${id} tokens`, `${number(count)} tokens, by their numbers`, () =>
        el("div.words", tokensOf(tokens, largest)),
      ),
  ]
}

const toolOf = ({ name, arguments: text, result, by }) =>
  part(
    el("span", "calls ", by !== null && el("span.quiet", by === "internal" ? "own" : "external")),
    "tool",
    el("code.words", `${name}(${text})`),
    result === null
      ? el("p.quiet.line", "not answered")
      : el(
          "div",
          { class: `result ${result.isError ? "bad" : ""}` },
          el("span.quiet", result.isError ? "failed: " : "gave: "),
          words(result.content),
        ),
  )

const feedbackOf = ({ score, target, message, extra }) =>
  part(
    "feedback",
    "feedback",
    message !== "" && words(message),
    el("p.line", fact("score", signed(score)), target !== null && fact("target", el("span.words", target))),
    extra !== null && extra !== undefined && el("pre", json(extra)),
  )

const answerOf = (action, advantage, largest) =>
  advantage === null
    ? words(action)
    : el("div", { class: `token answer ${levelOf(advantage, largest)}` }, words(action))

const creditFacts = ({ own, parents, mixed, sampled }) =>
  el(
    "span.facts-line",
    fact("credit: own", signed(own)),
    fact("parent's", signed(parents)),
    fact("half and half", signed(mixed)),
    sampled !== null && fact("in the samples", signed(sampled)),
  )
