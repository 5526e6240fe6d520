/** Makes the section of a run's page with its speed, CPU use and memory over time. */
import { makeChart } from "../parts/chart.js"
import { el, seriesColor } from "../parts/dom.js"
import { bytes, number } from "../parts/format.js"

/**
 * The charts of the section. Each item of `columns` is a line: the key of its data, its label, and the index of its colour.
 */
const figures = [
  {
    title: "Speed",
    text: (value) => `${number(value < 10 ? value : Math.round(value))} steps/s`,
    columns: [["stepsPerSecond", "speed", 3]],
  },
  { title: "CPU", text: (value) => `${number(Number(value.toPrecision(3)))} cores`, columns: [["cpu", "CPU", 5]] },
  {
    title: "Memory",
    text: bytes,
    ticks: (values) => values.map(bytes),
    columns: [["rss", "all", 1], ["heap", "JS heap", 2], ["buffers", "buffers", 4]], // prettier-ignore
  },
]

export const makeSystem = () => {
  const charts = figures.map(({ title, text, ticks }) => makeChart(title, { small: true, fromZero: true, text, ticks }))
  const element = el("section.card.system", { hidden: true }, el("h2", "System"), el("div.charts.small", charts.map((chart) => chart.element))) // prettier-ignore
  let system
  let isRunning = false
  const draw = () => {
    for (const [place, { columns }] of figures.entries()) {
      const series = columns.map(([name, label, color]) => {
        const end = isRunning || name !== "stepsPerSecond" ? Infinity : lastWorking(system.stepsPerSecond)
        const known = system.seconds.flatMap((_, index) => (system[name][index] === null || index > end ? [] : [index]))
        const of = (column) => known.map((index) => column[index])
        return { label, color: seriesColor(color), x: of(system.seconds), y: of(system[name]) }
      })
      charts[place].show({ series, xName: "time", logX: false, logY: false })
    }
  }
  return {
    element,
    show: (detail) => {
      system = detail.system
      isRunning = detail.summary.state === "running"
      element.hidden = system === null || system.seconds.length === 0
      if (!element.hidden) draw()
    },
    redraw: () => void (element.hidden || draw()),
  }
}

/** Returns the index of the last speed above 0. After it, a run that has ended only wrote files, at a speed of 0. */
const lastWorking = (speeds) => speeds.findLastIndex((speed) => speed !== null && speed > 0)
