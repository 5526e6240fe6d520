/** Makes the sections of a run's page with its validations, its log, its config and its files. */
import { fileAddress } from "../data.js"
import { csvButton, el } from "../parts/dom.js"
import { bytes, counted, number } from "../parts/format.js"

const headings = ["step", "mean return", "±", "episodes", "length", "terminated"]

const row = (cell, values) => el("tr", values.map((value) => el(`${cell}.number`, value))) // prettier-ignore

/** The keys of the columns, for the file of comma-separated values, which has all digits. */
const keys = ["step", "mean", "std", "episodes", "length", "terminated"]

const cellsOf = ({ step, mean, std, episodes, length, terminated }) => [
  ...[step, mean, std, episodes, length].map(number),
  terminated === null ? "–" : `${Math.round(100 * terminated)} %`,
]

export const makeValidations = () => {
  const body = el("tbody")
  const table = el("table", el("thead", row("th", headings)), body)
  const scroll = el("div.scroll", { tabindex: "0", role: "group", "aria-label": "Validations" }, table)
  const nothing = el("p.quiet")
  let shown = []
  const button = csvButton("Validations", () => [keys, ...shown.map((one) => keys.map((key) => one[key]))])
  return {
    element: el("section.card", el("h2", "Validations ", button), scroll, nothing),
    show: ({ summary, validations }) => {
      shown = validations
      button.hidden = validations.length === 0
      scroll.hidden = validations.length === 0
      nothing.hidden = validations.length > 0
      nothing.textContent = summary.state === "running" ? "None so far." : "There are none."
      body.replaceChildren(...validations.toReversed().map((line) => row("td", cellsOf(line))))
    },
  }
}

export const makeLog = () => {
  const lines = el("pre.log", { tabindex: "0", "aria-label": "The log's last lines, times in UTC" })
  return {
    element: el("section.card", el("h2", "Log"), lines),
    show: ({ log }) => {
      const text = log.map((line) => line.replace(/^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\.\d+Z/, "$1")).join("\n")
      if (text === lines.textContent) return
      // Don't scroll if the user has scrolled up to read; 4 pixels allow for rounding.
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

/** Returns the folder under which a file is listed. Each checkpoint and each step has a folder of its own. */
const folderOf = ({ path }) => /^((?:checkpoints|steps)\/[^/]+)\//.exec(path)?.[1] ?? /^([^/]+)\//.exec(path)?.[1] ?? ""

export const makeFiles = (run) => {
  const body = el("div.scroll", { tabindex: "0", role: "group", "aria-label": "Files" })
  const note = el("p.quiet.hint", { hidden: true })

  const line = (file) => {
    const { path, size } = file
    const link = el("a", { href: fileAddress(run, file), download: path.split("/").at(-1) }, path)
    return el("li", link, el("span.quiet", ` ${bytes(size)}`))
  }
  const list = (files) => el("ul.fileList", files.map(line))

  const folded = ([folder, files]) => {
    const size = files.reduce((sum, one) => sum + one.size, 0)
    const count = ` ${counted(files.length, "file")}, ${bytes(size)}`
    const summary = el("summary", folder, el("span.quiet", count))
    return el("details", { id: `folder-${folder}` }, summary, list(files))
  }

  return {
    element: el("section.card", el("h2", "Files and checkpoints"), body, note),
    show: ({ files, checkpoints, leftOut = 0 }) => {
      note.hidden = leftOut === 0
      const kept = checkpoints.length === 0 ? "has no checkpoints" : "leaves out the other checkpoints"
      note.textContent = `This export ${kept} (${counted(leftOut, "file")}); “--checkpoints” adds them.`
      const open = new Set([...body.querySelectorAll("details[open]")].map(({ id }) => id))
      const folders = [...Map.groupBy(files, folderOf)].filter(([folder, some]) => folder !== "" && some.length > 1)
      const inFolders = new Set(folders.flatMap(([, some]) => some))
      const sorted = folders.sort(([a], [b]) => a.localeCompare(b))
      body.replaceChildren(list(files.filter((file) => !inFolders.has(file))), ...sorted.map(folded))
      for (const id of open) document.getElementById(id)?.setAttribute("open", "")
    },
  }
}
