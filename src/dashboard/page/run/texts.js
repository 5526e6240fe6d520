/** Makes the sections of a run's page with its log and its config. */
import { el } from "../parts/dom.js"

export const makeLog = () => {
  const lines = el("pre.log", { tabindex: "0", "aria-label": "The log's last lines, times in UTC" })
  return {
    element: el("section.card", el("h2", "Log"), lines),
    show: ({ log }) => {
      const text = log.map((line) => line.replace(/^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\.\d+Z/, "$1")).join("\n")
      if (text === lines.textContent) return
      // Don't scroll if the user has scrolled up to read.
      const atEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 4
      lines.textContent = text
      if (atEnd) lines.scrollTop = lines.scrollHeight
    },
  }
}

export const makeConfig = () => {
  const text = el("pre.config", { tabindex: "0", "aria-label": "The effective config" })
  return {
    element: el("section.card", el("h2", "Config"), text),
    show: ({ config }) => {
      if (text.textContent !== config) text.textContent = config ?? "There is none."
    },
  }
}
