/**
 * Makes the page of a multi-run trainer. It shows which runs are being trained, wait or have ended, the curves of all runs in
 * the same charts, and how many tokens the trainer trains and generates per second.
 */
import { overviewAddress, runAddress } from "../address.js"
import { makeMetrics } from "../parts/metrics.js"
import { el, factList, rowsIn, seriesColor, swatch, tableButton } from "../parts/dom.js"
import { counted, number, time } from "../parts/format.js"
import { badge, titleOf } from "../parts/runTexts.js"
import { viewControls } from "../parts/viewControls.js"
import { makeCurves } from "../runs/curves.js"
import { makeFigures } from "./figures.js"

/** The largest number of runs that are drawn, which is the number of colours. */
const mostDrawn = 8

const nameOf = ({ id }) => id.replace(/^run_/, "")

/** The states of runs, in the order in which the page counts them. */
const states = ["training", "waiting", "finished", "stopped", "evicted", "invalid", "unconfigured"]

/** Makes the page of the trainer with the given path. It calls `seen` after the user has changed what is shown. */
export const makeTrainerPage = (state, seen, path) => {
  const page = makePage(state, seen, path)
  return {
    element: page.element,
    restore: () => restore(page),
    draw: () => draw(page),
    update: () => restore(page),
    changed: (paths) => {
      if (![...paths].some((one) => one === path || one.startsWith(`${path}/`))) return
      draw(page)
      for (const part of [page.curves, page.figures, page.metrics]) part.stale(paths)
    },
  }
}

/** Makes the state of the page: its elements, and the trainer that it shows. All functions below work on this state. */
const makePage = (state, seen, path) => {
  const problem = el("p.problem", { role: "alert" })
  const failed = (error) => (problem.textContent = error.message)
  const body = el("tbody")
  const metrics = makeMetrics(state.view, seen, failed)
  const page = {
    state,
    seen,
    path,
    back: el("a.back", "← all runs"),
    heading: el("div"),
    problem,
    controls: el("div"),
    curves: makeCurves(state),
    figures: makeFigures(state.view, failed),
    metrics,
    full: el("p.quiet", { role: "status", hidden: true }),
    table: makeTable(body),
    fill: rowsIn(body),
    allMetrics: el(
      "details.card.allMetrics",
      { ontoggle: () => toggledMetrics(page) },
      el("summary", "All metrics of the runs that are drawn"),
      metrics.element,
    ),
    /** Whether the user has just ticked one more run than can be drawn. */
    refused: false,
    content: undefined,
    element: undefined,
  }
  const { back, heading, controls, curves, figures, full, table, allMetrics } = page
  page.content = el(
    "div",
    table,
    full,
    controls,
    curves.element,
    el("section.card.figures", el("h2", "Training"), figures.ofRuns),
    el("section.card.figures", el("h2", "The whole trainer"), figures.ofTrainer),
    allMetrics,
  )
  page.element = el("article.trainer", back, heading, problem, page.content)
  return page
}

const makeTable = (body) => {
  const table = el("table", el("thead", el("tr", ["draw", "run", "state", "steps", "score", "best", "episodes"].map(headOf))), body) // prettier-ignore
  const frame = el("div.table.trainerRuns", { tabindex: "0", role: "group", "aria-label": "Runs" }, table)
  return el("div.saved", frame, tableButton("Runs", table))
}

// --- Actions of the user ---

const changed = (page, control) => {
  draw(page)
  page.refused = false
  page.seen(control)
}

const toggledMetrics = (page) => {
  const { state, allMetrics } = page
  if (state.view.metrics === allMetrics.open) return
  state.view.metrics = allMetrics.open
  changed(page)
}

/** Adds the curves of a run or removes them. An added run gets the first free colour. */
const select = (page, id, on) => {
  const drawn = (page.state.drawn = new Map(placesOf(page)))
  const taken = new Set(drawn.values())
  const free = Array.from({ length: mostDrawn }, (_, place) => place).find((place) => !taken.has(place))
  page.refused = on && free === undefined
  if (!on) drawn.delete(id)
  else if (free !== undefined) drawn.set(id, free)
  changed(page)
}

const restore = (page) => {
  const { state, controls } = page
  controls.replaceChildren(viewControls(state.view, (control) => changed(page, control), { several: false }))
  draw(page)
}

// --- Contents of the page ---

