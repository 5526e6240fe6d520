/**
 * Plays trajectories `[{ parameters, trajectory: [{ state, action, dt, reward, terminated }] }]`. The run's own file
 * `ui.esm.js` renders them in a sandboxed frame; without this file, the player shows numbers.
 */
import { choice, el } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeStage } from "./stage.js"
import { trajectoriesIn } from "./trajectories.js"

/** Reads a file; `address` is its address, and `name` what messages call it. */
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

export const makePlayer = () => {
  const stage = makeStage((message) => (problem.textContent = message))
  const scrub = el("input", {
    type: "range",
    min: "0",
    value: "0",
    "aria-label": "Step",
    oninput: () => goTo(Number(scrub.value)),
  })
  const play = el("button.button.play", { disabled: true, onclick: () => setPlaying(!playing) }, "Play")
  const where = el("span.where.quiet", { role: "status" })
  const episodes = el("div.slot")
  const problem = el("p.problem", { role: "alert" })
  const speeds = ["0.1", "0.25", "0.5", "1", "2", "4", "8"].map((value) => [value, `${value}×`])
  const speedChoice = choice("speed", speeds, "1", (value) => (speed = Number(value)))
  const element = el(
    "div.player",
    { tabindex: "-1", role: "group", "aria-label": "Episode player" },
    stage.element,
    el("div.controls", play, el("label.field.scrub", el("span", "step"), scrub), speedChoice, episodes),
    el("p.line", where),
    problem,
    el("p.line.hint.quiet", "Keys: space plays and pauses, ← → step, Home and End, + and − for the speed."),
  )
  /** The episodes. There are none until the stage can show them, so that nothing can be played before. */
  let trajectories = []
  let episode = 0
  let step = 0
  let speed = 1
  let playing = false
  let closed = false

  const steps = () => trajectories[episode]?.trajectory ?? []

  const goTo = (next) => {
    step = Math.max(0, Math.min(steps().length - 1, next))
    const now = steps()[step]
    if (now === undefined) return
    const total = steps()
      .slice(0, step + 1)
      .reduce((sum, { reward }) => sum + reward, 0)
    const end = now.terminated ? ", terminated" : now.truncated ? ", truncated" : ""
    scrub.value = String(step)
    where.textContent = `step ${step + 1} of ${steps().length}, reward ${number(now.reward)}, return ${number(total)}${end}`
    stage.show({
      parameters: trajectories[episode].parameters ?? {},
      state: now.state ?? now.observation,
      action: now.action,
      index: `${episode}:${step}`,
      episode,
    })
  }

  const chooseEpisode = (next) => {
    episode = next
    scrub.max = String(Math.max(0, steps().length - 1))
    goTo(0)
  }

  let before
  /** The time of the episode, in seconds, that has passed since the step that is shown. */
  let elapsed = 0
  const tick = (now) => {
    if (!playing || closed) return
    elapsed += ((now - (before ?? now)) / 1000) * speed
    before = now
    let next = step
    // A hidden tab renders nothing. When it is visible again, the player must not play the missed steps at once.
    elapsed = Math.min(elapsed, 0.5)
    for (let dt = dtOf(next); elapsed >= dt && next < steps().length - 1; dt = dtOf(next)) {
      elapsed -= dt
      next++
    }
    if (next !== step) goTo(next)
    if (step >= steps().length - 1) return setPlaying(false)
    requestAnimationFrame(tick)
  }
  const dtOf = (index) => steps()[index].dt

  const setPlaying = (next) => {
    playing = next && steps().length > 1
    play.textContent = playing ? "Pause" : "Play"
    if (!playing) return
    if (step >= steps().length - 1) chooseEpisode(episode)
    before = undefined
    elapsed = 0
    requestAnimationFrame(tick)
  }

  const changeSpeed = (by) => {
    const select = speedChoice.querySelector("select")
    select.selectedIndex = Math.max(0, Math.min(speeds.length - 1, select.selectedIndex + by))
    speed = Number(select.value)
  }

  element.addEventListener("keydown", (event) => {
    const onButton = event.target instanceof HTMLButtonElement
    const onSelect = event.target instanceof HTMLSelectElement
    const actions = {
      " ": onButton ? undefined : () => setPlaying(!playing),
      ArrowRight: onSelect ? undefined : () => goTo(step + (event.shiftKey ? 10 : 1)),
      ArrowLeft: onSelect ? undefined : () => goTo(step - (event.shiftKey ? 10 : 1)),
      Home: () => goTo(0),
      End: () => goTo(steps().length - 1),
      "+": () => changeSpeed(1),
      "-": () => changeSpeed(-1),
    }
    const action = actions[event.key]
    if (action === undefined) return
    event.preventDefault()
    action()
  })

  return {
    element,
    /** Loads the files `{ address, name }` of trajectories and, if there is one, of the code that renders them. */
    load: async (trajectoriesFile, uiFile) => {
      const [episodesRead, code] = await Promise.all([
        readTrajectories(trajectoriesFile),
        uiFile === undefined ? undefined : read(uiFile).then((response) => response.text()),
      ])
      if (closed) return
      problem.textContent = ""
      where.textContent = code === undefined ? "" : `waiting for ${uiFile.name} …`
      await stage.start(code)
      if (closed) return
      trajectories = episodesRead
      play.disabled = steps().length < 2
      where.textContent = steps().length === 0 ? `${trajectoriesFile.name} has no episodes` : ""
      const options = trajectories.map((_, index) => [String(index), String(index + 1)])
      episodes.replaceChildren(
        options.length > 1 ? choice("episode", options, "0", (value) => chooseEpisode(Number(value))) : "",
      )
      chooseEpisode(0)
    },
    close: () => {
      closed = true
      stage.close()
    },
  }
}
