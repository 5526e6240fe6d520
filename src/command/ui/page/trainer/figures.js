/**
 * Shows the most important metrics of a trainer and of its runs as charts. The charts of the runs have a line for each run.
 */
import { fetchMetrics } from "../data.js"
import { makeChart } from "../parts/chart.js"
import { el, seriesColor } from "../parts/dom.js"
import { seriesOf } from "../parts/metrics.js"
import { makeSource } from "../parts/source.js"

/** The metrics of the whole trainer. Each pair is a line: the metric and its label. */
const ofTrainer = [
  ["Tokens a second", [["trainer/tokens_per_second", "trained"], ["trainer/generated_tokens_per_second", "generated"]]], // prettier-ignore
  ["Runs", [["trainer/runs", "trained"], ["trainer/waiting", "waiting"]]], // prettier-ignore
]

/** The metrics of the runs. */
const ofRuns = [
  ["Reward", "sampling/reward"],
  ["Loss", "losses/loss"],
  ["Gradient norm", "losses/gradient_norm"],
  ["Staleness in steps", "sampling/staleness"],
  ["Entropy", "losses/entropy"],
  ["KL to the reference", "losses/reference_kl"],
  ["KL to the sampling weights", "losses/inference_kl"],
]

/** Makes the charts with the axes of `view`. It calls `failed` with the error if metrics can't be read. */
export const makeFigures = (view, failed) => {
  const chartsOf = (figures) =>
    figures.map(([title, metrics]) => ({ metrics, chart: makeChart(title, { small: true }) }))
  const [trainerCharts, runCharts] = [chartsOf(ofTrainer), chartsOf(ofRuns)]
  const grid = (charts) => el("div.charts.small", charts.map(({ chart }) => chart.element)) // prettier-ignore
  const source = makeSource(fetchMetrics, () => draw(), failed)
  let shown = { trainer: undefined, items: [] }

  const draw = () => {
    const { trainer, items } = shown
    // Event files don't contain the number of episodes, so that axis is replaced by steps.
    const axes = { xName: view.axis === "episodes" ? "steps" : view.axis, logX: view.logX, logY: view.logY }
    const own = source.of(trainer)
    for (const { metrics, chart } of trainerCharts) {
      const series = metrics.flatMap(([name, label], place) =>
        seriesOf({ label, color: seriesColor(place), runs: [own] }, name, view),
      )
      chart.show({ series, ...axes, waiting: own === undefined, nothing: "none so far" })
    }
    const ofItems = items.map((item) => ({ ...item, runs: item.runs.map(source.of) }))
    const waiting = ofItems.some(({ runs }) => runs.includes(undefined))
    for (const { metrics: name, chart } of runCharts) {
      const series = ofItems.flatMap((item) => seriesOf(item, name, view))
      // If no run has the metric (because all have another objective, for example), the chart is hidden.
      chart.element.hidden = items.length > 0 && !waiting && series.length === 0
      chart.show({ series, ...axes, waiting, nothing: "none so far" })
    }
  }

  return {
    ofTrainer: grid(trainerCharts),
    ofRuns: grid(runCharts),
    /** Shows the trainer with the given path, and items `{ label, color, runs }` for its runs; `runs` has one path. */
    show: (trainer, items) => {
      shown = { trainer, items }
      source.want([trainer, ...items.flatMap(({ runs }) => runs)])
      draw()
    },
    /** Reads the metrics of these paths again, if they are shown. */
    stale: source.stale,
  }
}
