/** Makes DOM elements for all parts of the page, reads colours from the style sheet, and limits how often functions run. */

/**
 * Makes an element: `el("button.quiet", { onclick: press }, "Press")`. Classes follow the tag, and the properties can
 * be left out. Strings become text and never markup.
 */
export const el = (name, ...rest) => {
  const [tag, ...classes] = name.split(".")
  const element = document.createElement(tag)
  if (classes.length > 0) element.className = classes.join(" ")
  const hasProps = Object.prototype.toString.call(rest[0]) === "[object Object]"
  for (const [key, value] of Object.entries(hasProps ? rest.shift() : {})) {
    if (value === undefined || value === null || value === false) continue
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
    else if (key === "class") element.className = value
    // The page's Content-Security-Policy forbids a `style` attribute.
    else if (key === "style") Object.assign(element.style, value)
    else if (key === "value" || key === "checked") element[key] = value
    else element.setAttribute(key, value === true ? "" : value)
  }
  element.append(...rest.flat().filter((child) => child !== undefined && child !== null && child !== false))
  return element
}

/** Makes a select element with a label; `options` are pairs of value and text. */
export const choice = (label, options, value, change) => {
  const select = el(
    "select",
    { onchange: () => change(select.value) },
    options.map(([option, text]) => el("option", { value: option }, text)),
  )
  select.value = value
  return el("label.field", el("span", label), select)
}

/** Makes a checkbox with a label. */
export const toggle = (label, checked, change, id) => {
  const box = el("input", { type: "checkbox", checked, id, onchange: () => change(box.checked) })
  return el("label.field.row", box, el("span", label))
}

/** Makes a list of facts, which are pairs of a term and a value. */
export const factList = (facts) =>
  el("dl.facts", facts.map(([term, value]) => el("div", el("dt", term), el("dd", value || "–")))) // prettier-ignore

/** Makes a button that saves rows of cells as a file of comma-separated values. */
export const csvButton = (label, rowsNow) =>
  el(
    "button.csv",
    {
      type: "button",
      "aria-label": `Save “${label}” as CSV`,
      title: "Save as CSV",
      onclick: async () => (await import("./save.js")).saveCsv(label, await rowsNow()),
    },
    "CSV",
  )

/** Makes a button that saves a table of the page as it is shown. */
export const tableButton = (label, table) => csvButton(label, async () => (await import("./csv.js")).rowsOf(table))

/** Makes a table in a frame that scrolls, with a button that saves it. */
export const tableOf = (label, ...children) => {
  const table = el("table", ...children)
  const frame = el("div.table.plain", { tabindex: "0", role: "group", "aria-label": label }, table)
  return el("div.saved", frame, tableButton(label, table))
}

/**
 * Makes a function that fills an element with rows `{ key, content, make }`. It calls `make` only for rows whose content is
 * new.
 */
export const rowsIn = (parent) => {
  let kept = new Map()
  return (rows) => {
    const now = rows.map(({ key, content, make }) => {
      const text = JSON.stringify(content)
      const before = kept.get(key)
      return [key, before?.text === text ? before : { text, element: make() }]
    })
    kept = new Map(now)
    parent.replaceChildren(...Array.from(kept.values(), ({ element }) => element))
  }
}

/** Makes the small square that shows the colour of a line. */
export const swatch = (color) => el("span.swatch", { style: { background: color } })

/** Returns a colour from the style sheet, such as `--line`, in the current theme as `#rrggbb`. */
export const colorOf = (name) => {
  const [light, dark] = getComputedStyle(document.documentElement).getPropertyValue(name).match(/#\w+/g)
  return matchMedia("(prefers-color-scheme: dark)").matches ? dark : light
}

/** Returns the colour of a line by the line's index, 0 to 7. */
export const seriesColor = (place) => colorOf(`--series-${place + 1}`)

/**
 * Makes a function that runs the action 150 ms after a call, once for all calls in that time. So while many runs are read,
 * their charts are rendered only a few times and not once per run. With `isLast` the action runs at once.
 */
export const together = (action) => {
  let timer
  const run = () => {
    clearTimeout(timer)
    timer = undefined
    action()
  }
  return (isLast = false) => {
    if (isLast) run()
    else timer ??= setTimeout(run, 150)
  }
}

/** Makes a function that runs the action at most once per frame, however often it is called. */
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
