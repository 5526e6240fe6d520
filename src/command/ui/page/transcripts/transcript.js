/**
 * Shows one episode: facts about it, and its turns. Everything is inserted as text, so that no text of a model can be
 * executed.
 */
import { el, factList } from "../parts/dom.js"
import { number, signed } from "../parts/format.js"
import { endingText } from "./list.js"
import { makeAdvantage, makeLegend } from "./tokens.js"
import { elementsOf, usageText } from "./turns.js"

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
      // If no turn is selected, the first turn is selected in both directions.
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
        // The legend for whole answers is shown above the list of episodes instead.
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
