/** Makes the animation of the page "Play", which plays episodes of the current policy, one after another. */
import { el, toggle } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeStage } from "../player/stage.js"
import { trajectoriesIn } from "../player/trajectories.js"

/** Makes the animation. `want` is called when the next episode can be played. */
export const makePicture = (want) => {
  const problem = el("p.problem", { role: "alert" })
  const stage = makeStage((message) => (problem.textContent = message))
  const where = el("p.line.quiet", "The policy plays here while it learns.")
  let isOn = !matchMedia("(prefers-reduced-motion: reduce)").matches
  const box = toggle("play episodes of the policy", isOn, (checked) => {
    isOn = checked
    if (isOn) next()
  })
  /** The code that the stage has loaded, which renders the env. */
  let code
  let isStarted = false
  /** The episode that is being played, and the next one. */
  let playing
  let waiting
  let episodes = 0
  let isClosed = false

  const next = () => {
    playing = waiting
    waiting = undefined
    if (playing === undefined) return want()
    episodes++
    playing.shown = -1
    playing.start = undefined
    requestAnimationFrame(tick)
  }

  const tick = (now) => {
    if (isClosed || !isOn || playing === undefined) return
    const { steps, step, shown } = playing
    playing.start ??= now
    const { dt } = steps[0]
    const index = Math.min(steps.length - 1, Math.floor((now - playing.start) / 1000 / dt))
    if (index !== shown) {
      playing.shown = index
      const { state, action } = steps[index]
      const sum = steps.slice(0, index + 1).reduce((total, { reward }) => total + reward, 0)
      where.textContent = `The policy after ${number(step)} steps: step ${index + 1} of its episode, return ${number(sum)}`
      stage.show({
        parameters: playing.parameters ?? {},
        state,
        action,
        index: `${episodes}:${index}`,
        episode: episodes,
      })
    }
    // The last step is shown for half a second.
    if (now - playing.start > 1000 * (steps.length * dt + 0.5)) next()
    else requestAnimationFrame(tick)
  }

  return {
    element: el("section.card.picture", el("h2", "The policy"), stage.element, where, box, problem),
    /** Receives an episode from the worker. If an episode already waits, the episode of the newer policy replaces it. */
    take: async ({ step, trajectories, ui }) => {
      const [episode] = await trajectoriesIn(trajectories)
      if (isClosed || episode === undefined) return
      if (!isStarted || ui !== code) {
        isStarted = true
        code = ui
        playing = undefined
        problem.textContent = ""
        await stage.start(ui)
      }
      waiting = { step, steps: episode.trajectory, parameters: episode.parameters }
      if (isOn && playing === undefined) next()
    },
    /** Requests an episode at the start of a training, unless one is already playing. */
    begin: () => void (isOn && want()),
    close: () => {
      isClosed = true
      stage.close()
    },
  }
}
