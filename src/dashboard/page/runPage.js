/** A run's page: what it was told, how it did, what it looks like, and its files. */
import { makeChart } from "./chart.js"
import { lineOf, viewControls } from "./curves.js"
import { fetchCurves, fetchRun, fileAddress } from "./data.js"
import { bytes, choice, duration, el, number, time } from "./dom.js"
import { makePlayer } from "./player.js"
import { variables } from "./table.js"

export const makeRunPage = (state, path) => {
  const charts = {
    validation: makeChart("Validation return, lowest to highest"),
    train: makeChart("Training return, lowest to highest"),
  }
  const heading = el("div")
  const rest = el("div")
  const problem = el("p", { class: "problem", role: "alert" })
  const watching = makeEpisodes(path)
  const element = el(
    "article",
    { class: "run" },
    el("p", {}, el("a", { href: "#/" }, "← all runs")),
    heading,
    problem,
    viewControls(state.view, () => draw(), { several: false }),
    el("div", { class: "charts" }, charts.validation.element, charts.train.element),
    watching.element,
    rest,
  )
  let curves
  let loading = false
  let again = false

  const dark = matchMedia("(prefers-color-scheme: dark)")
  const draw = () => {
    const { view } = state
    const style = getComputedStyle(document.documentElement)
    for (const [place, measure] of ["validation", "train"].entries()) {
      const found = curves?.[measure]
      const columns = found === undefined ? undefined : { y: found.mean, low: found.min, high: found.max }
      const color = style.getPropertyValue(`--series-${place + 1}`).trim()
      const series =
        found === undefined ? [] : [{ ...lineOf(found[view.axis], columns, view.smoothing), label: "mean", color }]
      charts[measure].show({ series, xName: view.axis, logX: view.logX, logY: view.logY })
    }
  }

  dark.addEventListener("change", draw)

  const update = async () => {
    if (loading) return void (again = true)
    loading = true
    try {
      const [detail, found] = await Promise.all([fetchRun(path), fetchCurves(path)])
      problem.textContent = ""
      curves = found
      draw()
      show(detail)
    } catch (error) {
      problem.textContent = error.message
    }
    loading = false
    if (again) {
      again = false
      void update()
    }
  }

  const show = (detail) => {
    const { summary: run } = detail
    const name = [run.name, variables(run)].filter(Boolean).join(" ")
    document.title = `${name} seed ${run.seed}`
    const facts = [
      ["state", el("span", { class: `badge ${run.state}` }, run.state)],
      ["environment", run.env],
      ["algorithm", run.algorithm],
      ["seed", run.seed === null ? "–" : String(run.seed)],
      ["score", `${number(run.score)}${run.scoreStd === null ? "" : ` ± ${number(run.scoreStd)}`}`],
      ["best", number(run.best)],
      ["steps", `${number(run.steps)}${run.totalSteps === null ? "" : ` of ${number(run.totalSteps)}`}`],
      ["episodes", number(run.episodes)],
      ["took", duration(run.seconds)],
      ["speed", run.seconds ? `${number(Math.round(run.steps / run.seconds))} steps/s` : "–"],
      ["started", time(run.time)],
      ["commit", run.commit || "–"],
    ]
    heading.replaceChildren(
      el("h1", {}, name, run.seed === null ? "" : ` · seed ${run.seed}`),
      el("p", { class: "quiet" }, path),
      el("dl", { class: "facts" }, facts.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value || "–")))), // prettier-ignore
    )
    watching.show(detail.files)
    const open = new Set([...rest.querySelectorAll("details[open]")].map(({ id }) => id))
    rest.replaceChildren(
      el("div", { class: "halves" }, validations(detail), log(detail)),
      el("div", { class: "halves" }, config(detail), files(path, detail)),
    )
    for (const id of open) document.getElementById(id)?.setAttribute("open", "")
    const lines = rest.querySelector(".log")
    lines.scrollTop = lines.scrollHeight
  }

  return {
    element,
    update,
    changed: (paths) => void (paths.has(path) && update()),
    close: () => {
      dark.removeEventListener("change", draw)
      watching.close()
      document.title = "Runs"
    },
  }
}

const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children)

