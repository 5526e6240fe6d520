/** Makes the section of a run's page that shows episodes from its folders `steps/…/`, as pictures or in the player. */
import { fileAddress } from "../data.js"
import { choice, el } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makePlayer } from "../player/player.js"

/**
 * Reads a picture and returns it as a data URL. An SVG file of its own would be a page of this site, whose scripts would run
 * when somebody opens it, so an exported site stores it as text.
 */
const readPicture = async ({ address, name }) => {
  const response = await fetch(address)
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`)
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await response.text())}`
}

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
    const videos = files.videos ?? []
    const modes = [
      files.trajectories && ["player", "player"],
      files.svg && ["picture", "picture"],
      ...videos.map((file, index) => [file.path, index === 0 ? "video" : `video ${index + 1}`]),
    ].filter(Boolean)
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
    const failed = ({ message }) => stage.replaceChildren(el("p.problem", message))
    if (mode === "picture") {
      const image = el("img", { alt: `A validation episode at step ${Number(step)}` })
      stage.replaceChildren(el("div.stage", image))
      return void readPicture(addressed(files.svg)).then((source) => image.setAttribute("src", source), failed)
    }
    const video = videos.find(({ path }) => path === mode)
    if (video !== undefined) {
      const label = `Validation episodes at step ${Number(step)}`
      const source = fileAddress(run, video)
      const shown = video.path.endsWith(".mp4")
        ? el("video", { src: source, controls: true, loop: true, "aria-label": label })
        : el("img", { src: source, alt: label })
      return void stage.replaceChildren(el("div.stage", shown))
    }
    player = makePlayer()
    stage.replaceChildren(player.element)
    void player.load(addressed(files.trajectories), ui && addressed(ui)).catch(failed)
  }

  const addressed = (file) => ({ address: fileAddress(run, file), name: file.path })

  return {
    element,
    show: ({ files }) => {
      const steps = new Map()
      for (const file of files.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
        const [, name, kind] =
          /^steps\/(\d+)\/(episode\.svg|episode(?:_\d+)?\.(?:gif|mp4)|trajectories\.json(?:\.gz)?)$/.exec(file.path) ??
          []
        if (name === undefined) continue
        const entry = steps.get(name) ?? {}
        if (/\.(?:gif|mp4)$/.test(kind)) entry.videos = [...(entry.videos ?? []), file]
        else entry[kind === "episode.svg" ? "svg" : "trajectories"] = file
        steps.set(name, entry)
      }
      const ui = files.find(({ path }) => path === "ui.esm.js")
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
