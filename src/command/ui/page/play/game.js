/**
 * Makes the section "Play it here" of a run's page, in which the policy of a checkpoint or the user acts in an env in this
 * tab.
 */
import { fileAddress } from "../data.js"
import { choice, el, toggle } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeStage } from "../player/stage.js"
import { makeTerms } from "../player/terms.js"
import { makeFilm } from "./film.js"
import { makeHands } from "./hands.js"
import { padOf, keysOf } from "./keys.js"
import { makeReach } from "./reach.js"
import { startTrainer } from "./trainer.js"

/** The milliseconds for which a step is shown. On boards it is longer, because each step changes a lot. */
const pace = { smooth: 1000 / 30, turns: 300 }
/** The texts that the section shows before a policy is loaded, and while it is. */
const about = "The policy of a checkpoint acts in this tab, and you can take over."
const loading = "Loading the policy …"
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
  const game = makeState(run)
  return {
    element: game.element,
    show: (detail) => show(game, detail),
    close: () => {
      clearTimeout(game.timer)
      setRunning(game, false)
      game.trainer?.close()
      game.reach.open(undefined)
      game.stage.close()
    },
  }
}

/** Makes the state of the section: its elements, the checkpoint, and who acts. All functions below work on this state. */
const makeState = (run) => {
  const problem = el("p.problem", { role: "alert" })
  const begin = () => void start(game).catch(({ message }) => fail(game, message))
  const stage = makeStage((message) => (problem.textContent = message))
  const game = {
    run,
    problem,
    stage,
    /** These belong to games with a body: its moments, the place of a pointer, the terms of the reward, and a switch. */
    film: makeFilm({
      show: (shown) => draw(game, shown),
      begun: (step) => tell(game, step),
      ended: (step) => isOver(step) && nextEpisode(game, () => game.film.wait(atEnd / 1000)),
      wanted: () => act(game),
    }),
    reach: makeReach(stage.element),
    terms: makeTerms(),
    forces: toggle("contact forces", true, () => game.film.again()),
    isBody: false,
    where: el("p.line.quiet", about),
    hint: el("p.line.hint.quiet", { hidden: true }),
    which: el("div.slot"),
    startButton: el("button.button", { onclick: begin }, "Start"),
    pauseButton: el("button.button", { hidden: true, onclick: () => setRunning(game, !game.isRunning) }, "Pause"),
    takeOver: el(
      "button.button",
      { hidden: true, "aria-pressed": "false", onclick: () => setPerson(game, !game.isPerson) },
      "Take over",
    ),
    pushField: el("label.field", { hidden: true }, el("span", "push")),
    /** The checkpoints of the run, the name of the chosen one, and the run's config. */
    checkpoints: [],
    chosen: undefined,
    config: undefined,
    trainer: undefined,
    /** How a person acts in the env of the game; undefined if only policies can act in it. */
    keys: undefined,
    isRunning: false,
    isPerson: false,
    /** Whether the worker was asked for a step and has not answered yet. */
    isAsked: false,
    /** Whether the worker has computed the last step of an episode, and the next episode has not begun. */
    isEnding: false,
    steps: 0,
    episodes: 0,
    timer: undefined,
    table: undefined,
    hands: undefined,
    element: undefined,
  }
  return assemble(game)
}

/** Arranges the elements, and connects the input of a person. */
const assemble = (game) => {
  const { which, startButton, pauseButton, takeOver, pushField, stage, where, hint, problem, reach, terms } = game
  game.forces.hidden = true
  game.table = el(
    "div.game",
    { tabindex: "0", role: "group", "aria-label": "Play it here" },
    el("div.controls", which, startButton, pauseButton, takeOver, pushField, game.forces),
    el("div.watch", el("div.screen", stage.element, reach.element), terms.element),
    where,
    hint,
    problem,
  )
  game.element = el("section.card", { hidden: true }, el("h2", "Play it here"), game.table)
  game.hands = makeHands(
    game.table,
    () => game.isPerson || game.isBody,
    () => {
      if (game.keys?.turns === true) act(game)
    },
  )
  pushField.append(game.hands.slider)
  terms.element.parentElement.after(game.hands.pad)
  return game
}

const show = (game, { checkpoints, config, summary }) => {
  game.checkpoints = checkpoints
  game.config = config
  game.element.hidden = summary.kind !== "run" || checkpoints.length === 0 || config === null
  if (!checkpoints.some(({ name }) => name === game.chosen)) game.chosen = checkpoints[0]?.name
  const options = checkpoints.map(({ name, step }) => [name, number(step)])
  game.which.replaceChildren(choice("checkpoint of step", options, game.chosen, (value) => (game.chosen = value)))
}

/** Sends the chosen checkpoint to the worker; starts the worker if there is none. */
const start = async (game) => {
  const { run, problem, where, checkpoints, config, startButton } = game
  problem.textContent = ""
  setRunning(game, false)
  game.isAsked = game.isEnding = false
  game.trainer ??= startTrainer(
    (answer) => answers[answer._tag]?.(game, answer),
    (message) => fail(game, message),
  )
  where.textContent = loading
  const checkpoint = checkpoints.find(({ name }) => name === game.chosen)
  game.trainer.send("Open", { config, checkpoint: checkpoint.name, files: await loadFiles(run, checkpoint) })
  startButton.textContent = "Load again"
}

