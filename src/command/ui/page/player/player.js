/**
 * Plays trajectories `[{ parameters, trajectory: [{ state, action, dt, reward, terminated }] }]`. The run's own file
 * `ui.esm.js` renders them in a sandboxed frame; without this file, the player shows numbers.
 */
import { choice, el, toggle } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeStage } from "./stage.js"
import { bodyIn, makeTerms } from "./terms.js"
import { trajectoriesIn } from "./trajectories.js"

/** Reads a file. `address` is where it is, and `name` is its name in messages. */
const read = async ({ address, name }) => {
  const response = await fetch(address)
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`)
  return response
}

const readTrajectories = async (file) => {
  const response = await read(file)
  try {
    return await trajectoriesIn(await response.arrayBuffer())
  } catch (error) {
    throw new Error(`${file.name}: ${error.message}`, { cause: error })
  }
}

const speeds = ["0.1", "0.25", "0.5", "1", "2", "4", "8"].map((value) => [value, `${value}×`])

/** Makes a player without episodes; its function `load` reads some. */
export const makePlayer = () => {
  const player = makeState()
  player.element.addEventListener("keydown", (event) => pressed(player, event))
  return {
    element: player.element,
    /** Loads a file `{ address, name }` of trajectories and, if there is one, the file of the code that renders them. */
    load: (trajectoriesFile, uiFile) => load(player, trajectoriesFile, uiFile),
    close: () => {
      player.closed = true
      player.stage.close()
    },
  }
}

/**
 * Makes the state of a player: its elements, the episodes, and the step that is shown. All functions below work on this
 * state.
 */
const makeState = () => {
  const problem = el("p.problem", { role: "alert" })
  const player = {
    problem,
    stage: makeStage((message) => (problem.textContent = message)),
    scrub: el("input", {
      type: "range",
      min: "0",
      value: "0",
      "aria-label": "Step",
      oninput: () => goTo(player, Number(player.scrub.value)),
    }),
    play: el("button.button.play", { disabled: true, onclick: () => setPlaying(player, !player.playing) }, "Play"),
    where: el("span.where.quiet", { role: "status" }),
    episodes: el("div.slot"),
    /** The terms of the reward, and a switch for the arrows of contact forces, if the env has a body. */
    terms: makeTerms(),
    forces: toggle("contact forces", true, () => goTo(player, player.step)),
    speedChoice: choice("speed", speeds, "1", (value) => (player.speed = Number(value))),
    /** The episodes. The list stays empty until the stage can show them, so that nothing can be played too early. */
    trajectories: [],
    episode: 0,
    step: 0,
    speed: 1,
    playing: false,
    closed: false,
    /** The time of the last frame, in milliseconds. */
    before: undefined,
    /** The time of the episode that has passed since the step that is shown, in seconds. */
    elapsed: 0,
    element: undefined,
  }
  const { stage, scrub, play, where, episodes, speedChoice, terms, forces } = player
  forces.hidden = true
  player.element = el(
    "div.player",
    { tabindex: "-1", role: "group", "aria-label": "Episode player" },
    el("div.watch", el("div.screen", stage.element), terms.element),
    el("div.controls", play, el("label.field.scrub", el("span", "step"), scrub), speedChoice, episodes, forces),
    el("p.line", where),
    problem,
    el("p.line.hint.quiet", "Keys: space plays and pauses, ← → step, Home and End, + and − for the speed."),
  )
  return player
}

const stepsOf = ({ trajectories, episode }) => trajectories[episode]?.trajectory ?? []

/** Shows a step of the episode, or the nearest step if there is no such step. */
const goTo = (player, next) => {
  const { stage, scrub, where, trajectories, episode, terms, forces } = player
  const steps = stepsOf(player)
  const step = Math.max(0, Math.min(steps.length - 1, next))
  player.step = step
  const now = steps[step]
  if (now === undefined) return
  const total = steps.slice(0, step + 1).reduce((sum, { reward }) => sum + reward, 0)
  const end = now.terminated ? ", terminated" : now.truncated ? ", truncated" : ""
  scrub.value = String(step)
  where.textContent = `step ${step + 1} of ${steps.length}, reward ${number(now.reward)}, return ${number(total)}${end}`
  forces.hidden = bodyIn(now.state) === undefined
  // The state before a step has the terms of the step before, so those of this step are in the next state.
  terms.show(bodyIn(steps[step + 1]?.state)?.terms)
  stage.show({
    parameters: { ...trajectories[episode].parameters, forces: forces.querySelector("input").checked },
    state: now.state ?? now.observation,
    action: now.action,
    index: `${episode}:${step}`,
    episode,
  })
}

const chooseEpisode = (player, next) => {
  player.episode = next
  player.scrub.max = String(Math.max(0, stepsOf(player).length - 1))
  goTo(player, 0)
}

/** Plays the steps whose time has passed since the last frame. */
const tick = (player, now) => {
  if (!player.playing || player.closed) return
  const steps = stepsOf(player)
  const isLast = (step) => step >= steps.length - 1
  player.elapsed += ((now - (player.before ?? now)) / 1000) * player.speed
  player.before = now
  let next = player.step
  // A hidden tab renders nothing. When it is visible again, the player must not play the missed steps at once.
  player.elapsed = Math.min(player.elapsed, 0.5)
  for (let { dt } = steps[next]; player.elapsed >= dt && !isLast(next); dt = steps[next].dt) {
    player.elapsed -= dt
    next++
  }
  if (next !== player.step) goTo(player, next)
  if (isLast(player.step)) return setPlaying(player, false)
  requestAnimationFrame((time) => tick(player, time))
}

const setPlaying = (player, next) => {
  const { length } = stepsOf(player)
  player.playing = next && length > 1
  player.play.textContent = player.playing ? "Pause" : "Play"
  if (!player.playing) return
  if (player.step >= length - 1) chooseEpisode(player, player.episode)
  player.before = undefined
  player.elapsed = 0
  requestAnimationFrame((time) => tick(player, time))
}

const changeSpeed = (player, by) => {
  const select = player.speedChoice.querySelector("select")
  select.selectedIndex = Math.max(0, Math.min(speeds.length - 1, select.selectedIndex + by))
  player.speed = Number(select.value)
}

const pressed = (player, event) => {
  const onButton = event.target instanceof HTMLButtonElement
  const onSelect = event.target instanceof HTMLSelectElement
  const by = event.shiftKey ? 10 : 1
  const actions = {
    " ": onButton ? undefined : () => setPlaying(player, !player.playing),
    ArrowRight: onSelect ? undefined : () => goTo(player, player.step + by),
    ArrowLeft: onSelect ? undefined : () => goTo(player, player.step - by),
    Home: () => goTo(player, 0),
    End: () => goTo(player, stepsOf(player).length - 1),
    "+": () => changeSpeed(player, 1),
    "-": () => changeSpeed(player, -1),
  }
  const action = actions[event.key]
  if (action === undefined) return
  event.preventDefault()
  action()
}

const load = async (player, trajectoriesFile, uiFile) => {
  const { stage, play, where, episodes, problem } = player
  const [trajectories, code] = await Promise.all([
    readTrajectories(trajectoriesFile),
    uiFile === undefined ? undefined : read(uiFile).then((response) => response.text()),
  ])
  if (player.closed) return
  problem.textContent = ""
  where.textContent = code === undefined ? "" : `waiting for ${uiFile.name} …`
  await stage.start(code)
  if (player.closed) return
  player.trajectories = trajectories
  const { length } = stepsOf(player)
  play.disabled = length < 2
  where.textContent = length === 0 ? `${trajectoriesFile.name} has no episodes` : ""
  const options = trajectories.map((_, index) => [String(index), String(index + 1)])
  episodes.replaceChildren(
    options.length > 1 ? choice("episode", options, "0", (value) => chooseEpisode(player, Number(value))) : "",
  )
  chooseEpisode(player, 0)
}
