/**
 * Makes the page of a run from sections `{ element, show(detail) }`; `detail` is the run's data, which `detail.ts` collects.
 */
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
import { makeLabels } from "./labels.js"
import { makePrompts } from "./prompts.js"
import { makeReport } from "./report.js"
import { makeConfig, makeFiles, makeLog, makeValidations } from "./sections.js"
import { makeSystem } from "./system.js"

const titles = { validation: "Validation return, lowest to highest", train: "Training return, lowest to highest" }

/** Makes the page of the run with the given path. It calls `seen` after the user has changed what is shown. */
export const makeRunPage = (state, seen, path) => {
  const page = makePage(state, seen, path)
  restore(page)
  return {
    element: page.element,
    update: () => page.source.want([path]),
    restore: () => restore(page),
    draw: () => draw(page),
    changed: (paths) => {
      page.source.stale(paths)
      page.metrics.stale(paths)
    },
    close: () => {
      page.source.want([])
      for (const { close } of [page.episodes, page.game, page.transcripts]) close()
    },
  }
}

/** Makes the state of the page: its sections, and the source of the run's data. All functions below work on this state. */
const makePage = (state, seen, path) => {
  const charts = measures.map((measure) => makeChart(titles[measure]))
  const problem = el("p.problem", { role: "alert" })
  const metrics = makeMetrics(state.view, seen, (error) => (problem.textContent = error.message))
  const page = {
    state,
    seen,
    path,
    charts,
    back: el("a.back", "← all runs"),
    heading: el("div"),
    problem,
    controls: el("div"),
    drawings: el("div.charts", charts.map((chart) => chart.element)), // prettier-ignore
    metrics,
    metricsCard: el("section.card", el("h2", "Metrics"), metrics.element),
    labels: makeLabels(state, path),
    report: makeReport(),
    prompts: makePrompts(),
    episodes: makeEpisodes(path),
    game: makeGame(path),
    transcripts: makeTranscripts(state, seen, path),
    system: makeSystem(),
    validations: makeValidations(),
    log: makeLog(),
    config: makeConfig(),
    files: makeFiles(path),
    source: makeSource(
      read,
      () => show(page),
      (error) => failed(page, error),
    ),
    body: undefined,
    element: undefined,
  }
  page.body = bodyOf(page)
  page.element = el("article.run", page.back, page.heading, problem, page.body)
  return page
}

const bodyOf = (page) =>
  el(
    "div",
    page.labels.element,
    page.report.element,
    page.prompts.element,
    page.controls,
    page.drawings,
    page.metricsCard,
    page.episodes.element,
    page.game.element,
    page.transcripts.element,
    el("div.halves", page.validations.element, page.log.element),
    page.system.element,
    el("div.halves", page.config.element, page.files.element),
  )

/** Reads the data of a run, and its learning curves. */
const read = async (path) => {
  const requests = [fetchRun(path), fetchCurves(path)]
  // A problem is shown only when both requests have ended.
  await Promise.allSettled(requests)
  const [detail, curves] = await Promise.all(requests)
  return { detail, curves }
}

const failed = ({ problem, body, source, path }, error) => {
  problem.textContent = error.status === 404 ? `There is no run “${path}” here.` : error.message
  // Data of the run that was read before stays visible.
  body.hidden = source.of(path) === undefined
}

/** Shows the newest data of the run. */
const show = (page) => {
  const { path, heading, problem, body, report, prompts, episodes, game, transcripts, system } = page
  const { validations, log, config, files } = page
  const { detail } = page.source.of(path)
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
  draw(page)
  const sections = [page.labels, report, prompts, episodes, game, transcripts, system, validations, log, config, files]
  for (const section of sections) section.show(detail)
  const isTrained = run.kind === "run"
  for (const one of [page.controls, page.drawings, page.metricsCard, validations.element]) one.hidden = !isTrained
  for (const one of [log.element, config.element]) one.hidden = run.kind === "rollouts"
}

/** Draws the charts with the current view, when the run has new data or the user has changed the view. */
const draw = ({ state, path, back, charts, source, metrics, system }) => {
  back.setAttribute("href", overviewAddress(state))
  const { axis: xName, smoothing, logX, logY } = state.view
  const { curves, detail } = source.of(path) ?? {}
  for (const [place, chart] of charts.entries()) {
    const curve = curves?.[measures[place]]
    const columns = { y: curve?.mean, low: curve?.min, high: curve?.max }
    const line = curve && { ...lineOf(curve[xName], columns, smoothing), label: "mean", color: seriesColor(place) }
    chart.show({ series: line ? [line] : [], xName, logX, logY, waiting: !line, nothing: "none so far" })
  }
  // Evaluations and folders of rollouts have no metrics that depend on steps.
  if (detail?.summary.kind === "run") metrics.show([{ label: "mean", color: seriesColor(0), runs: [path] }])
  system.redraw()
}

/** Shows what the address describes, after the address has changed. */
const restore = (page) => {
  const { state, seen, controls, transcripts } = page
  const changed = (control) => {
    draw(page)
    seen(control)
  }
  controls.replaceChildren(viewControls(state.view, changed, { several: false }))
  draw(page)
  transcripts.restore()
}

/** Returns the facts at the top of the page. If a run has no result yet, its duration comes from `system.jsonl`. */
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

/** Returns the current speed of a run in progress. For a run that has ended, returns the mean speed from its result. */
const speedOf = (run, system) => {
  const isRunning = run.state === "running"
  const speed = isRunning
    ? system?.stepsPerSecond.at(-1)
    : (run.stepsPerSecond ?? run.steps / (run.seconds ?? system?.seconds.at(-1)))
  if (!Number.isFinite(speed) || (speed <= 0 && !isRunning)) return "–"
  return `${number(speed < 10 ? speed : Math.round(speed))} steps/s`
}

/** Makes a link: from a run to its multi-run trainer, or from the trainer to the page with all its runs. */
const trainerLink = ({ path, trainer, runs }) => {
  if (trainer === null && runs === undefined) return ""
  const text = trainer === null ? "all its runs" : "all runs of its trainer"
  return el("p.line", el("a.trainerLink", { href: trainerAddress(trainer ?? path) }, text))
}

/** Makes the link from a run to the study of effect tune to which it belongs. */
const studyLink = (run) => {
  const study = studyOf(run)
  return study === undefined ? "" : el("p.line", el("a.studyLink", { href: studyAddress(study) }, "all trials of its study")) // prettier-ignore
}

const progressOf = (run) =>
  run.state === "running" && run.totalSteps > 0
    ? el("progress", { max: String(run.totalSteps), value: String(run.steps ?? 0), "aria-label": "Steps done" })
    : ""
