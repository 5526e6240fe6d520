/** Makes the page of a run. Each of its sections is a module whose function makes `{ element, show(detail) }`. */
import { overviewAddress } from "../address.js"
import { makeChart } from "../parts/chart.js"
import { lineOf } from "../parts/lines.js"
import { viewControls } from "../parts/viewControls.js"
import { makeMetricsSource } from "../metrics/source.js"
import { makeMetrics } from "../metrics/metrics.js"
import { fetchCurves, fetchRun } from "../data.js"
import { card, el, seriesColor } from "../parts/dom.js"
import { duration, number, time } from "../parts/format.js"
import { makeEpisodes } from "./episodes.js"
import { makeFiles } from "./files.js"
import { makeReport } from "./report.js"
import { makeSystem } from "./system.js"
import { makeConfig, makeLog } from "./texts.js"
import { makeTranscripts } from "../transcripts/transcripts.js"
import { makeValidations } from "./validations.js"
import { badge, variables } from "../parts/runTexts.js"

const measures = [
  ["validation", "Validation return, lowest to highest"],
  ["train", "Training return, lowest to highest"],
]

export const makeRunPage = (state, seen, path) => {
  const charts = new Map(measures.map(([measure, title]) => [measure, makeChart(title)]))
  const back = el("a", { class: "back" }, "← all runs")
  const heading = el("div")
  const problem = el("p", { class: "problem", role: "alert" })
  const controls = el("div")
  const episodes = makeEpisodes(path)
  const transcripts = makeTranscripts(state, seen, path)
  const report = makeReport()
  const system = makeSystem()
  const [validations, log, config, files] = [makeValidations(), makeLog(), makeConfig(), makeFiles(path)]
  const sections = [report, episodes, transcripts, system, validations, log, config, files]
  const drawings = el("div", { class: "charts" }, [...charts.values()].map((chart) => chart.element)) // prettier-ignore
  const metrics = makeMetrics(state.view, seen)
  const metricsCard = card("Metrics", metrics.element)
  const source = makeMetricsSource(
    () => drawMetrics(),
    (error) => (problem.textContent = error.message),
  )
  const drawMetrics = () => metrics.show([{ label: "mean", color: seriesColor(0), runs: [source.of(path)] }])
  const body = el(
    "div",
    {},
    report.element,
    controls,
    drawings,
    metricsCard,
    episodes.element,
    transcripts.element,
    el("div", { class: "halves" }, validations.element, log.element),
    system.element,
    el("div", { class: "halves" }, config.element, files.element),
  )
  const element = el("article", { class: "run" }, back, heading, problem, body)
  let curves
  let closed = false
  let loading = false
  let again = false

  const draw = () => {
    const { view } = state
    back.setAttribute("href", overviewAddress(state))
    for (const [place, [measure]] of measures.entries()) {
      const found = curves?.[measure]
      const columns = found === undefined ? undefined : { y: found.mean, low: found.min, high: found.max }
      const series =
        found === undefined
          ? []
          : [{ ...lineOf(found[view.axis], columns, view.smoothing), label: "mean", color: seriesColor(place) }]
      const waiting = found === undefined
      charts
        .get(measure)
        .show({ series, xName: view.axis, logX: view.logX, logY: view.logY, waiting, nothing: "none so far" })
    }
  }
  const redraw = () => {
    draw()
    drawMetrics()
    system.redraw()
  }
  const dark = matchMedia("(prefers-color-scheme: dark)")
  dark.addEventListener("change", redraw)

  const restore = () => {
    const changed = (control) => {
      draw()
      drawMetrics()
      seen(control)
    }
    controls.replaceChildren(viewControls(state.view, changed, { several: false }))
    draw()
    drawMetrics()
    transcripts.restore()
  }
  restore()

  const update = async () => {
    if (loading) return void (again = true)
    loading = true
    try {
      const requests = [fetchRun(path), fetchCurves(path)]
      // A problem is shown when both requests have ended.
      await Promise.allSettled(requests)
      const [detail, found] = await Promise.all(requests)
      if (closed) return
      problem.textContent = ""
      curves = found
      draw()
      show(detail)
      if (detail.summary.kind === "run") {
        if (source.of(path) === undefined) source.want([path])
        else source.stale(new Set([path]))
      }
    } catch (error) {
      if (closed) return
      problem.textContent = error.status === 404 ? `There is no run “${path}” here.` : error.message
      // If the data of the run was read before, it stays visible.
      body.hidden = curves === undefined
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
    document.title = `${name} seed ${run.seed} · effect-rl`
    heading.replaceChildren(
      el(
        "h1",
        {},
        run.name,
        run.seed === null ? "" : ` · seed ${run.seed} `,
        run.kind === "rollouts" ? "" : badge(run),
      ),
      el("p", { class: "quiet variables" }, variables(run)),
      el("p", { class: "path quiet" }, path),
      progressOf(run),
      el("dl", { class: "facts" }, (run.kind === "rollouts" ? [] : factsOf(detail)).map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value || "–")))), // prettier-ignore
    )
    body.hidden = false
    for (const section of sections) section.show(detail)
    // Evaluations and folders of rollouts have no curves over steps.
    const isTrained = run.kind === "run"
    for (const one of [controls, drawings, metricsCard, validations.element]) one.hidden = !isTrained
    for (const one of [log.element, config.element]) one.hidden = run.kind === "rollouts"
  }

  return {
    element,
    update,
    restore,
    changed: (paths) => void (paths.has(path) && update()),
    close: () => {
      closed = true
      dark.removeEventListener("change", redraw)
      episodes.close()
      transcripts.close()
    },
  }
}

/** Returns the facts at the top of the page. The duration of a run in progress is the time of its last sample. */
const factsOf = ({ summary: run, system }) => [
  ["environment", run.env],
  [run.kind === "evaluation" ? "agents" : "algorithm", run.algorithm],
  ["score", `${number(run.score)}${run.scoreStd === null ? "" : ` ± ${number(run.scoreStd)}`}`],
  ...(run.kind === "run" ? [["best", number(run.best)]] : []),
  ["steps", `${number(run.steps)}${run.totalSteps === null ? "" : ` of ${number(run.totalSteps)}`}`],
  ["episodes", number(run.episodes)],
  ["took", duration(run.seconds ?? system?.seconds.at(-1))],
  ["speed", speedOf(run, system)],
  ["started", time(run.time)],
  ["commit", run.commit || "–"],
]

/** Returns the current speed of a run in progress, or the mean speed of a run that has ended. */
const speedOf = (run, system) => {
  const isRunning = run.state === "running"
  const speed = isRunning ? system?.stepsPerSecond.at(-1) : run.steps / (run.seconds ?? system?.seconds.at(-1))
  if (!Number.isFinite(speed) || (speed <= 0 && !isRunning)) return "–"
  return `${number(speed < 10 ? speed : Math.round(speed))} steps/s`
}

const progressOf = (run) =>
  run.state === "running" && run.totalSteps > 0
    ? el("progress", { max: String(run.totalSteps), value: String(run.steps ?? 0), "aria-label": "Steps done" })
    : ""