const fail = (game, message) => {
  game.problem.textContent = message
  if (game.where.textContent === loading) game.where.textContent = about
  setRunning(game, false)
}

/** Asks the worker for the next step, unless it is still computing one. */
const act = (game) => {
  const { trainer, hands, keys } = game
  if (!game.isRunning || game.isAsked || game.isEnding || trainer === undefined) return
  const action = game.isPerson ? keys.choose(hands.held, game.steps, hands.push()) : null
  if (action === undefined) return
  game.isAsked = true
  trainer.send("Act", { action, pull: game.isBody ? pullOf(game) : null })
}

/** Returns what a person does to the body: a pointer pulls at it, or the arrows push it; null if neither. */
const pullOf = ({ reach, hands: { held } }) => {
  const at = reach.at()
  if (at !== undefined) return { _tag: "Pointer", at }
  const [right, up] = [Number(held.right) - Number(held.left), Number(held.up) - Number(held.down)]
  return right === 0 && up === 0 ? null : { _tag: "Push", right, up }
}

const actLater = (game, wait) => {
  clearTimeout(game.timer)
  // In an env with turns, the turn of a person begins when a key is pressed.
  game.timer = setTimeout(game.isPerson && game.keys?.turns === true ? () => {} : () => act(game), wait)
}

const setRunning = (game, next) => {
  game.isRunning = next
  game.pauseButton.textContent = next ? "Pause" : "Go on"
  clearTimeout(game.timer)
  if (!next) game.film.stop()
  else if (game.isBody) game.film.run()
  else actLater(game, 0)
}

const setPerson = (game, next) => {
  const { takeOver, hint, pushField, hands, keys, table, where } = game
  game.isPerson = next
  takeOver.textContent = next ? "Let the policy act" : "Take over"
  takeOver.setAttribute("aria-pressed", String(next))
  hint.hidden = !next
  pushField.hidden = !next || !/slider/.test(hint.textContent)
  hands.showPad(next ? padOf(keys) : [])
  if (next) table.focus()
  where.textContent = next ? "You act." : "The policy acts."
  if (game.isRunning) actLater(game, 0)
}

const opened = async (game, { env, step, ui, picture }) => {
  const { hint, takeOver, stage, pauseButton, where, film, reach, terms, forces, hands } = game
  game.isBody = picture !== undefined
  game.keys = keysOf(env)
  hint.textContent = game.keys?.hint ?? ""
  film.clear()
  reach.open(picture)
  terms.show()
  forces.hidden = !game.isBody
  hands.showPad(game.isBody ? ["left", "right", "up", "down"] : [])
  if (game.isBody) {
    hint.textContent = "Drag the body with the mouse or a finger to pull at it, or push it with the arrow keys."
    hint.hidden = false
  }
  takeOver.hidden = game.keys === undefined
  await stage.start(ui)
  pauseButton.hidden = false
  where.textContent = `The policy of step ${number(step)} acts.`
  setRunning(game, true)
}

const isOver = ({ terminated, truncated }) => terminated || truncated

const acted = (game, { step }) => {
  game.isAsked = false
  if (step.moments !== undefined) {
    game.isEnding = isOver(step)
    return game.film.add(step)
  }
  tell(game, step)
  draw(game, { moment: step.state, step, index: 0 })
  if (isOver(step)) nextEpisode(game)
  const wait = game.keys?.turns === true ? pace.turns : pace.smooth
  if (game.isRunning) actLater(game, isOver(step) ? atEnd : wait)
}

/** Writes which step is shown. */
const tell = (game, { action, total, length, terminated, truncated, terms }) => {
  const { where, table } = game
  game.steps = length
  const who = game.isPerson ? "You act" : "The policy acts"
  const end = terminated ? ", terminated" : truncated ? ", truncated" : ""
  where.textContent = `${who}: step ${number(length)}, return ${number(total)}${end}`
  table.dataset.steps = String(Number(table.dataset.steps ?? 0) + 1)
  table.dataset.action = action.join()
  game.terms.show(terms)
}

/** Draws a step, or a moment of it. */
const draw = ({ stage, episodes, forces }, { moment, step: { action, length }, index }) => {
  const parameters = { forces: forces.querySelector("input").checked }
  stage.show({ parameters, state: moment, action, index: `${episodes}:${length}:${index}`, episode: episodes })
}

const nextEpisode = (game, wait = () => {}) => {
  game.episodes++
  game.table.dataset.episodes = String(game.episodes)
  game.trainer.send("Restart")
  game.isEnding = false
  wait()
}

const refused = (game, { message }) => {
  game.isAsked = false
  fail(game, message)
}

const answers = { Opened: opened, Acted: acted, Refused: refused }