const trainerOf = ({ state, path }) => state.trainers.get(path)
const pathOf = ({ path }, { id }) => `${path}/${id}`
const summaryOf = (page, run) => page.state.runs.get(pathOf(page, run))

/** Returns the runs that have begun, which are the ones that can be drawn. */
const drawableIn = (page) => trainerOf(page).runs.filter((run) => summaryOf(page, run) !== undefined)

/**
 * Returns the colours of the drawn runs by their ids. The drawn runs are those that the user has ticked, otherwise the first
 * ones.
 */
const placesOf = (page) =>
  page.state.drawn ?? new Map(drawableIn(page).slice(0, mostDrawn).map(({ id }, place) => [id, place])) // prettier-ignore

const draw = (page) => {
  const { state, path, back, content, problem, allMetrics } = page
  back.setAttribute("href", overviewAddress(state))
  const trainer = trainerOf(page)
  content.hidden = trainer === undefined
  if (trainer === undefined) {
    problem.textContent = `There is no multi-run trainer “${path}” here.`
    return
  }
  problem.textContent = ""
  drawHeading(page, trainer)
  const places = placesOf(page)
  drawRows(page, trainer, places)
  const drawable = drawableIn(page)
  drawLimit(page, drawable.length)
  const items = drawable.flatMap((run) => {
    const place = places.get(run.id)
    if (place === undefined) return []
    return [{ key: run.id, label: nameOf(run), color: seriesColor(place), kind: "run", runs: [pathOf(page, run)] }]
  })
  page.curves.show(items, drawable.length === 0 ? "no run has begun" : "tick runs above to draw them")
  page.figures.show(path, items)
  allMetrics.open = state.view.metrics
  if (state.view.metrics) page.metrics.show(items)
}

const drawHeading = ({ path, heading }, trainer) => {
  const count = (wanted) => trainer.runs.filter(({ state }) => state === wanted).length
  const counts = states.flatMap((one) => (count(one) > 0 ? [[one, number(count(one))]] : []))
  heading.replaceChildren(
    el("h1", `${trainer.name}: ${counted(trainer.runs.length, "run")} in one trainer `, badge(trainer)),
    el("p.quiet.variables", titleOf({ ...trainer, name: "" })),
    el("p.path.quiet", path),
    factList([...counts, ["started", time(trainer.time)], ["log, config, files", el("a", { href: runAddress(path) }, "of the trainer")]]), // prettier-ignore
  )
}

const drawRows = (page, trainer, places) =>
  page.fill(
    trainer.runs.map((run) => {
      const summary = summaryOf(page, run)
      const place = places.get(run.id)
      // Light and dark themes have different colours, so the colour is part of the content.
      const color = place === undefined ? "" : seriesColor(place)
      return { key: run.id, content: [run, summary, color], make: () => rowOf(page, run, summary, place) }
    }),
  )

const rowOf = (page, run, summary, place) => {
  const name = nameOf(run)
  const box = el("input", {
    type: "checkbox",
    id: `draw-${run.id}`,
    "aria-label": `Draw ${name}`,
    checked: place !== undefined,
    onchange: () => select(page, run.id, box.checked),
  })
  const color = place === undefined ? "" : swatch(seriesColor(place))
  return el(
    "tr",
    el("td.box", summary === undefined ? "" : [box, color]),
    el(
      "td.name",
      summary === undefined ? el("b", name) : el("a", { href: runAddress(pathOf(page, run)) }, name),
      run.reason !== null && el("p.problem.line", run.reason),
    ),
    el("td", badge(run), run.place !== null && el("span.quiet", ` ${number(run.place)} in the queue`)),
    el("td.number", `${number(summary?.steps)}${run.maxSteps === null ? "" : ` of ${number(run.maxSteps)}`}`),
    [summary?.score, summary?.best, summary?.episodes].map((value) => el("td.number", number(value))),
  )
}

/** Tells the user that not all runs are drawn, or that no more can be drawn. */
const drawLimit = ({ state, full, refused }, drawable) => {
  const some = state.drawn === undefined && drawable > mostDrawn
  const first = some ? `The first ${mostDrawn} of ${number(drawable)} are drawn: untick some to draw others.` : ""
  full.textContent = refused ? `At most ${mostDrawn} are drawn at once: untick one first.` : first
  full.hidden = full.textContent === ""
}

const headOf = (text, place) => {
  if (place === 0) return el("th.box", el("span.hidden", text))
  return el(place > 2 ? "th.number" : "th", { scope: "col" }, text)
}
