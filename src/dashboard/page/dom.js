/**
 * An element: `el("button", { class: "quiet", onclick: press }, "Press")`. What is text stays text, whoever wrote it.
 */
export const el = (tag, props = {}, ...children) => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (name === "class") element.className = value
    else if (name === "value" || name === "checked") element[name] = value
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false))
  return element
}

/** A labelled choice; `options` are [value, text] pairs. */
export const choice = (label, options, value, change) => {
  const select = el(
    "select",
    { onchange: () => change(select.value) },
    options.map(([option, text]) => el("option", { value: option }, text)),
  )
  select.value = value
  return el("label", { class: "field" }, el("span", {}, label), select)
}

export const toggle = (label, checked, change) => {
  const box = el("input", { type: "checkbox", checked, onchange: () => change(box.checked) })
  return el("label", { class: "field row" }, box, label)
}

/** A number as people read it: four digits, thousands apart. */
export const number = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–"
  const size = Math.abs(value)
  if (Number.isInteger(value) || size >= 1000) return Math.round(value).toLocaleString("en")
  return size >= 1e-3 || size === 0 ? String(Number(value.toPrecision(4))) : value.toExponential(2)
}

const units = [
  { least: 1e9, letter: "G" },
  { least: 1e6, letter: "M" },
  { least: 1e3, letter: "k" },
]

/** For axes: 20k, 1.5M. */
export const short = (value) => {
  const size = Math.abs(value)
  const unit = units.find(({ least }) => size >= least)
  if (unit !== undefined) return `${Number((value / unit.least).toPrecision(4))}${unit.letter}`
  return String(Number(value.toPrecision(4)))
}

export const duration = (seconds) => {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–"
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** An identifier's time, `2026-01-31_12-00-00`, as people write it. */
export const time = (text) => text.replace(/_(\d\d)-(\d\d)-(\d\d)$/, " $1:$2:$3")

export const bytes = (size) =>
  size < 1000
    ? `${size} B`
    : size < 1e6
      ? `${(size / 1e3).toFixed(1)} kB`
      : size < 1e9
        ? `${Number((size / 1e6).toPrecision(3))} MB`
        : `${(size / 1e9).toFixed(2)} GB`

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

export const deviation = (values) => {
  const centre = mean(values)
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)))
}

export const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children)

/** The colours of lines, by their places from 0 to 7; they differ between light and dark. */
export const seriesColor = (place) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--series-${place + 1}`)
    .trim()

/** Runs at most once a frame, however often it is asked to. */
export const onceAFrame = (action) => {
  let asked = false
  return () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => {
      asked = false
      action()
    })
  }
}
