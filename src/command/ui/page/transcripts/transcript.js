/**
 * Shows one episode: its turns with observations, prompts, answers, calls and rewards. Everything is inserted as text,
 * so that nothing that a model wrote can run.
 */
import { el, factList } from "../parts/dom.js"
import { counted, number, signed } from "../parts/format.js"
import { endingText } from "./list.js"
import { haveWords, levelOf, makeAdvantage, makeLegend, tokensOf } from "./tokens.js"

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

/** Makes a part that `draw` fills when it is first opened, because prompts are long and rarely read. */
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

const usageText = ({ inputTokens, outputTokens, reasoningTokens }) =>
  `${number(inputTokens)} in, ${number(outputTokens)} out${reasoningTokens > 0 ? `, ${number(reasoningTokens)} thought` : ""}`

/** Makes the elements of the turns and of the episode's credits. A delegated rollout is inside the turn of its call. */
const elementsOf = ({ transcript, address }) => {
  const { largest } = transcript

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

  const saidOf = (call) => {
    const { said, tokens } = call
    if (tokens !== null && haveWords(tokens)) return el("div.words", tokensOf(tokens, largest))
    if (said === "" && tokens === null) return el("span.quiet", "no words")
    const count = tokens?.reduce((sum, { ids }) => sum + ids.length, 0)
    return [
      words(said),
      tokens !== null &&
        folded(`${call.id} tokens`, `${number(count)} tokens, by their numbers`, () =>
          el("div.words", tokensOf(tokens, largest)),
        ),
    ]
  }

  const callOf = (call, prompt) => {
    const { id, purpose, messages, tools, refused, incomplete, finish, usage, attempts, failed, children } = call
    const all = counted(prompt.length, "message")
    const title = ["prompt ", el("span.quiet", messages.length === prompt.length ? all : `${all}, ${messages.length} new`)] // prettier-ignore
    const notes = [
      purpose === "reflection" && "looks back",
      attempts > 1 && `${attempts} tries`,
      !["stop", "tool_calls", "unknown"].includes(finish) && `ended by ${finish}`,
      incomplete && "incomplete",
    ].filter(Boolean)
    return el(
      "div",
      { class: `call ${purpose}` },
      folded(`${id} prompt`, title, () => el("div.prompt", prompt.map(messageOf))),
      failed !== null
        ? part("failed", "problem", words(failed))
        : part(
            el("span", purpose === "reflection" ? "reflects " : "says ", el("span.quiet", call.model)),
            "said",
            saidOf(call),
          ),
      tools.map(toolOf),
      children.map((child) => playedOf(child, false)),
      refused !== null &&
        part("not understood", "refused", words(refused.feedback), el("span.quiet", ` ${signed(refused.reward)}`)),
      el("p.quiet.line.foot", [...notes, `${usageText(usage)} tokens`].join(" · ")),
    )
  }

  const feedbackOf = ({ score, target, message, extra }) =>
    part(
      "feedback",
      "feedback",
      message !== "" && words(message),
      el("p.line", fact("score", signed(score)), target !== null && fact("target", el("span.words", target))),
      extra !== null && extra !== undefined && el("pre", json(extra)),
    )

  const answerOf = (action, advantage) =>
    advantage === null
      ? words(action)
      : el("div", { class: `token answer ${levelOf(advantage, largest)}` }, words(action))

  const turnOf = (turn, place, isFirst, prompts) => {
    const {
      observation,
      calls,
      action,
      said,
      advantage,
      feedback,
      reward,
      cumulative,
      seen,
      ending,
      reason,
      info,
      failed,
    } = turn
    const name = calls.length > 0 && calls.every(({ purpose }) => purpose === "reflection") ? "Looking back" : `Turn ${place}` // prettier-ignore
    const heading = isFirst ? el("a.turnLink", { href: address({ turn: place }) }, name) : name
    return el(
      "section.turn",
      { "data-turn": isFirst ? String(place) : null, tabindex: isFirst ? "-1" : null },
      el(
        "header",
        el("h4", heading),
        el("span.facts-line", fact("reward", signed(reward)), fact("so far", number(cumulative)), turn.credit !== null && fact("credit", signed(turn.credit)), turn.weight !== null && turn.weight !== 1 && fact("weight", number(turn.weight)), advantage !== null && fact("advantage", makeAdvantage(advantage, largest))), // prettier-ignore
      ),
      observation !== null && part("sees", "observation", words(observation)),
      calls.map((call) => {
        const before = prompts.at(-1) ?? []
        const prompt = [...before.slice(0, call.kept), ...call.messages]
        prompts.push(prompt)
        return callOf(call, prompt)
      }),
      said !== null && part("says", "action", answerOf(said, advantage)),
      action !== null && part("does", "action", answerOf(action, advantage)),
      feedback !== null && feedbackOf(feedback),
      failed !== null && part("failed", "problem", words(failed)),
      seen !== null && part("sees then", "observation", words(seen)),
      info !== null && folded(`${place} info`, "info", () => el("pre", json(info))),
      ending !== null && el("p.line.ending", `The episode was ${endingText({ ending, reason })}.`),
    )
  }

  const playedOf = (played, isFirst) => {
    const prompts = []
    const turns = played.turns.map((turn, index) => turnOf(turn, index + 1, isFirst, prompts))
    if (isFirst) return turns
    const { credits } = played
    return el(
      "details.child",
      { open: true, "data-fold": played.id },
      el(
        "summary",
        el("b", played.name),
        el("span.quiet", ` ${played.id}, ${counted(played.length, "step")}, ${endingText(played)} `),
        creditFacts(credits),
      ),
      turns,
    )
  }

  const creditFacts = ({ own, parents, mixed, sampled }) =>
    el(
      "span.facts-line",
      fact("credit: own", signed(own)),
      fact("parent's", signed(parents)),
      fact("half and half", signed(mixed)),
      sampled !== null && fact("in the samples", signed(sampled)),
    )

  const { played } = transcript
  const isTree = played.turns.some(({ calls }) => calls.some(({ children }) => children.length > 0))
  return {
    turns: playedOf(played, true),
    credits: isTree ? el("p.line", creditFacts(played.credits)) : "",
  }
}

