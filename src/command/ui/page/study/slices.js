/** Makes the charts of a study with one point for each trial: the metric over each parameter. */
import { el } from "../parts/dom.js"
import { number, tickTexts } from "../parts/format.js"

const [width, height] = [320, 170]
/** The space around the points, in the units of the picture. */
const edge = { left: 50, right: 12, top: 8, bottom: 24 }

const svg = (tag, properties, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, String(value))
  element.append(...children)
  return element
}

/** Returns the position of a parameter's value in its range, from 0 to 1. */
const placeOf = (parameter, value) => {
  if (parameter._tag === "Choice") {
    const index = parameter.values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value))
    return (index + 0.5) / parameter.values.length
  }
  const { low, high, isLog } = parameter
  return isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)
}

/** Returns the texts below the axis, with their positions from 0 to 1. */
const marksOf = (parameter) => {
  if (parameter._tag === "Choice") return parameter.values.map((value) => ({ place: placeOf(parameter, value), text: textOf(value) })) // prettier-ignore
  const { low, high } = parameter
  return [
    { place: 0, text: number(low) },
    { place: 1, text: number(high) },
  ]
}

/** Formats the value of a parameter. */
export const textOf = (value) => (typeof value === "number" ? number(value) : typeof value === "string" ? value : JSON.stringify(value)) // prettier-ignore

/** Returns the range of values, whose length is never zero. */
const rangeOf = (values) => {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[0], sorted.at(-1)]
  return low === high ? [low - 1, high + 1] : [low, high]
}

/** Makes a button that saves the chart. The code that saves pictures is loaded when it is first needed. */
const saveButton = (title, picture, type) =>
  el(
    "button",
    {
      "aria-label": `Save “${title}” as ${type}`,
      title: `Save as ${type}`,
      onclick: async () => (await import("../parts/figure.js")).savePicture(title, picture, type),
    },
    type,
  )

/** Makes the chart of one parameter. Every trial in `trials` must have a value of the metric. */
export const makeSlice = (parameter, trials, { metric, best }) => {
  const having = trials.filter(({ params }) => Object.hasOwn(params, parameter.path))
  const [low, high] = rangeOf(trials.map(({ value }) => value))
  const x = (place) => edge.left + place * (width - edge.left - edge.right)
  const y = (value) => height - edge.bottom - ((value - low) / (high - low)) * (height - edge.top - edge.bottom)
  const texts = tickTexts([low, high])
  const axis = [low, high].flatMap((value, index) => [
    svg("line", { x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }),
    svg("text", { x: edge.left - 6, y: y(value) + 4, "text-anchor": "end" }, texts[index]),
  ])
  const marks = marksOf(parameter).map(
    ({ place, text }) =>
    svg("text", { x: x(place), y: height - 6, "text-anchor": place === 0 ? "start" : place === 1 ? "end" : "middle" }, text), // prettier-ignore
  )
  const points = having.map(({ trial, value, params, state }) =>
    svg(
      "circle",
      { cx: x(placeOf(parameter, params[parameter.path])), cy: y(value), r: trial === best ? 5 : 3.5, class: `${state}${trial === best ? " best" : ""}`, "fill-opacity": 0.7 }, // prettier-ignore
      svg("title", {}, `trial ${trial}: ${metric} ${number(value)} at ${textOf(params[parameter.path])}${state === "pruned" ? ", pruned" : ""}`), // prettier-ignore
    ),
  )
  const label = `${metric} over ${parameter.path}, ${having.length} trials`
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...axis, ...marks, ...points) // prettier-ignore
  return el(
    "figure.chart.small.slice",
    el("figcaption", parameter.path, el("span.quiet", parameter.isLog === true ? " logarithmic" : "")),
    el("span.saves", ["SVG", "PNG"].map((type) => saveButton(label, picture, type))), // prettier-ignore
    picture,
  )
}
