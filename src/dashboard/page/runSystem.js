/** The section of a run's page with what it costs its machine: small charts over time. */
import { makeChart } from "./chart.js"
import { bytes, card, el, number, seriesColor } from "./dom.js"

const figures = [
  {
    title: "Speed",
    text: (value) => `${number(Math.round(value))} steps/s`,
    columns: [["stepsPerSecond", "speed", 3]],
  },
  { title: "CPU", text: (value) => `${number(Number(value.toPrecision(3)))} cores`, columns: [["cpu", "CPU", 5]] },
  {
    title: "Memory",
    text: bytes,
    columns: [["rss", "all", 1], ["heap", "JS heap", 2], ["buffers", "buffers", 4]], // prettier-ignore
  },
]

export const makeSystem = () => {
  const charts = figures.map(({ title, text }) => makeChart(title, { small: true, fromZero: true, text }))
  const element = card("System", el("div", { class: "charts small" }, charts.map((chart) => chart.element))) // prettier-ignore
  element.classList.add("system")
  element.hidden = true
  let system
  const draw = () => {
    for (const [place, { columns }] of figures.entries()) {
      const series = columns.map(([name, label, color]) => {
        const known = system.seconds.flatMap((_, index) => (system[name][index] === null ? [] : [index]))
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
      element.hidden = system === null || system.seconds.length === 0
      if (!element.hidden) draw()
    },
    redraw: () => void (element.hidden || draw()),
  }
}