const validations = ({ validations: lines }) => {
  const row = (cell, values) => el("tr", {}, values.map((value) => el(cell, { class: "number" }, value))) // prettier-ignore
  const table = el(
    "table",
    {},
    el("thead", {}, row("th", ["step", "mean return", "±", "episodes", "length", "terminated"])),
    el(
      "tbody",
      {},
      lines
        .toReversed()
        .map((line) =>
          row("td", [
            number(line.step),
            number(line.mean),
            number(line.std),
            number(line.episodes),
            number(line.length),
            line.terminated === null ? "–" : `${Math.round(100 * line.terminated)} %`,
          ]),
        ),
    ),
  )
  return card(
    "Validations",
    lines.length === 0
      ? el("p", { class: "quiet" }, "Listed when the run is finished.")
      : el("div", { class: "scroll", tabindex: "0" }, table),
  )
}

const log = ({ log: lines }) =>
  card("Log", el("pre", { class: "log", tabindex: "0", "aria-label": "The log's last lines" }, lines.join("\n")))

const config = ({ config: text }) =>
  card("Config", el("pre", { tabindex: "0", "aria-label": "The effective config" }, text ?? "There is none."))

const files = (run, { files: all }) => {
  const folders = Map.groupBy(
    all,
    ({ path }) => /^(checkpoints|steps)\/[^/]+/.exec(path)?.[0] ?? /^scores\b/.exec(path)?.[0] ?? "",
  )
  const list = (some) =>
    el(
      "ul",
      { class: "fileList" },
      some.map(({ path, size }) =>
        el(
          "li",
          {},
          el("a", { href: fileAddress(run, path), download: path.split("/").at(-1) }, path),
          el("span", { class: "quiet" }, ` ${bytes(size)}`),
        ),
      ),
    )
  const folded = [...folders]
    .filter(([folder]) => folder !== "")
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([folder, some]) => {
      const size = some.reduce((sum, one) => sum + one.size, 0)
      return el(
        "details",
        { id: `folder-${folder}` },
        el(
          "summary",
          {},
          folder,
          el("span", { class: "quiet" }, ` ${some.length} ${some.length === 1 ? "file" : "files"}, ${bytes(size)}`),
        ),
        list(some),
      )
    })
  return card("Files and checkpoints", list(folders.get("") ?? []), ...folded)
}

/** The episodes kept below `steps/`: the picture that moves, or the player. */
const makeEpisodes = (run) => {
  const stage = el("div")
  const controls = el("div", { class: "controls" })
  const element = card("Episodes", controls, stage)
  element.classList.add("episodes")
  element.hidden = true
  let known = ""
  let player
  let step
  let way

  const present = (steps, ui) => {
    const found = steps.get(step)
    const ways = [found.trajectories && ["player", "player"], found.svg && ["picture", "picture"]].filter(Boolean)
    if (!ways.some(([name]) => name === way)) way = ui === undefined && found.svg !== undefined ? "picture" : ways[0][0]
    const again = () => present(steps, ui)
    const newestFirst = [...steps.keys()].toReversed().map((name) => [name, number(Number(name))])
    controls.replaceChildren(
      choice("at step", newestFirst, step, (value) => ((step = value), again())),
      ways.length > 1 ? choice("as", ways, way, (value) => ((way = value), again())) : "",
    )
    player?.close()
    player = undefined
    if (way === "picture") {
      const alt = `A validation episode at step ${Number(step)}`
      return stage.replaceChildren(el("div", { class: "stage" }, el("img", { src: fileAddress(run, found.svg), alt })))
    }
    player = makePlayer()
    stage.replaceChildren(player.element)
    player
      .load(fileAddress(run, found.trajectories), ui === undefined ? undefined : fileAddress(run, ui))
      .catch((error) => stage.replaceChildren(el("p", { class: "problem" }, error.message)))
  }

  return {
    element,
    show: (files) => {
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
      if (now === known || steps.size === 0) return
      known = now
      step ??= [...steps.keys()].at(-1)
      element.hidden = false
      // Whoever watches an episode goes on watching it when a new one comes.
      if (player === undefined || !steps.has(step)) present(steps, ui)
    },
    close: () => player?.close(),
  }
}
