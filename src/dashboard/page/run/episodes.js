/** Makes the section of a run's page that shows episodes from its folders `steps/…/`, as pictures or in the player. */
import { fileAddress } from "../data.js"
import { choice, el } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makePlayer } from "../player/player.js"

export const makeEpisodes = (run) => {
  const stage = el("div")
  const controls = el("div.controls")
  const element = el("section.card.episodes", { hidden: true }, el("h2", "Episodes"), controls, stage)
  let drawn = ""
  let player
  let step
  let mode

  const present = (steps, ui) => {
    const files = steps.get(step)
    const modes = [files.trajectories && ["player", "player"], files.svg && ["picture", "picture"]].filter(Boolean)
    if (!modes.some(([name]) => name === mode))
      mode = ui === undefined && files.svg !== undefined ? "picture" : modes[0][0]
    const again = () => present(steps, ui)
    const newestFirst = [...steps.keys()].toReversed().map((name) => [name, number(Number(name))])
    controls.replaceChildren(
      choice("at step", newestFirst, step, (value) => ((step = value), again())),
      modes.length > 1 ? choice("as", modes, mode, (value) => ((mode = value), again())) : "",
    )
    player?.close()
    player = undefined
    if (mode === "picture") {
      const alt = `A validation episode at step ${Number(step)}`
      return stage.replaceChildren(el("div.stage", el("img", { src: fileAddress(run, files.svg), alt })))
    }
    player = makePlayer()
    stage.replaceChildren(player.element)
    player
      .load(fileAddress(run, files.trajectories), ui === undefined ? undefined : fileAddress(run, ui))
      .catch((error) => stage.replaceChildren(el("p.problem", error.message)))
  }

  return {
    element,
    show: ({ files }) => {
      const paths = files.map(({ path }) => path)
      const steps = new Map()
      for (const path of paths.toSorted()) {
        const [, name, kind] = /^steps\/(\d+)\/(episode\.svg|trajectories\.json(?:\.gz)?)$/.exec(path) ?? []
        if (name === undefined) continue
        const entry = steps.get(name) ?? {}
        entry[kind === "episode.svg" ? "svg" : "trajectories"] = path
        steps.set(name, entry)
      }
      const ui = paths.find((path) => path === "ui.esm.js")
      const now = JSON.stringify([...steps, ui])
      if (now === drawn || steps.size === 0) return
      drawn = now
      step ??= [...steps.keys()].at(-1)
      element.hidden = false
      // A new episode must not replace the one that the user is watching.
      if (player === undefined || !steps.has(step)) present(steps, ui)
    },
    close: () => player?.close(),
  }
}
