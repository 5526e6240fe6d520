/** Makes the page of a run from sections `{ element, show(detail) }`; `detail` is the run's data from `detail.ts`. */
import { measures } from "../../curves/Curve.ts"
import { studyOf } from "../../grouping.ts"
import { overviewAddress, studyAddress, trainerAddress } from "../address.js"
import { fetchCurves, fetchRun } from "../data.js"
import { makeMetrics } from "../parts/metrics.js"
import { makeChart } from "../parts/chart.js"
import { el, factList, seriesColor } from "../parts/dom.js"
import { duration, number, time } from "../parts/format.js"
import { lineOf } from "../parts/lines.js"
import { badge, seededTitle } from "../parts/runTexts.js"
import { makeSource } from "../parts/source.js"
import { makeGame } from "../play/game.js"
import { viewControls } from "../parts/viewControls.js"
import { makeTranscripts } from "../transcripts/transcripts.js"
import { makeEpisodes } from "./episodes.js"
import { makeReport } from "./report.js"
import { makeConfig, makeFiles, makeLog, makeValidations } from "./sections.js"
import { makeSystem } from "./system.js"

const titles = { validation: "Validation return, lowest to highest", train: "Training return, lowest to highest" }

/** Makes the page of the run with a path. It calls `seen` after the user has changed what is shown. */
export const makeRunPage = (state, seen, path) => {
  const charts = measures.map((measure) => makeChart(titles[measure]))
  const back = el("a.back", "← all runs")
  const heading = el("div")
  const problem = el("p.problem", { role: "alert" })
  const controls = el("div")
  const episodes = makeEpisodes(path)
  const game = makeGame(path)
  const transcripts = makeTranscripts(state, seen, path)
  const report = makeReport()
  const system = makeSystem()
  const [validations, log, config, files] = [makeValidations(), makeLog(), makeConfig(), makeFiles(path)]
  const sections = [report, episodes, game, transcripts, system, validations, log, config, files]
  const drawings = el("div.charts", charts.map((chart) => chart.element)) // prettier-ignore
  const metrics = makeMetrics(state.view, seen, (error) => (problem.textContent = error.message))
  const metricsCard = el("section.card", el("h2", "Metrics"), metrics.element)
  const body = el(
    "div",
    report.element,
    controls,
    drawings,
    metricsCard,
    episodes.element,
    game.element,
    transcripts.element,
    el("div.halves", validations.element, log.element),
    system.element,
    el("div.halves", config.element, files.element),
  )
  const element = el("article.run", back, heading, problem, body)

  const draw = () => {
    back.setAttribute("href", overviewAddress(state))
    const { axis: xName, smoothing, logX, logY } = state.view
    const { curves, detail } = source.of(path) ?? {}
    for (const [place, chart] of charts.entries()) {
      const curve = curves?.[measures[place]]
      const columns = { y: curve?.mean, low: curve?.min, high: curve?.max }
      const line = curve && { ...lineOf(curve[xName], columns, smoothing), label: "mean", color: seriesColor(place) }
      chart.show({ series: line ? [line] : [], xName, logX, logY, waiting: !line, nothing: "none so far" })
    }
    // Evaluations and folders of rollouts have no metrics over steps.
    if (detail?.summary.kind === "run") metrics.show([{ label: "mean", color: seriesColor(0), runs: [path] }])
    system.redraw()
  }

  const restore = () => {
    const changed = (control) => {
      draw()
      seen(control)
    }
    controls.replaceChildren(viewControls(state.view, changed, { several: false }))
    draw()
    transcripts.restore()
  }

  const read = async () => {
    const requests = [fetchRun(path), fetchCurves(path)]
    // A problem is shown when both requests have ended.
    await Promise.allSettled(requests)
    const [detail, curves] = await Promise.all(requests)
    return { detail, curves }
  }
  const failed = (error) => {
    problem.textContent = error.status === 404 ? `There is no run “${path}” here.` : error.message
    // If the data of the run was read before, it stays visible.
    body.hidden = source.of(path) === undefined
  }
  const source = makeSource(read, () => show(source.of(path).detail), failed)
  restore()

  const show = (detail) => {
    const { summary: run } = detail
    document.title = `${seededTitle(run)} · effect-rl`
    heading.replaceChildren(
      el("h1", `${seededTitle(run)} `, run.kind === "rollouts" ? "" : badge(run)),
      el("p.path.quiet", path),
      trainerLink(run),
      studyLink(run),
      progressOf(run),
      factList(run.kind === "rollouts" ? [] : factsOf(detail)),
    )
    problem.textContent = ""
    body.hidden = false
    draw()
    for (const section of sections) section.show(detail)
    const isTrained = run.kind === "run"
    for (const one of [controls, drawings, metricsCard, validations.element]) one.hidden = !isTrained
    for (const one of [log.element, config.element]) one.hidden = run.kind === "rollouts"
  }

  return {
    element,
    update: () => source.want([path]),
    restore,
    draw,
    changed: (paths) => {
      source.stale(paths)
      metrics.stale(paths)
    },
    close: () => {
      source.want([])
      episodes.close()
      game.close()
      transcripts.close()
    },
  }
}

/** Returns the facts at the top of the page. For a run without a result, `system.jsonl` tells how long it took. */
const factsOf = ({ summary: run, system }) => [
  ["environment", run.env],
  [run.kind === "evaluation" ? "agents" : "algorithm", run.algorithm],
  ["score", `${number(run.score)}${run.scoreStd === null ? "" : ` ± ${number(run.scoreStd)}`}`],
  ...run.agents.map(({ agent, mean }) => [`score of ${agent}`, number(mean)]),
  ...(run.kind === "run" ? [["best", number(run.best)]] : []),
  ["steps", `${number(run.steps)}${run.totalSteps === null ? "" : ` of ${number(run.totalSteps)}`}`],
  ["episodes", number(run.episodes)],
  ["took", duration(run.seconds ?? system?.seconds.at(-1))],
  ["speed", speedOf(run, system)],
  ["started", time(run.time)],
  ["commit", run.commit || "–"],
]

/** Returns the current speed of a run in progress, or the mean speed of a run that has ended, as its result says it. */
const speedOf = (run, system) => {
  const isRunning = run.state === "running"
  const speed = isRunning
    ? system?.stepsPerSecond.at(-1)
    : (run.stepsPerSecond ?? run.steps / (run.seconds ?? system?.seconds.at(-1)))
  if (!Number.isFinite(speed) || (speed <= 0 && !isRunning)) return "–"
  return `${number(speed < 10 ? speed : Math.round(speed))} steps/s`
}

/** Makes the link to the multi-run trainer of a run, or of the trainer to the page with all its runs. */
const trainerLink = ({ path, trainer, runs }) => {
  if (trainer === null && runs === undefined) return ""
  const text = trainer === null ? "all its runs" : "all runs of its trainer"
  return el("p.line", el("a.trainerLink", { href: trainerAddress(trainer ?? path) }, text))
}

/** Makes the link to the study of effect tune that a run is a trial of. */
const studyLink = (run) => {
  const study = studyOf(run)
  return study === undefined ? "" : el("p.line", el("a.studyLink", { href: studyAddress(study) }, "all trials of its study")) // prettier-ignore
}

const progressOf = (run) =>
  run.state === "running" && run.totalSteps > 0
    ? el("progress", { max: String(run.totalSteps), value: String(run.steps ?? 0), "aria-label": "Steps done" })
    : ""
