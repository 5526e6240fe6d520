/**
 * Makes an element: `el("button", { class: "quiet", onclick: press }, "Press")`. Strings become text and never markup.
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

/** Makes a select element with a label; `options` are pairs of value and text. */
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

/** Makes a checkbox with a label for a list of choices. The id of its element is derived from `id`. */
export const choiceOf = (label, checked, change, id) => {
  const box = el("input", { type: "checkbox", checked, id: `choice-${id}`, onchange: () => change(box.checked) })
  return el("label", { class: "field row" }, box, el("span", {}, label))
}

export const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children)

/** Returns the colour of a line by the line's index, 0 to 7. Light and dark themes have different colours. */
export const seriesColor = (place) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--series-${place + 1}`)
    .trim()

/**
 * Makes a function that runs the action soon after a call, once for all calls of that time: charts of many runs are
 * drawn a few times while the runs are read, not once per run. With `isLast` it runs at once.
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
