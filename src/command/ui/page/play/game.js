/** Makes the section "Play it here" of a run's page: the policy of a checkpoint acts in the tab, or a person does. */
import { fileAddress } from "../data.js"
import { choice, el } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeStage } from "../player/stage.js"
import { makeHands } from "./hands.js"
import { arrowsOf, keysOf } from "./keys.js"
import { startTrainer } from "./trainer.js"

/** The milliseconds for which a step is shown: on boards, whose steps are large, for longer. */
const pace = { smooth: 1000 / 30, turns: 300 }
/** The milliseconds for which the end of an episode is shown. */
const atEnd = 900

/** Loads the files of a checkpoint of a run. */
const loadFiles = (run, { paths }) =>
  Promise.all(
    paths.map(async (path) => {
      const response = await fetch(fileAddress(run, { path }))
      if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`)
      return { path, bytes: new Uint8Array(await response.arrayBuffer()) }
    }),
  )

/** Makes the section for the run with a path. It is hidden until the run has a checkpoint. */
export const makeGame = (run) => {
  const problem = el("p.problem", { role: "alert" })
  const stage = makeStage((message) => (problem.textContent = message))
  const where = el("p.line.quiet", "The policy of a checkpoint acts in this tab, and you can take over.")
  const hint = el("p.line.hint.quiet", { hidden: true })
  const which = el("div.slot")
  const startButton = el(
    "button.button",
    { onclick: () => void start().catch(({ message }) => fail(message)) },
    "Start",
  )
  const pauseButton = el("button.button", { hidden: true, onclick: () => setRunning(!isRunning) }, "Pause")
  const takeOver = el(
    "button.button",
    { hidden: true, "aria-pressed": "false", onclick: () => setPerson(!isPerson) },
    "Take over",
  )
  const pushField = el("label.field", { hidden: true }, el("span", "push"))
  const table = el(
    "div.game",
    { tabindex: "0", role: "group", "aria-label": "Play it here" },
    el("div.controls", which, startButton, pauseButton, takeOver, pushField),
    stage.element,
    where,
    hint,
    problem,
  )
  const element = el("section.card", { hidden: true }, el("h2", "Play it here"), table)

  let checkpoints = []
  let chosen
  let config
  let trainer
  /** How a person acts in the env of the game; undefined if only the policy can. */
  let keys
  let isRunning = false
  let isPerson = false
  let isAsked = false
  let steps = 0
  let episodes = 0
  let timer

  const fail = (message) => {
    problem.textContent = message
    setRunning(false)
  }

  const hands = makeHands(
    table,
    () => isPerson,
    () => {
      if (keys?.turns === true) act()
    },
  )
  pushField.append(hands.slider)
  stage.element.after(hands.pad)

  /** Asks the worker for the next step, unless it is at one. */
  const act = () => {
    if (!isRunning || isAsked || trainer === undefined) return
    const action = isPerson ? keys.choose(hands.held, steps, hands.push()) : null
    if (action === undefined) return
    isAsked = true
    trainer.send("Act", { action })
  }

  const later = (wait) => {
    clearTimeout(timer)
    // A person's turn comes with a key.
    timer = setTimeout(isPerson && keys?.turns === true ? () => {} : act, wait)
  }

  const setRunning = (next) => {
    isRunning = next
    pauseButton.textContent = isRunning ? "Pause" : "Go on"
    if (isRunning) later(0)
    else clearTimeout(timer)
  }

  const setPerson = (next) => {
    isPerson = next
    takeOver.textContent = isPerson ? "Let the policy act" : "Take over"
    takeOver.setAttribute("aria-pressed", String(isPerson))
    hint.hidden = !isPerson
    pushField.hidden = !isPerson || !/slider/.test(hint.textContent)
    hands.showPad(isPerson ? arrowsOf(keys) : [])
    if (isPerson) table.focus()
    where.textContent = isPerson ? "You act." : "The policy acts."
    if (isRunning) later(0)
  }

  const answers = {
    Opened: async ({ env, step, ui }) => {
      keys = keysOf(env)
      hint.textContent = keys?.hint ?? ""
      takeOver.hidden = keys === undefined
      await stage.start(ui)
      pauseButton.hidden = false
      where.textContent = `The policy of step ${number(step)} acts.`
      setRunning(true)
    },
    Acted: ({ step: { state, action, total, length, terminated, truncated } }) => {
      isAsked = false
      steps = length
      const who = isPerson ? "You act" : "The policy acts"
      const end = terminated ? ", terminated" : truncated ? ", truncated" : ""
      where.textContent = `${who}: step ${number(length)}, return ${number(total)}${end}`
      table.dataset.steps = String(Number(table.dataset.steps ?? 0) + 1)
      table.dataset.action = action.join()
      stage.show({ parameters: {}, state, action, index: `${episodes}:${length}`, episode: episodes })
      const isOver = terminated || truncated
      if (isOver) {
        episodes++
        table.dataset.episodes = String(episodes)
        trainer.send("Restart")
      }
      if (isRunning) later(isOver ? atEnd : keys?.turns === true ? pace.turns : pace.smooth)
    },
    Refused: ({ message }) => {
      isAsked = false
      fail(message)
    },
  }

  const start = async () => {
    problem.textContent = ""
    setRunning(false)
    isAsked = false
    trainer ??= startTrainer((answer) => answers[answer._tag]?.(answer), fail)
    where.textContent = "Loading the policy …"
    const checkpoint = checkpoints.find(({ name }) => name === chosen)
    trainer.send("Open", { config, checkpoint: checkpoint.name, files: await loadFiles(run, checkpoint) })
    startButton.textContent = "Load again"
  }

  return {
    element,
    show: (detail) => {
      checkpoints = detail.checkpoints
      config = detail.config
      element.hidden = detail.summary.kind !== "run" || checkpoints.length === 0 || config === null
      if (!checkpoints.some(({ name }) => name === chosen)) chosen = checkpoints[0]?.name
      const options = checkpoints.map(({ name, step }) => [name, number(step)])
      which.replaceChildren(choice("checkpoint of step", options, chosen, (value) => (chosen = value)))
    },
    close: () => {
      clearTimeout(timer)
      isRunning = false
      trainer?.close()
      stage.close()
    },
  }
}