/** Makes the facts about an episode that a multi-run trainer trained on. */
const trainedFacts = ({ step, group, advantage }, largest) => [
  ["trained in step", number(step)],
  ["group", number(group)],
  ["advantage", advantage === null ? "" : makeAdvantage(advantage, largest)],
]

const headOf = (transcript) => {
  const { episode, played, usage, seeds, tags, envType, largest } = transcript
  const { trained } = episode
  return factList([
    ["return", signed(played.return)],
    ["steps", number(played.length)],
    ["ending", endingText({ ...episode, ending: played.ending, reason: played.reason })],
    ...(trained === null ? [] : trainedFacts(trained, largest)),
    ["agent", [played.name, played.model].filter(Boolean).join(", ")],
    ...(played.player === null ? [] : [["player", played.player]]),
    ["environment", envType === "" || envType === episode.env ? episode.env : `${episode.env} (${envType})`],
    ...(usage.calls === 0 ? [] : [["model's calls", number(usage.calls)], ["tokens", usageText(usage)]]), // prettier-ignore
    ...(seeds === null ? [] : [["seeds", `env ${seeds.env}, sampling ${seeds.sampling}`]]),
    ...Object.entries(tags),
  ])
}

/** Makes the transcript's element. `step` shows another episode; `turned` is called after a key has selected a turn. */
export const makeTranscript = ({ address, step, turned }) => {
  const element = el("div.transcript", { tabindex: "-1", role: "region", "aria-label": "Transcript" })
  const invite = "Choose an episode. Keys: j and k for the turns, J and K for the episodes, / to find."
  let drawn = ""
  let turn
  const say = (text) => {
    drawn = ""
    turn = undefined
    element.replaceChildren(el("p.quiet", text))
  }
  const sections = () => [...element.querySelectorAll("[data-turn]")]

  const turnTo = (place) => {
    for (const section of sections()) section.classList.remove("current")
    turn = place
    const section = element.querySelector(`[data-turn="${Number(place)}"]`)
    if (place === undefined || section === null) return
    section.classList.add("current")
    section.scrollIntoView({ block: "start" })
    section.focus({ preventScroll: true })
  }

  const steps = (name, by) => el("button.button", { onclick: () => step(by) }, name)

  return {
    element,
    turnTo,
    stepTurn: (by) => {
      // If no turn is selected, both directions select the first.
      const next = (turn ?? (by > 0 ? 0 : 2)) + by
      if (next < 1 || next > sections().length) return
      turnTo(next)
      turned(next)
    },
    say,
    show: (transcript, isNew) => {
      if (transcript === undefined) return say(invite)
      const text = JSON.stringify(transcript)
      if (text === drawn) return
      drawn = text
      const open = isNew ? [] : [...element.querySelectorAll("details[data-fold]")].map((one) => [one.dataset.fold, one.open]) // prettier-ignore
      const { turns, credits } = elementsOf({ transcript, address: (change) => address({ episode: transcript.episode.key, ...change }) }) // prettier-ignore
      const { episode, hint, largest, advantages } = transcript
      element.replaceChildren(
        el(
          "div.transcriptHead",
          el("h3", `${episode.id ?? episode.env}`),
          el("div.stepper", steps("Previous", -1), steps("Next", 1)),
        ),
        headOf(transcript),
        credits,
        // The legend of whole answers stands above the list of episodes.
        largest === null || advantages === "episode" ? "" : makeLegend(largest, advantages),
        hint === null ? "" : el("p.quiet.line", hint),
        ...turns,
        episode.failed === null ? "" : el("p.problem", episode.failed),
      )
      for (const [name, isOpen] of open) {
        const details = element.querySelector(`[data-fold="${CSS.escape(name)}"]`)
        if (details !== null) details.open = isOpen
      }
      if (turn !== undefined) element.querySelector(`[data-turn="${turn}"]`)?.classList.add("current")
    },
  }
}
