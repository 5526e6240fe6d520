/** Makes the page of a study of `effect tune`: its best trial, the best value so far, importance, slices and all trials. */
import { overviewAddress, runAddress } from "../address.js"
import { fetchStudy } from "../data.js"
import { makeChart } from "../parts/chart.js"
import { el, factList, seriesColor, tableOf } from "../parts/dom.js"
import { number } from "../parts/format.js"
import { makeSource } from "../parts/source.js"
import { makeSlice, textOf } from "./slices.js"

/** The largest number of trials in the table, which begins with the best. */
const mostRows = 200

/** Makes the page of the study in a folder. */
export const makeStudyPage = (state, path) => {
  const back = el("a.back", "← all runs")
  const heading = el("div", el("h1", "Study"))
  const problem = el("p.problem", { role: "alert" })
  const history = makeChart("Best value so far")
  const importance = el("div")
  const slices = el("div.charts.small")
  const trials = el("div")
  const body = el(
    "div",
    { hidden: true },
    history.element,
    el("section.card.importance", el("h2", "Importance"), importance),
    el("section.card", el("h2", "The metric over each parameter"), slices),
    el("section.card", el("h2", "Trials"), trials),
  )
  const element = el("article.study", back, heading, problem, body)

  const failed = (error) => {
    problem.textContent = error.status === 404 ? `There is no study “${path}” here.` : error.message
  }
  const source = makeSource(fetchStudy, () => draw(), failed)

  const draw = () => {
    back.setAttribute("href", overviewAddress(state))
    const study = source.of(path)
    if (study === undefined) return
    problem.textContent = ""
    body.hidden = false
    const ranked = study.ranking.map((trial) => study.trials[trial])
    const best = ranked.find(({ state: one }) => one === "finished")
    const count = (wanted) => study.trials.filter(({ state: one }) => one === wanted).length
    heading.replaceChildren(
      el("h1", `Study of ${study.name}`),
      el("p.path.quiet", path),
      factList([
        ["best", best === undefined ? "" : el("span", `${number(best.value)} in `, trialLink(best))],
        ["metric", `${study.metric}, ${study.direction}`],
        ["trials", `${number(study.trials.length)} of ${number(study.total)}`],
        ["pruned", number(count("pruned"))],
        ["failed", number(count("failed"))],
        ["sampler", study.sampler],
        ["pruner", study.pruner],
      ]),
    )
    const line = bestSoFar(study)
    const series = [{ label: "best", color: seriesColor(0), x: line.map(({ trial }) => trial), y: line.map(({ value }) => value) }] // prettier-ignore
    history.show({ series: line.length === 0 ? [] : series, xName: "trials", logX: false, logY: false, nothing: "no trial has finished" }) // prettier-ignore
    importance.replaceChildren(importanceTable(study))
    const valued = study.trials.filter(({ value }) => value !== null)
    slices.replaceChildren(...(valued.length === 0 ? [el("p.quiet", "no trial has a value so far")] : study.space.map((parameter) => makeSlice(parameter, valued, { metric: study.metric, best: best?.trial })))) // prettier-ignore
    trials.replaceChildren(trialsTable(study, ranked))
  }

  return {
    element,
    restore: draw,
    draw,
    update: () => {
      draw()
      source.want([path])
    },
    changed: (paths) => {
      if ([...paths].some((one) => path === "" || one.startsWith(`${path}/`))) source.stale(new Set([path]))
    },
    close: () => source.want([]),
  }
}

const trialLink = ({ trial, runs }) => {
  const text = `trial ${trial}`
  return runs.length === 0 ? text : el("a", { href: runAddress(runs[0]) }, text)
}

const importanceTable = ({ importance }) =>
  importance.length === 0
    ? el("p.quiet", "known when more trials have ended")
    : tableOf(
        "Importance",
        el("thead", el("tr", el("th", { scope: "col" }, "parameter"), el("th.number", { scope: "col" }, "share"), el("th", { scope: "col" }, el("span.hidden", "bar")))), // prettier-ignore
        el(
          "tbody",
          importance.map(({ path, share }) =>
            el(
              "tr",
              el("th", { scope: "row" }, path),
              el("td.number", `${Math.round(100 * share)} %`),
              el(
                "td",
                el("meter", { min: "0", max: "1", value: String(share), "aria-label": `Importance of ${path}` }),
              ),
            ),
          ),
        ),
      )

const trialsTable = ({ metric, space }, ranked) => {
  const headings = ["trial", `#${metric}`, "state", ...space.map(({ path }) => `#${path}`), "#steps"]
  return tableOf(
    "Trials",
    el("thead", el("tr", headings.map((text) => el("th", { scope: "col", class: text.startsWith("#") ? "number" : "" }, text.replace("#", ""))))), // prettier-ignore
    el(
      "tbody",
      ranked.slice(0, mostRows).map((trial) =>
        el(
          "tr",
          el("th", { scope: "row" }, trialLink(trial)),
          el("td.number", number(trial.value)),
          el("td", trial.state, trial.reason !== null && el("p.quiet.line.hint", trial.reason)),
          space.map(({ path }) =>
            el("td.number", Object.hasOwn(trial.params, path) ? textOf(trial.params[path]) : "–"),
          ),
          el("td.number", number(trial.steps)),
        ),
      ),
    ),
  )
}

/** Returns, for each finished trial, the best value so far. */
const bestSoFar = ({ trials, direction }) => {
  const isBetter = (a, b) => (direction === "maximize" ? a > b : a < b)
  let best
  return trials.flatMap(({ trial, state, value }) => {
    if (state !== "finished") return []
    if (best === undefined || isBetter(value, best)) best = value
    return [{ trial, value: best }]
  })
}
