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

/** A labelled box in a list of choices, by whose `id` it is found again. */
export const choiceOf = (label, checked, change, id) => {
  const box = el("input", { type: "checkbox", checked, id: `choice-${id}`, onchange: () => change(box.checked) })
  return el("label", { class: "field row" }, box, el("span", {}, label))
}

export const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children)

/** The colours of lines, by their places from 0 to 7; they differ between light and dark. */
export const seriesColor = (place) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--series-${place + 1}`)
    .trim()

/**
 * Runs an action soon after it is asked for, together with other requests of the same time: charts of many runs are drawn a
 * few times while these are read, and not once for each run. With `isLast` it runs at once.
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
