/**
 * Makes the page of a multi-run trainer: which of its runs are trained, wait or have ended, the curves of the runs over
 * each other, and how many tokens it trains and generates a second.
 */
import { overviewAddress, runAddress } from "../address.js"
import { makeMetrics } from "../parts/metrics.js"
import { el, factList, rowsIn, seriesColor, swatch } from "../parts/dom.js"
import { counted, number, time } from "../parts/format.js"
import { badge, titleOf } from "../parts/runTexts.js"
import { viewControls } from "../parts/viewControls.js"
import { makeCurves } from "../runs/curves.js"
import { makeFigures } from "./figures.js"

/** At most this many runs are drawn, one for each colour. */
const mostDrawn = 8

const nameOf = ({ id }) => id.replace(/^run_/, "")

/** The states of runs, in the order in which the page counts them. */
const states = ["training", "waiting", "finished", "stopped", "evicted", "invalid", "unconfigured"]

/** Makes the page of the trainer with a path. It calls `seen` after the user has changed what is shown. */
export const makeTrainerPage = (state, seen, path) => {
  const back = el("a.back", "← all runs")
  const heading = el("div")
  const problem = el("p.problem", { role: "alert" })
  const controls = el("div")
  const failed = (error) => (problem.textContent = error.message)
  const curves = makeCurves(state)
  const figures = makeFigures(state.view, failed)
  const metrics = makeMetrics(state.view, seen, failed)
  const full = el("p.quiet", { role: "status", hidden: true })
  const body = el("tbody")
  const fill = rowsIn(body)
  const headings = ["draw", "run", "state", "steps", "score", "best", "episodes"]
  const table = el(
    "div.table.trainerRuns",
    { tabindex: "0", role: "group", "aria-label": "Runs" },
    el("table", el("thead", el("tr", headings.map(headOf))), body), // prettier-ignore
  )
  const allMetrics = el(
    "details.card.allMetrics",
    {
      ontoggle: () => {
        if (state.view.metrics === allMetrics.open) return
        state.view.metrics = allMetrics.open
        changed()
      },
    },
    el("summary", "All metrics of the runs that are drawn"),
    metrics.element,
  )
  const content = el(
    "div",
    table,
    full,
    controls,
    curves.element,
    el("section.card.figures", el("h2", "Training"), figures.ofRuns),
    el("section.card.figures", el("h2", "The whole trainer"), figures.ofTrainer),
    allMetrics,
  )
  const element = el("article.trainer", back, heading, problem, content)
  /** Whether the user has just ticked one run too many. */
  let refused = false

  const trainer = () => state.trainers.get(path)
  const pathOf = ({ id }) => `${path}/${id}`
  const summaryOf = (run) => state.runs.get(pathOf(run))

  /** Returns the runs that have begun, and so can be drawn. */
  const drawable = () => trainer().runs.filter((run) => summaryOf(run) !== undefined)

  /** Returns the colours of the drawn runs by their ids: of those that the user has ticked, or of the first. */
  const placesOf = () => state.drawn ?? new Map(drawable().slice(0, mostDrawn).map(({ id }, place) => [id, place])) // prettier-ignore

  const select = (id, on) => {
    const drawn = (state.drawn = new Map(placesOf()))
    const taken = new Set(drawn.values())
    const free = Array.from({ length: mostDrawn }, (_, place) => place).find((place) => !taken.has(place))
    refused = on && free === undefined
    if (!on) drawn.delete(id)
    else if (free !== undefined) drawn.set(id, free)
    changed()
  }

  const row = (run, summary, place) => {
    const name = nameOf(run)
    const box = el("input", {
      type: "checkbox",
      id: `draw-${run.id}`,
      "aria-label": `Draw ${name}`,
      checked: place !== undefined,
      onchange: () => select(run.id, box.checked),
    })
    const color = place === undefined ? "" : swatch(seriesColor(place))
    return el(
      "tr",
      el("td.box", summary === undefined ? "" : [box, color]),
      el(
        "td.name",
        summary === undefined ? el("b", name) : el("a", { href: runAddress(pathOf(run)) }, name),
        run.reason !== null && el("p.problem.line", run.reason),
      ),
      el("td", badge(run), run.place !== null && el("span.quiet", ` ${number(run.place)} in the queue`)),
      el("td.number", `${number(summary?.steps)}${run.maxSteps === null ? "" : ` of ${number(run.maxSteps)}`}`),
      [summary?.score, summary?.best, summary?.episodes].map((value) => el("td.number", number(value))),
    )
  }

  const draw = () => {
    back.setAttribute("href", overviewAddress(state))
    const summary = trainer()
    content.hidden = summary === undefined
    if (summary === undefined) {
      problem.textContent = `There is no multi-run trainer “${path}” here.`
      return
    }
    problem.textContent = ""
    drawHeading(summary)
    const places = placesOf()
    fill(
      summary.runs.map((run) => {
        const own = summaryOf(run)
        const place = places.get(run.id)
        // The colours of a theme differ, so they are a part of the content.
        const color = place === undefined ? "" : seriesColor(place)
        return { key: run.id, content: [run, own, color], make: () => row(run, own, place) }
      }),
    )
    full.textContent = refused
      ? `At most ${mostDrawn} are drawn at once: untick one first.`
      : state.drawn === undefined && drawable().length > mostDrawn
        ? `The first ${mostDrawn} of ${number(drawable().length)} are drawn: untick some to draw others.`
        : ""
    full.hidden = full.textContent === ""
    const items = drawable().flatMap((run) => {
      const place = places.get(run.id)
      if (place === undefined) return []
      return [{ key: run.id, label: nameOf(run), color: seriesColor(place), kind: "run", runs: [pathOf(run)] }]
    })
    curves.show(items, drawable().length === 0 ? "no run has begun" : "tick runs above to draw them")
    figures.show(path, items)
    allMetrics.open = state.view.metrics
    if (state.view.metrics) metrics.show(items)
  }

  const drawHeading = (summary) => {
    const count = (wanted) => summary.runs.filter(({ state: one }) => one === wanted).length
    const counts = states.flatMap((one) => (count(one) > 0 ? [[one, number(count(one))]] : []))
    heading.replaceChildren(
      el("h1", `${summary.name}: ${counted(summary.runs.length, "run")} in one trainer `, badge(summary)),
      el("p.quiet.variables", titleOf({ ...summary, name: "" })),
      el("p.path.quiet", path),
      factList([...counts, ["started", time(summary.time)], ["log, config, files", el("a", { href: runAddress(path) }, "of the trainer")]]), // prettier-ignore
    )
  }

  const changed = (control) => {
    draw()
    refused = false
    seen(control)
  }

  const restore = () => {
    controls.replaceChildren(viewControls(state.view, changed, { several: false }))
    draw()
  }

  return {
    element,
    restore,
    draw,
    update: restore,
    changed: (paths) => {
      if (![...paths].some((one) => one === path || one.startsWith(`${path}/`))) return
      draw()
      curves.stale(paths)
      figures.stale(paths)
      metrics.stale(paths)
    },
  }
}

const headOf = (text, place) => {
  if (place === 0) return el("th.box", el("span.hidden", text))
  return el(place > 2 ? "th.number" : "th", { scope: "col" }, text)
}
